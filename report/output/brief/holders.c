/* See brief.h. */
#include "base/map.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/text.h"
#include "output/brief/brief.h"
#include <stdlib.h>
#include <string.h>

#define NAMED_MAX 64u /* of the parts: to compare stacks, they must be named, which takes time */
#define NUMBER_COLUMNS 4u
#define COUNT_COLUMNS 7u /* "99,999" at the end of a row, before " x" */
#define FRAME_FROM 20u   /* column of the frame */

GM_ORDER(by_holder_bytes, struct gm_holder, GM_DOWN(bytes) GM_UP(stack))

struct gm_holder *gm_holders_add(const struct gm_model *model, const struct gm_holder *parts,
                                 size_t part_count, size_t *count)
{
    struct gm_holder *holders = gm_allocate(part_count + 1, sizeof(*holders));
    struct gm_map by_stack = {0};
    *count = 0;
    for (size_t i = 0; i < part_count; i++) {
        uint32_t stack =
            i < NAMED_MAX ? gm_model_same_stack(model, parts[i].stack) : parts[i].stack;
        uint32_t at = gm_map_get(&by_stack, stack);
        if (at == GM_NONE) {
            at = (uint32_t)(*count)++;
            holders[at] = (struct gm_holder){.stack = stack, .line = parts[i].line};
            gm_map_set(&by_stack, stack, at);
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

static void print_holder_row(const struct gm_view *view, struct gm_brief_sites *sites,
                             const struct gm_holder *holders, size_t shown, size_t row,
                             int64_t whole)
{
    const struct gm_holder *holder = &holders[row];
    const struct gm_stack *stack = gm_model_stack(view->model, holder->stack);
    const struct gm_frame *frame = gm_stack_telling_frame(stack);
    const struct gm_frame *differs = telling_difference(view, holders, shown, row);
    struct gm_page *page = view->page;
    char number[16], times[GM_SIZE_TEXT];
    snprintf(number, sizeof(number), "[%u]", gm_brief_number(sites, view->model, holder->stack));
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
}

void gm_brief_holders(const struct gm_view *view, struct gm_brief_sites *sites,
                      const struct gm_holder *holders, size_t count, int64_t whole, size_t top)
{
    int64_t rest = 0;
    size_t shown = count < top ? count : top;
    if (count == top + 1) /* a row for the rest would take as much room */
        shown = count;
    for (size_t i = 0; i < shown; i++)
        print_holder_row(view, sites, holders, shown, i, whole);
    for (size_t i = shown; i < count; i++)
        rest += holders[i].bytes;
    if (count > shown)
        gm_page_print(view->page, GM_DIM, "%*s%9s %3u%%  from %s more places\n",
                      (int)NUMBER_COLUMNS, "", BYTES(rest), percent_of_whole(rest, whole),
                      COUNT(count - shown));
}
