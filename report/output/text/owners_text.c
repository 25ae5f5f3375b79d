/* See sections.h. */
#include "output/text/sections.h"

/* How much of all it is, which says nothing of a difference. */
static void print_share(const struct gm_view *view, unsigned indent, int64_t bytes, int64_t whole)
{
    double share = whole ? 100.0 * (double)bytes / (double)whole : 0;
    fprintf(view->page->out, "%*s", (int)indent, "");
    if (view->model->is_difference)
        fprintf(view->page->out, "%6s  ", "");
    else
        fprintf(view->page->out, "%5.1f%%  ", share);
}

void gm_all_processes_text(const struct gm_view *view, const struct gm_model_device *device,
                           unsigned indent)
{
    const struct gm_model_use *use = &device->fullest;
    char own[64] = "";
    if (use->bytes <= use->own || gm_model_peak_of_all(device) > gm_amount(use->bytes))
        return;
    if (use->own)
        snprintf(own, sizeof(own), ", %s of it by others", SIZE(use->bytes - use->own));
    gm_page_paragraph(view->page, GM_PLAIN, indent,
                      "All processes together: %s at most, %s after the start%s (NVML's samples)",
                      SIZE(use->bytes), TIME(use->time_ns), own);
}

void gm_more_places_text(const struct gm_view *view, size_t count, size_t top)
{
    if (count > top)
        gm_page_print(view->page, GM_DIM, "  ... and %zu more place%s\n", count - top,
                      gm_plural(count - top));
}

void gm_owners_text(const struct gm_view *view, const struct gm_model_moment *moment, size_t top,
                    unsigned indent)
{
    struct gm_page *page = view->page;
    int64_t whole = moment->bytes, left = whole;
    for (size_t i = 0; i < moment->sample_count && i < top; i++) {
        const struct gm_model_sample *sample = &moment->samples[i];
        const struct gm_model_place *place = &view->model->places[sample->place];
        left -= sample->bytes;
        print_share(view, indent, sample->bytes, whole);
        gm_page_print(page, GM_BOLD, "%-9s", BYTES(sample->bytes));
        gm_page_print(page, GM_PLAIN, "  %s x %s", NUMBER(sample->count),
                      place->api[0] ? place->api : "?");
        if (place->kind != GM_KIND_DEVICE && place->kind != GM_KIND_PINNED)
            gm_page_print(page, GM_PLAIN, " (%s)", gm_kind_name(place->kind));
        fputc('\n', page->out);
        gm_page_stack(page, indent + 8, gm_model_stack(view->model, place->stack));
    }
    if (moment->sample_count > top) {
        gm_page_begin(page, GM_DIM);
        print_share(view, indent, left, whole);
        fprintf(page->out, "%-9s  from %zu more place%s\n", BYTES(left), moment->sample_count - top,
                gm_plural(moment->sample_count - top));
        gm_page_end(page, GM_DIM);
    }
}
