/* See sections.h. */
#include "output/text/sections.h"

#define LISTED_SHARE 200u /* lines below half a percent are only counted */
#define INDENT 33u        /* of the name of a line */

static double percent_of_pool(uint64_t bytes, uint64_t whole)
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

static void print_pool_row(const struct gm_view *view, const struct gm_model_line *line,
                           uint64_t whole)
{
    struct gm_page *page = view->page;
    const struct gm_stack *stack = gm_model_stack(view->model, line->stack);
    const struct gm_frame *frame = gm_stack_telling_frame(stack);
    const struct gm_frame *outer = outer_frame(stack, frame);
    gm_page_print(page, GM_PLAIN, "%5.1f%%  ", percent_of_pool(line->bytes, whole));
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

void gm_pool_lines_text(const struct gm_view *view, const struct gm_model_pool_state *state)
{
    uint64_t whole = 0, left;
    size_t shown = 0, top = gm_view_rows(view, GM_VIEW_ROWS);
    for (size_t i = 0; i < state->line_count; i++)
        whole += state->lines[i].bytes;
    left = whole;
    for (; shown < state->line_count && shown < top; shown++) {
        const struct gm_model_line *line = &state->lines[shown];
        if (shown && line->bytes < whole / LISTED_SHARE)
            break;
        print_pool_row(view, line, whole);
        left -= line->bytes;
    }
    if (shown < state->line_count)
        gm_page_print(view->page, GM_DIM, "%5.1f%%  %-9s from %zu more place%s\n",
                      percent_of_pool(left, whole), SIZE(left), state->line_count - shown,
                      gm_plural(state->line_count - shown));
}
