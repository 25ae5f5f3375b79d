/* See sections.h. */
#define XXH_INLINE_ALL
#include "base/map.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/text.h"
#include "output/text/sections.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define NAMED_MAX 64u /* of the parts: to compare stacks, they must be named, which takes time */
#define NUMBER_COLUMNS 4u
#define COUNT_COLUMNS 7u /* "99,999" at the end of a row, before " x" */
#define FRAME_FROM 20u   /* column of the frame */

GM_ORDER(by_holder_bytes, struct gm_holder, GM_DOWN(bytes) GM_UP(stack))

/* Of the function and the kind, above the bits of a stack. */
static uint64_t call_key(const struct gm_model_place *place)
{
    return (XXH64(place->api, strlen(place->api), 0) ^ place->kind) << 32;
}

struct gm_holder *gm_holders_add(const struct gm_model *model, const struct gm_holder *parts,
                                 size_t part_count, size_t *count)
{
    struct gm_holder *holders = gm_allocate(part_count + 1, sizeof(*holders));
    struct gm_map by_stack = {0};
    *count = 0;
    for (size_t i = 0; i < part_count; i++) {
        uint32_t stack =
            i < NAMED_MAX ? gm_model_same_stack(model, parts[i].stack) : parts[i].stack;
        uint64_t key = parts[i].place ? call_key(parts[i].place) ^ stack : stack;
        uint32_t at = gm_map_get(&by_stack, key);
        if (at == GM_NONE) {
            at = (uint32_t)(*count)++;
            holders[at] = parts[i];
            holders[at].stack = stack;
            holders[at].bytes = holders[at].count = 0;
            gm_map_set(&by_stack, key, at);
        }
        holders[at].bytes += parts[i].bytes;
        holders[at].count += parts[i].count;
    }
    gm_map_free(&by_stack);
    qsort(holders, *count, sizeof(*holders), by_holder_bytes);
    return holders;
}

static unsigned percent_of_whole(int64_t bytes, int64_t whole)
{
    return whole > 0 ? (unsigned)(100.0 * (double)bytes / (double)whole + 0.5) : 0;
}

/* Rows that read the same are told apart by the frame in which they differ. */
static const struct gm_frame *telling_difference(const struct gm_view *view,
                                                 const struct gm_holder *holders, size_t shown,
                                                 size_t row)
{
    const struct gm_stack *stack = gm_model_stack(view->model, holders[row].stack);
    const struct gm_frame *frame = gm_stack_telling_frame(stack);
    for (size_t i = 0; i < shown; i++) {
        const struct gm_stack *other = gm_model_stack(view->model, holders[i].stack);
        if (i != row && gm_frames_read_same(frame, gm_stack_telling_frame(other)))
            return gm_stack_difference(stack, other);
    }
    return NULL;
}

/* "1,204", "1204k" from 100,000 on. */
static const char *short_count(int64_t count, char text[GM_SIZE_TEXT])
{
    if (count < 100000)
        return gm_count_format(count < 0 ? 0 : (uint64_t)count, text);
    bool is_huge = count >= 100000000;
    snprintf(text, GM_SIZE_TEXT, "%lld%c", (long long)count / (is_huge ? 1000000 : 1000),
             is_huge ? 'M' : 'k');
    return text;
}

#define OPERATIONS_SHOWN 3u
#define TOLD_SHARE 16u /* of a line's bytes: an operation that holds less is left out */

/* What PyTorch was asked to do at a line. */
struct operation {
    char name[GM_OPERATION_TEXT];
    uint64_t bytes;
};

GM_ORDER(by_operation_bytes, struct operation, GM_DOWN(bytes) GM_BY_TEXT(name))

