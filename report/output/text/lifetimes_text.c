/* See sections.h. */
#include "output/text/sections.h"

#define RATE_NS 1000000000u /* of a shorter run no rate is told */

static void print_lifetime_place(const struct gm_view *view,
                                 const struct gm_model_lifetime *lifetime)
{
    const struct gm_model_place *place = &view->model->places[lifetime->place];
    struct gm_page *page = view->page;
    double rate = (double)lifetime->allocs / ((double)view->run->duration_ns / 1e9);
    bool has_rate = view->run->duration_ns >= RATE_NS;
    gm_page_print(page, GM_BOLD, "  %s", NUMBER(lifetime->short_lived));
    gm_page_print(page, GM_PLAIN, " of %s x %.40s", NUMBER(lifetime->allocs),
                  place->api[0] ? place->api : "?");
    if (has_rate && rate >= 1)
        gm_page_print(page, GM_PLAIN, ", %s a second", COUNT((uint64_t)rate));
    gm_page_print(page, GM_PLAIN, "\n    %s in all, at most %s at a time, of %s memory",
                  BYTES(lifetime->allocated), BYTES(lifetime->peak), gm_kind_name(place->kind));
    if (place->device >= 0)
        gm_page_print(page, GM_PLAIN, " on device %d", place->device);
    fputc('\n', page->out);
    gm_place_text(view, place->stack, 4);
}

void gm_lifetimes_text(const struct gm_view *view)
{
    size_t told = 0, top = gm_view_rows(view, GM_VIEW_ROWS);
    for (size_t i = 0; i < view->run->lifetime_count; i++) {
        const struct gm_model_lifetime *lifetime = &view->run->lifetimes[i];
        if (!lifetime->temporary)
            continue;
        if (told == 0)
            gm_page_heading(view->page, "Temporaries", "freed within 1 ms of their allocation");
        if (told++ < top)
            print_lifetime_place(view, lifetime);
    }
    gm_more_places_text(view, told, top);
}
