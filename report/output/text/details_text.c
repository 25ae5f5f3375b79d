/* What `report -v` has beside the page: see sections.h. */
#include "base/text.h"
#include "output/cuda_error.h"
#include "output/headline.h"
#include "output/text/sections.h"
#include <stdlib.h>
#include <string.h>

#define ROWS_OF_FAILURE 3u /* who held memory then */

/* ---- devices --------------------------------------------------------------------------------- */

static void print_device_name(const struct gm_view *view, const struct gm_model_device *device)
{
    if (!device->name.size)
        return;
    char *name = gm_clean_copy(device->name);
    gm_page_print(view->page, GM_DIM, "    %.40s\n", name);
    free(name);
}

/* What kinds the memory at a peak was of, if not all of one. */
static void print_kinds(const struct gm_view *view, const struct gm_model_moment *moment)
{
    int64_t bytes[GM_KINDS] = {0};
    unsigned kinds = 0;
    for (size_t i = 0; i < moment->sample_count; i++) {
        const struct gm_model_sample *sample = &moment->samples[i];
        unsigned kind = view->model->places[sample->place].kind;
        kinds += bytes[kind] == 0 && sample->bytes != 0;
        bytes[kind] += sample->bytes;
    }
    if (kinds < 2)
        return;
    const char *separator = "    ";
    for (unsigned kind = 0; kind < GM_KINDS; kind++)
        if (bytes[kind]) {
            gm_page_print(view->page, GM_PLAIN, "%s%s %s", separator, gm_kind_name(kind),
                          BYTES(bytes[kind]));
            separator = ", ";
        }
    fputc('\n', view->page->out);
}

static void print_residual(const struct gm_view *view, const char *when,
                           const struct gm_model_residual *residual)
{
    gm_page_paragraph(view->page, GM_PLAIN, 4,
                      "Driver (contexts, modules) %s: %s%s (%s used, %s tracked), at %s", when,
                      residual->estimated ? "about " : "", SIZE(residual->bytes),
                      SIZE(residual->used), SIZE(residual->tracked), TIME(residual->time_ns));
}

static void print_holes_line(struct gm_page *page, const char *when, const struct gm_holes *holes)
{
    unsigned fragmentation = gm_holes_fragmentation(holes);
    if (holes->allocations == 0)
        return;
    if (holes->count == 0)
        gm_page_paragraph(page, GM_PLAIN, 4, "Fragmentation of addresses %s: %s without a gap",
                          when, SIZE(holes->live));
    else
        gm_page_paragraph(page, GM_PLAIN, 4,
                          "Fragmentation of addresses %s: %s in %s gap%s, the largest %s: %u.%u%%",
                          when, SIZE(holes->free), COUNT(holes->count), gm_plural(holes->count),
                          SIZE(holes->largest), fragmentation / 10, fragmentation % 10);
}

/* One hole is no fragmentation, and neither are a few bytes that alignment costs. */
static bool is_worth_telling(const struct gm_holes *holes)
{
    return holes->count > 1 && holes->free >= holes->span / 100;
}

void gm_device_details_text(const struct gm_view *view, const struct gm_model_device *device)
{
    const struct gm_model_moment *peak = gm_model_moment(view->run, device->peak);
    print_device_name(view, device);
    print_kinds(view, peak);
    if (device->residuals && device->largest.bytes != device->last.bytes)
        print_residual(view, "at most", &device->largest);
    if (device->residuals)
        print_residual(view, "at last", &device->last);
    if (is_worth_telling(&peak->holes) || is_worth_telling(&device->holes_at_end)) {
        print_holes_line(view->page, "at the peak", &peak->holes);
        print_holes_line(view->page, gm_when_left(view->run), &device->holes_at_end);
    }
}

/* ---- refused allocations --------------------------------------------------------------------- */

/* The error that is none of memory, on a line of its own if it has a name. */
static void print_status(struct gm_page *page, const struct gm_model_failure *failure,
                         const char *api)
{
    const char *name = gm_cuda_error_name(failure->status, strncmp(api, "cuda", 4) == 0);
    gm_page_print(page, GM_WARNING, "error %u", failure->status);
    if (name)
        gm_page_print(page, GM_WARNING, "\n    %s", name);
}

static void print_holes_of(struct gm_page *page, const struct gm_model_failure *failure,
                           const struct gm_holes *holes)
{
    switch (failure->fragmentation) {
    case GM_FRAGMENTATION_CERTAIN:
        gm_page_paragraph(page, GM_WARNING, 4,
                          "Between live allocations %s were free, but in holes of at most %s: "
                          "fragmentation alone is reason enough for this failure.",
                          SIZE(holes->free), SIZE(holes->largest));
        break;
    case GM_FRAGMENTATION_UNTOLD:
        gm_page_paragraph(page, GM_WARNING, 4,
                          "Between live allocations were gaps of %s, of at most %s each. Whether "
                          "fragmentation refused it cannot be told: the size of the device is not "
                          "on record.",
                          SIZE(holes->free), SIZE(holes->largest));
        break;
    case GM_FRAGMENTATION_NONE:
        break;
    }
}