static size_t list_operations(const struct gm_model *model, const struct gm_model_line *line,
                              struct operation operations[GM_LINE_STACKS])
{
    size_t count = 0;
    for (size_t i = 0; i < GM_LINE_STACKS && line->stacks[i].stack != GM_NONE; i++) {
        struct operation *next = &operations[count];
        size_t at = 0;
        gm_stack_operation(gm_model_stack(model, line->stacks[i].stack), next->name);
        next->bytes = 0;
        while (at < count && strcmp(operations[at].name, next->name) != 0)
            at++;
        operations[at].bytes += line->stacks[i].bytes;
        count += at == count && next->name[0];
    }
    qsort(operations, count, sizeof(*operations), by_operation_bytes);
    while (count && operations[count - 1].bytes < line->bytes / TOLD_SHARE)
        count--;
    return count;
}

/* "relu 40.0 MiB, tanh 20.0 MiB", where it is not one thing. */
static void print_operations(const struct gm_view *view, const struct gm_model_line *line)
{
    struct operation operations[GM_LINE_STACKS];
    char text[OPERATIONS_SHOWN * (GM_OPERATION_TEXT + GM_SIZE_TEXT)];
    size_t count = list_operations(view->model, line, operations), used = 0;
    if (count < 2)
        return;
    for (size_t i = 0; i < count && i < OPERATIONS_SHOWN; i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s %s", i ? ", " : "",
                                 operations[i].name, SIZE(operations[i].bytes));
    gm_page_print(view->page, GM_DIM, "%*s", (int)FRAME_FROM, "");
    gm_page_begin(view->page, GM_DIM);
    gm_page_cut(view->page, text, gm_page_columns(view->page) - FRAME_FROM);
    gm_page_end(view->page, GM_DIM);
    fputc('\n', view->page->out);
}

/* "cudaMallocManaged, managed memory": by which function, and the kind where it is not plain. */
static void print_call(struct gm_page *page, const struct gm_model_place *place)
{
    bool is_plain = place->kind == GM_KIND_DEVICE || place->kind == GM_KIND_PINNED;
    gm_page_print(page, GM_DIM, "%*s%.40s%s%s%s\n", (int)FRAME_FROM, "",
                  place->api[0] ? place->api : "?", is_plain ? "" : ", ",
                  is_plain ? "" : gm_kind_name(place->kind), is_plain ? "" : " memory");
}

static void print_holder_row(const struct gm_view *view, const struct gm_holder *holders,
                             size_t shown, size_t row, int64_t whole)
{
    const struct gm_holder *holder = &holders[row];
    const struct gm_stack *stack = gm_model_stack(view->model, holder->stack);
    const struct gm_frame *frame = gm_stack_telling_frame(stack);
    const struct gm_frame *differs = holder->by && holder->by != frame
                                         ? holder->by
                                         : telling_difference(view, holders, shown, row);
    struct gm_page *page = view->page;
    char number[16], times[GM_SIZE_TEXT];
    snprintf(number, sizeof(number), "[%u]",
             gm_site_number(view->sites, view->model, holder->stack));
    gm_page_print(page, GM_BOLD, "%-*s%9s", (int)NUMBER_COLUMNS, number, BYTES(holder->bytes));
    gm_page_print(page, GM_PLAIN, " %3u%%  ", percent_of_whole(holder->bytes, whole));
    unsigned room = gm_page_columns(page) - FRAME_FROM - COUNT_COLUMNS - 2; /* " x" */
    char *text = NULL;
    size_t size = 0;
    struct gm_page line = {.out = open_memstream(&text, &size), .columns = page->columns};
    if (!line.out)
        return;
    if (frame)
        gm_page_frame(&line, frame, room);
    else
        fputs("(no stack was recorded)", line.out);
    fclose(line.out);
    gm_page_cell(page, text, room);
    free(text);
    gm_page_print(page, GM_PLAIN, "%*s x\n", (int)COUNT_COLUMNS, short_count(holder->count, times));
    if (differs && differs != frame) {
        gm_page_print(page, GM_DIM, "%*sby ", (int)FRAME_FROM, "");
        gm_page_frame(page, differs, gm_page_columns(page) - FRAME_FROM - 3);
        fputc('\n', page->out);
    }
    if (holder->line)
        print_operations(view, holder->line);
    if (holder->place && view->verbose)
        print_call(page, holder->place);
}

