/* See pool_lines.h. */
#include "judge/pool/pool_lines.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/order.h"
#include <stdlib.h>
#include <string.h>

GM_ORDER(most_first_pool_line, struct gm_pool_line, GM_DOWN(bytes) GM_UP(caller))

/* Puts it where it belongs among those with most bytes. */
static void note_stack(struct gm_pool_line *line, const struct gm_site *site)
{
    size_t at = GM_LINE_STACKS;
    while (at && site->bytes >= line->stacks[at - 1].bytes)
        at--;
    if (at == GM_LINE_STACKS)
        return;
    memmove(&line->stacks[at + 1], &line->stacks[at],
            (GM_LINE_STACKS - 1 - at) * sizeof(*line->stacks));
    line->stacks[at] = (struct gm_line_stack){site->stack, site->api, site->bytes};
}

struct gm_pool_lines gm_pool_lines_of(struct gm_callers *callers, const struct gm_sites *owners)
{
    struct gm_pool_lines lines = {.bytes = owners->bytes};
    struct gm_map by_caller = {0};
    if (!owners->count)
        return lines;
    lines.entries = gm_allocate(owners->count, sizeof(*lines.entries));
    for (size_t i = 0; i < owners->count; i++) {
        const struct gm_site *site = &owners->entries[i];
        uint32_t caller = gm_callers_get(callers, site->stack);
        uint32_t at = gm_map_get(&by_caller, caller);
        if (at == GM_NONE) {
            at = (uint32_t)lines.count++;
            lines.entries[at] = (struct gm_pool_line){.caller = caller};
            gm_map_set(&by_caller, caller, at);
        }
        struct gm_pool_line *line = &lines.entries[at];
        line->bytes += site->bytes;
        line->count += site->count;
        note_stack(line, site);
    }
    gm_map_free(&by_caller);
    qsort(lines.entries, lines.count, sizeof(*lines.entries), most_first_pool_line);
    return lines;
}

void gm_pool_lines_free(struct gm_pool_lines *lines)
{
    free(lines->entries);
}
