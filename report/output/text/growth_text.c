/* See sections.h. */
#include "base/text.h"
#include "output/text/sections.h"
#include <stdlib.h>

/* "marks", "marks "step"", "ends of range "epoch"". */
static void print_series(struct gm_page *page, const struct gm_model_growing *growing)
{
    if (growing->series == GM_MOMENT_NONE) {
        fputs("marks", page->out);
        return;
    }
    char *name = gm_clean_copy(growing->name);
    fputs(growing->series == GM_MOMENT_MARK ? "marks \"" : "ends of range \"", page->out);
    gm_page_cut(page, name, 24);
    fputc('"', page->out);
    free(name);
}

static void print_growth_place(struct gm_page *page, const struct gm_model_place *place)
{
    if (place->is_block)
        fputs("in blocks of the pool", page->out);
    else
        fprintf(page->out, "of %s memory", gm_kind_name(place->kind));
    if (gm_kind_is_host(place->kind))
        fputs(" of the host", page->out);
    else if (place->device >= 0)
        fprintf(page->out, " on device %d", place->device);
}

static void print_growing(const struct gm_view *view, const struct gm_model_growing *growing)
{
    const struct gm_model_place *place = &view->model->places[growing->place];
    struct gm_page *page = view->page;
    gm_page_print(page, GM_BAD, "  +%s", SIZE(gm_model_growth(growing)));
    fputc(' ', page->out);
    print_growth_place(page, place);
    fprintf(page->out, "\n    over the last %s of %s ", COUNT(growing->over),
            COUNT(growing->marks));
    print_series(page, growing);
    fputc(':', page->out);
    for (size_t i = 0; i <= GM_GROWTH_PARTS; i++)
        fprintf(page->out, "%s %s", i ? "," : "\n   ", SIZE(growing->bytes[i]));
    fputc('\n', page->out);
    gm_place_text(view, place->stack, 4);
}

void gm_growth_text(const struct gm_view *view)
{
    size_t count = view->run->growing_count, top = gm_view_rows(view, GM_VIEW_ROWS);
    if (count)
        gm_page_heading(view->page, "Growth", "more live from mark to mark, and never less");
    for (size_t i = 0; i < count && i < top; i++)
        print_growing(view, &view->run->growing[i]);
    gm_more_places_text(view, count, top);
}
