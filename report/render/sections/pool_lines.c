/* See pool_lines.h. */
#include "render/sections/pool_lines.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/size.h"
#include <stdlib.h>

#define LISTED_SHARE 200u /* lines below half a percent are only counted */
#define INDENT 33u        /* of the name of a line */

static int most_first(const void *left, const void *right)
{
    const struct gm_pool_line *a = left, *b = right;
    if (a->bytes != b->bytes)
        return a->bytes > b->bytes ? -1 : 1;
    return a->caller < b->caller ? -1 : a->caller > b->caller;
}

struct gm_pool_lines gm_pool_lines_of(const struct gm_analysis *analysis,
                                      const struct gm_sites *owners)
{
    struct gm_pool_lines lines = {.bytes = owners->bytes};
    struct gm_map by_caller = {0};
    if (!owners->count)
        return lines;
    lines.entries = gm_allocate(owners->count, sizeof(*lines.entries));
    for (size_t i = 0; i < owners->count; i++) {
        const struct gm_site *site = &owners->entries[i];
        uint32_t caller = gm_callers_get(analysis->callers, site->stack);
        uint32_t at = gm_map_get(&by_caller, caller);
        if (at == GM_NONE) {
            at = (uint32_t)lines.count++;
            lines.entries[at] = (struct gm_pool_line){.caller = caller};
            gm_map_set(&by_caller, caller, at);
        }
        struct gm_pool_line *line = &lines.entries[at];
        line->bytes += site->bytes;
        line->count += site->count;
        if (site->bytes >= line->stack_bytes) {
            line->stack_bytes = site->bytes;
            line->stack = site->stack;
            line->api = site->api;
        }
    }
    gm_map_free(&by_caller);
    qsort(lines.entries, lines.count, sizeof(*lines.entries), most_first);
    return lines;
}

void gm_pool_lines_free(struct gm_pool_lines *lines)
{
    free(lines->entries);
}

/* ---- text ------------------------------------------------------------------------------------ */

static double percent(uint64_t bytes, uint64_t whole)
{
    return whole ? 100.0 * (double)bytes / (double)whole : 0;
}

/* The next frame outwards that is the application's, NULL if there is none. */
static const struct gm_frame *outer_frame(const struct gm_stack *stack,
                                          const struct gm_frame *frame)
{
    for (size_t i = frame ? (size_t)(frame - stack->frames) + 1 : 0; i < stack->count; i++)
        if (!stack->frames[i].framework)
            return &stack->frames[i];
    return NULL;
}

static void print_line(struct gm_page *page, struct gm_stacks *stacks,
                       const struct gm_pool_line *line, uint64_t whole)
{
    const struct gm_stack *stack = gm_stacks_get(stacks, line->stack, line->api);
    const struct gm_frame *frame = gm_stack_telling_frame(stack);
    const struct gm_frame *outer = outer_frame(stack, frame);
    gm_page_print(page, GM_PLAIN, "%5.1f%%  ", percent(line->bytes, whole));
    gm_page_print(page, GM_BOLD, "%-9s", SIZE(line->bytes));
    gm_page_print(page, GM_PLAIN, " %6s block%-1s  ", COUNT(line->count), gm_plural(line->count));
    if (frame)
        gm_page_frame(page, frame, GM_PAGE_COLUMNS - INDENT);
    else
        gm_page_print(page, GM_DIM, "(no stack was recorded)");
    fputc('\n', page->out);
    if (outer) {
        gm_page_print(page, GM_DIM, "%*sin ", (int)INDENT, "");
        gm_page_frame(page, outer, GM_PAGE_COLUMNS - INDENT - 3);
        fputc('\n', page->out);
    }
}

void gm_pool_lines_text(struct gm_page *page, const struct gm_analysis *analysis,
                        struct gm_stacks *stacks, const struct gm_sites *owners, size_t top)
{
    struct gm_pool_lines lines = gm_pool_lines_of(analysis, owners);
    uint64_t left = lines.bytes;
    size_t shown = 0;
    for (; shown < lines.count && shown < top; shown++) {
        const struct gm_pool_line *line = &lines.entries[shown];
        if (shown && line->bytes < lines.bytes / LISTED_SHARE)
            break;
        print_line(page, stacks, line, lines.bytes);
        left -= line->bytes;
    }
    if (shown < lines.count)
        gm_page_print(page, GM_DIM, "%5.1f%%  %-9s from %zu more place%s\n",
                      percent(left, lines.bytes), SIZE(left), lines.count - shown,
                      gm_plural(lines.count - shown));
    gm_pool_lines_free(&lines);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void gm_pool_lines_json(struct gm_json *json, const struct gm_analysis *analysis,
                        struct gm_stacks *stacks, const struct gm_sites *owners, size_t top)
{
    struct gm_pool_lines lines = gm_pool_lines_of(analysis, owners);
    gm_json_open_array(json, "lines");
    for (size_t i = 0; i < lines.count && i < top; i++) {
        const struct gm_pool_line *line = &lines.entries[i];
        const struct gm_frame *frame =
            gm_stack_telling_frame(gm_stacks_get(stacks, line->stack, line->api));
        gm_json_open_object(json, NULL);
        gm_json_number(json, "bytes", line->bytes);
        gm_json_number(json, "count", line->count);
        gm_json_string(json, "function", frame ? frame->function : NULL);
        gm_json_string(json, "file", frame ? frame->file : NULL);
        gm_json_number(json, "line", frame ? frame->line : 0);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
    gm_pool_lines_free(&lines);
}