void gm_holders_text(const struct gm_view *view, const struct gm_holder *holders, size_t count,
                     int64_t whole, size_t top)
{
    int64_t rest = 0;
    size_t shown = count < top ? count : top;
    if (count == top + 1) /* a row for the rest would take as much room */
        shown = count;
    for (size_t i = 0; i < shown; i++)
        print_holder_row(view, holders, shown, i, whole);
    for (size_t i = shown; i < count; i++)
        rest += holders[i].bytes;
    if (count > shown)
        gm_page_print(view->page, GM_DIM, "%*s%9s %3u%%  from %s more places\n",
                      (int)NUMBER_COLUMNS, "", BYTES(rest), percent_of_whole(rest, whole),
                      COUNT(count - shown));
}

void gm_samples_text(const struct gm_view *view, const struct gm_model_sample *samples,
                     size_t sample_count, int64_t whole, uint64_t min_size, size_t top)
{
    struct gm_holder *parts = gm_allocate(sample_count + 1, sizeof(*parts));
    size_t count, shown = 0;
    for (size_t i = 0; i < sample_count; i++) {
        const struct gm_model_place *place = &view->model->places[samples[i].place];
        parts[i] = (struct gm_holder){.stack = place->stack,
                                      .bytes = samples[i].bytes,
                                      .count = samples[i].count,
                                      .place = view->verbose ? place : NULL,
                                      .by = gm_model_place_frame(view->model, place)};
    }
    struct gm_holder *holders = gm_holders_add(view->model, parts, sample_count, &count);
    while (shown < count && gm_amount(min_size) <= holders[shown].bytes)
        shown++;
    gm_holders_text(view, holders, min_size ? shown : count, whole, gm_view_rows(view, top));
    free(holders);
    free(parts);
}

void gm_blocks_text(const struct gm_view *view, const struct gm_model_pool_state *state)
{
    struct gm_holder *parts = gm_allocate(state->line_count + 1, sizeof(*parts));
    bool has_free = state->reserved > state->allocated;
    int64_t free_bytes = has_free ? gm_amount(state->reserved - state->allocated) : 0;
    int64_t whole = gm_amount(has_free ? state->reserved : state->allocated);
    size_t count;
    for (size_t i = 0; i < state->line_count; i++)
        parts[i] = (struct gm_holder){.stack = state->lines[i].stack,
                                      .bytes = gm_amount(state->lines[i].bytes),
                                      .count = gm_amount(state->lines[i].count),
                                      .line = &state->lines[i]};
    struct gm_holder *holders = gm_holders_add(view->model, parts, state->line_count, &count);
    gm_holders_text(view, holders, count, whole, gm_view_rows(view, GM_VIEW_ROWS));
    if (free_bytes) {
        const struct gm_segment_sums *sums = state->sums;
        uint64_t hole = 0, segments = 0;
        for (unsigned pool = 0; pool < GM_SEGMENT_POOLS; pool++) {
            hole = sums[pool].largest_hole > hole ? sums[pool].largest_hole : hole;
            segments += sums[pool].count;
        }
        char holes[64] = "";
        bool is_narrow = gm_page_columns(view->page) < GM_PAGE_COLUMNS;
        if (hole && state->is_known)
            snprintf(holes, sizeof(holes), "%s largest hole %s", is_narrow ? "" : ",", SIZE(hole));
        gm_page_print(view->page, GM_PLAIN, "    %9s %3u%%  ", BYTES(free_bytes),
                      whole ? (unsigned)(100.0 * (double)free_bytes / (double)whole + 0.5) : 0);
        gm_page_print(view->page, GM_PLAIN, "%s%s%s\n",
                      segments ? "free in the pool's segments"
                               : "in no array: temporaries, or free",
                      is_narrow && holes[0] ? ",\n                   " : "", holes);
    }
    free(holders);
    free(parts);
}