static void print_refused(const struct gm_view *view, const struct gm_model_failure *failure)
{
    const struct gm_model_place *place = &view->model->places[failure->place];
    const struct gm_model_moment *moment = gm_model_moment(view->run, failure->moment);
    struct gm_page *page = view->page;
    gm_page_print(page, GM_BOLD, "  %s", ASKED(failure->size, failure->purpose));
    gm_page_print(page, GM_PLAIN, "%s on %s by %s: ", failure->purpose ? "," : " asked",
                  WHERE(place), place->api[0] ? place->api : "?");
    if (failure->out_of_memory)
        gm_page_print(page, GM_BAD, "out of memory");
    else
        print_status(page, failure, place->api);
    if (failure->count > 1)
        gm_page_print(page, GM_PLAIN, "\n    %s times", COUNT(failure->count));
    if (failure->count > 1 && !failure->purpose)
        gm_page_print(page, GM_PLAIN, ", at first %s", SIZE(failure->first));
    fputc('\n', page->out);
    gm_place_text(view, place->stack, 4);
    if (!moment)
        return;
    gm_page_print(page, GM_PLAIN, "    %s after the start, when %s lived on the device%s\n",
                  TIME(failure->time_ns), moment->sample_count ? BYTES(moment->bytes) : "nothing",
                  moment->sample_count ? ":" : "");
    gm_samples_text(view, moment->samples, moment->sample_count, moment->bytes, 0, ROWS_OF_FAILURE);
    print_holes_of(page, failure, &moment->holes);
}

void gm_refused_text(const struct gm_view *view)
{
    const struct gm_model_run *run = view->run;
    size_t told_before = 0, told = 0, top = gm_view_rows(view, GM_VIEW_ROWS);
    char about[128];
    if (!run->failure_count)
        return;
    snprintf(about, sizeof(about), "%s for lack of memory, %s for another reason",
             NUMBER(run->failed), NUMBER(run->rejected + run->refused_by_runtime));
    gm_page_heading(view->page, "Refused allocations", about);
    for (size_t i = run->failure_count; i-- > 0;)
        if (run->failures[i].is_of_pool)
            told_before++;
        else if (told++ < top)
            print_refused(view, &run->failures[i]);
    gm_more_places_text(view, told, top);
    if (told_before)
        gm_page_print(view->page, GM_DIM, "  %zu place%s: see PyTorch's pool, above\n", told_before,
                      gm_plural(told_before));
}

/* ---- transfers ------------------------------------------------------------------------------- */

static void print_transfer_places(const struct gm_view *view)
{
    const struct gm_model_run *run = view->run;
    struct gm_page *page = view->page;
    size_t top = gm_view_rows(view, GM_VIEW_ROWS);
    for (size_t i = 0; i < run->transfer_count && i < top; i++) {
        const struct gm_model_transfer *transfer = &run->transfers[i];
        gm_page_print(page, GM_BOLD, "  %s", BYTES(transfer->bytes));
        gm_page_print(page, GM_PLAIN, " %s, %s x %s", gm_direction_name(transfer->direction),
                      NUMBER(transfer->count), transfer->api[0] ? transfer->api : "?");
        if (transfer->pageable_count)
            gm_page_print(page, GM_WARNING, ", pageable");
        if (transfer->tiny == transfer->count)
            gm_page_print(page, GM_WARNING, ", tiny");
        fputc('\n', page->out);
        gm_place_text(view, transfer->stack, 4);
    }
    gm_more_places_text(view, run->transfer_count, top);
}

void gm_transfers_text(const struct gm_view *view)
{
    const struct gm_model_run *run = view->run;
    if (!run->transfer_count)
        return;
    gm_page_heading(view->page, "Transfers", NULL);
    gm_page_print(view->page, GM_DIM, "  %-17s %10s %12s %10s %12s %10s\n", "", "bytes", "calls",
                  "host time", "tiny calls", "pageable");
    for (size_t i = 0; i < run->direction_count; i++) {
        const struct gm_model_transfer *sum = &run->directions[i];
        gm_page_print(view->page, GM_PLAIN, "  %-17s %10s %12s %10s %12s %10s\n",
                      gm_direction_name(sum->direction), BYTES(sum->bytes), NUMBER(sum->count),
                      DURATION(sum->call_ns), NUMBER(sum->tiny),
                      sum->pageable_bytes ? BYTES(sum->pageable_bytes) : "-");
    }
    print_transfer_places(view);
}

/* ---- contexts, notes ------------------------------------------------------------------------- */

void gm_contexts_text(const struct gm_view *view)
{
    const struct gm_model_run *run = view->run;
    if (run->context_count)
        gm_page_heading(view->page, "Contexts", "who made the driver keep memory of its own");
    for (size_t i = 0; i < run->context_count; i++) {
        const struct gm_model_context *context = &run->contexts[i];
        gm_page_paragraph(view->page, GM_PLAIN, 2,
                          "%scontext on device %d, %s after the start, by %s",
                          context->primary ? "primary " : "", context->device,
                          TIME(context->time_ns), context->api[0] ? context->api : "?");
        gm_place_text(view, context->stack, 4);
    }
}
