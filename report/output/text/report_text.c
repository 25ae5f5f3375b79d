/* See report_text.h. */
#include "output/text/report_text.h"
#include "base/each.h"
#include "base/memory.h"
#include "base/text.h"
#include "output/cuda_error.h"
#include "output/headline.h"
#include "output/text/balance.h"
#include "output/text/sections.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_OF_FAILURE 3u /* who held memory then */

/* "device 0", "the host", "an unknown device". */
static const char *place_name(unsigned kind, int device, char text[GM_SIZE_TEXT])
{
    if (gm_kind_is_host(kind))
        return "the host";
    if (device < 0)
        return "an unknown device";
    snprintf(text, GM_SIZE_TEXT, "device %d", device);
    return text;
}
#define PLACE(kind, device) place_name((kind), (device), (char[GM_SIZE_TEXT]){0})

static void print_stack(const struct gm_view *view, uint32_t stack, unsigned indent)
{
    gm_page_stack(view->page, indent, gm_model_stack(view->model, stack));
}

/* ---- who and what ---------------------------------------------------------------------------- */

/* Header of a diff; a diff has no verdict. */
static void print_compared(const struct gm_view *view)
{
    const char *const paths[] = {view->run->path, view->run->base_path};
    char *clean[2];
    for (size_t i = 0; i < 2; i++)
        clean[i] = gm_clean_copy((struct gm_text){paths[i], strlen(paths[i])});
    gm_page_paragraph(view->page, GM_BOLD, 0, "gpumem difference of %.900s to %.900s",
                      clean[0][0] ? clean[0] : "nothing", clean[1][0] ? clean[1] : "nothing");
    if (!view->run->complete)
        gm_page_paragraph(view->page, GM_BAD, 0, "INCOMPLETE: not all of both was seen.");
    for (size_t i = 0; i < 2; i++)
        free(clean[i]);
}

/* ---- peaks ----------------------------------------------------------------------------------- */

static void print_device_name(const struct gm_view *view, const struct gm_model_device *device)
{
    if (!device->name.size)
        return;
    char *name = gm_clean_copy(device->name);
    gm_page_print(view->page, GM_DIM, "  %.40s\n", name);
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
    const char *separator = "  ";
    for (unsigned kind = 0; kind < GM_KINDS; kind++)
        if (bytes[kind]) {
            gm_page_print(view->page, GM_PLAIN, "%s%s %s", separator, gm_kind_name(kind),
                          BYTES(bytes[kind]));
            separator = ", ";
        }
    fputc('\n', view->page->out);
}

/* Whether blocks of a pool were told. */
static bool has_pool(const struct gm_model_run *run, int device)
{
    for (size_t i = 0; i < run->pool_count; i++)
        if (run->pools[i].device == device && run->pools[i].at_peak != GM_NONE)
            return true;
    return false;
}

static void print_peak(const struct gm_view *view, const struct gm_model_device *device)
{
    const struct gm_model_moment *peak = gm_model_moment(view->run, device->peak);
    char title[64], about[128];
    if (!peak)
        return;
    snprintf(title, sizeof(title), "Peak of %s", PLACE(GM_KIND_DEVICE, device->id));
    int length = snprintf(about, sizeof(about), "%s", BYTES(peak->bytes));
    if (device->total) /* managed memory need not be on the device, and more than it has */
        length += snprintf(about + length, sizeof(about) - (size_t)length, "%s %s",
                           peak->bytes <= gm_amount(device->total) ? " of" : ", the device has",
                           SIZE(device->total));
    snprintf(about + length, sizeof(about) - (size_t)length, ", %s after the start",
             TIME(peak->time_ns));
    gm_page_heading(view->page, title, about);
    print_device_name(view, device);
    if (has_pool(view->run, device->id))
        gm_page_paragraph(view->page, GM_DIM, 2,
                          "PyTorch's pool takes memory in segments. A line here made it take one; "
                          "the lines that held what is in them are above.");
    print_kinds(view, peak);
    gm_owners_text(view, peak, gm_view_rows(view, GM_VIEW_ROWS), 0);
    gm_all_processes_text(view, device, 2);
    gm_libraries_text(view, device);
}

/* ---- residual -------------------------------------------------------------------------------- */

static void print_residual_line(const struct gm_view *view, const char *when,
                                const struct gm_model_residual *residual)
{
    gm_page_print(view->page, GM_PLAIN, "  %-12s  ", when);
    gm_page_print(view->page, GM_BOLD, "%s%s", residual->estimated ? "about " : "",
                  SIZE(residual->bytes));
    gm_page_print(view->page, GM_PLAIN, " (%s used, %s tracked) at %s\n", SIZE(residual->used),
                  SIZE(residual->tracked), TIME(residual->time_ns));
}

static void print_residual(const struct gm_view *view, const struct gm_model_device *device)
{
    char title[64];
    if (!device->residuals)
        return;
    snprintf(title, sizeof(title), "Residual of %s", PLACE(GM_KIND_DEVICE, device->id));
    gm_page_heading(view->page, title, "what the driver holds beside what was tracked");
    if (device->largest.bytes != device->last.bytes)
        print_residual_line(view, "at most", &device->largest);
    print_residual_line(view, "at last", &device->last);
}

/* ---- leaks ----------------------------------------------------------------------------------- */

static bool has_pools(const struct gm_model_run *run)
{
    for (size_t i = 0; i < run->pool_count; i++)
        if (run->pools[i].at_peak != GM_NONE)
            return true;
    return false;
}

/* Memory of another owner is nobody's leak here, and no library's either. */
static bool is_told_leak(const struct gm_model_place *place, enum gm_leak_class leak_class,
                         enum gm_leak_part part)
{
    bool is_foreign = place->kind == GM_KIND_EXTERNAL;
    return place->leak_class == leak_class &&
           (part == GM_LEAKS_ALL || is_foreign == (part == GM_LEAKS_FOREIGN));
}

void gm_leaks_text(const struct gm_view *view, enum gm_leak_class leak_class,
                   enum gm_leak_part part)
{
    const struct gm_model_moment *end = gm_model_moment(view->run, view->run->end);
    size_t told = 0, top = gm_view_rows(view, GM_VIEW_ROWS);
    for (size_t i = 0; end && i < end->sample_count; i++) {
        const struct gm_model_sample *sample = &end->samples[i];
        const struct gm_model_place *place = &view->model->places[sample->place];
        if (!is_told_leak(place, leak_class, part) || told++ >= top)
            continue;
        gm_page_print(view->page, GM_BOLD, "  %s", BYTES(sample->bytes));
        gm_page_print(view->page, GM_PLAIN, " of %s memory on %s, %s x %s\n",
                      gm_kind_name(place->kind), PLACE(place->kind, place->device),
                      NUMBER(sample->count), place->api[0] ? place->api : "?");
        print_stack(view, place->stack, 6);
    }
    gm_more_places_text(view, told, top);
}

/* One section of what was left. */
static void print_leaks_of(const struct gm_view *view, enum gm_leak_class leak_class,
                           enum gm_leak_part part, const char *title, const char *explanation)
{
    const struct gm_model_moment *end = gm_model_moment(view->run, view->run->end);
    int64_t bytes = 0, count = 0;
    for (size_t i = 0; end && i < end->sample_count; i++)
        if (is_told_leak(&view->model->places[end->samples[i].place], leak_class, part)) {
            bytes += end->samples[i].bytes;
            count += end->samples[i].count;
        }
    if (!count && !bytes)
        return;
    gm_page_heading(view->page, title, NULL);
    gm_page_paragraph(view->page, GM_PLAIN, 2, "%s in %s allocation%s: %s", BYTES(bytes),
                      NUMBER(count), gm_plural((uint64_t)count), explanation);
    bool is_told_before = leak_class == GM_LEAK_CACHED && has_pools(view->run);
    if (!is_told_before)
        gm_leaks_text(view, leak_class, part);
}

static void print_leaks(const struct gm_view *view)
{
    const struct gm_model_run *run = view->run;
    print_leaks_of(view, GM_LEAK, GM_LEAKS_ALL, "Leaked", "never freed");
    print_leaks_of(view, GM_LEAK_LIVE, GM_LEAKS_ALL, "Live",
                   run->ending == GM_ENDING_CUT      ? "live when the process was cut off"
                   : run->ending == GM_ENDING_FAILED ? "live when the device failed"
                   : run->as_of_ns                   ? "live now: the process is still running"
                                                     : "live when the snapshot was taken");
    print_leaks_of(view, GM_LEAK_LATE, GM_LEAKS_ALL, "Freed too late",
                   "the driver was shut down when the free came");
    print_leaks_of(view, GM_LEAK_IMPLICIT, GM_LEAKS_ALL, "Freed with its context",
                   "not freed before the reset or the end of its context");
    print_leaks_of(view, GM_LEAK_EXTERNAL, GM_LEAKS_OWN, "Held by libraries",
                   "allocated by a vendor's library");
    print_leaks_of(view, GM_LEAK_EXTERNAL, GM_LEAKS_FOREIGN, "Another owner's memory",
                   "imported or opened here, and not closed");
    print_leaks_of(view, GM_LEAK_CACHED, GM_LEAKS_ALL, "Cached by frameworks",
                   "kept by a framework, in use or for its next use");
    print_leaks_of(view, GM_LEAK_UNTOLD, GM_LEAKS_ALL, "Freed or not",
                   "whether their context ended is not on record: there were too many");
    print_leaks_of(view, GM_LEAK_IGNORED, GM_LEAKS_ALL, "Ignored",
                   "not freed, and no leak, as the program says (gpumem_ignore_begin)");
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
                  PLACE(place->kind, place->device), place->api[0] ? place->api : "?");
    if (failure->out_of_memory)
        gm_page_print(page, GM_BAD, "out of memory");
    else
        print_status(page, failure, place->api);
    if (failure->count > 1)
        gm_page_print(page, GM_PLAIN, "\n    %s times", COUNT(failure->count));
    if (failure->count > 1 && !failure->purpose)
        gm_page_print(page, GM_PLAIN, ", at first %s", SIZE(failure->first));
    fputc('\n', page->out);
    print_stack(view, place->stack, 6);
    if (!moment)
        return;
    gm_page_print(page, GM_PLAIN, "    %s after the start, when %s lived on the device%s\n",
                  TIME(failure->time_ns), moment->sample_count ? BYTES(moment->bytes) : "nothing",
                  moment->sample_count ? ":" : "");
    gm_owners_text(view, moment, gm_view_rows(view, ROWS_OF_FAILURE), 4);
    print_holes_of(page, failure, &moment->holes);
}

static void print_failures(const struct gm_view *view)
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

/* ---- fragmentation, pinned memory ------------------------------------------------------------ */

static void print_holes_line(struct gm_page *page, const char *when, const struct gm_holes *holes)
{
    unsigned fragmentation = gm_holes_fragmentation(holes);
    if (holes->allocations == 0)
        return;
    if (holes->count == 0) {
        gm_page_print(page, GM_PLAIN, "  %-12s  %s without a gap\n", when, SIZE(holes->live));
        return;
    }
    gm_page_print(page, GM_PLAIN, "  %-12s  %s in %s gap%s, the largest %s: %u.%u%%\n", when,
                  SIZE(holes->free), COUNT(holes->count), gm_plural(holes->count),
                  SIZE(holes->largest), fragmentation / 10, fragmentation % 10);
}

/* One hole is no fragmentation, and neither are a few bytes that alignment costs. */
static bool is_worth_telling(const struct gm_holes *holes)
{
    return holes->count > 1 && holes->free >= holes->span / 100;
}

static void print_fragmentation(const struct gm_view *view, const struct gm_model_device *device)
{
    const struct gm_model_moment *peak = gm_model_moment(view->run, device->peak);
    char title[64];
    if (!peak || (!is_worth_telling(&peak->holes) && !is_worth_telling(&device->holes_at_end)))
        return;
    snprintf(title, sizeof(title), "Fragmentation of %s", PLACE(GM_KIND_DEVICE, device->id));
    gm_page_heading(view->page, title, "of addresses: 1 - largest gap / all gaps");
    print_holes_line(view->page, "at the peak", &peak->holes);
    print_holes_line(view->page, gm_when_left(view->run), &device->holes_at_end);
}

static void print_pinned(const struct gm_view *view)
{
    const struct gm_model_tally *host = view->run->host;
    const struct gm_model_moment *peak = gm_model_moment(view->run, view->run->pinned_peak);
    char about[160];
    if (peak) {
        snprintf(about, sizeof(about), "peak %s, %s after the start; %s %s",
                 BYTES(host[GM_KIND_PINNED].peak), TIME(peak->time_ns),
                 BYTES(host[GM_KIND_PINNED].live), gm_when_left(view->run));
        gm_page_heading(view->page, "Pinned host memory", about);
        gm_owners_text(view, peak, gm_view_rows(view, GM_VIEW_ROWS), 0);
    }
    if (host[GM_KIND_REGISTERED].allocs) {
        snprintf(about, sizeof(about), "peak %s; %s %s", BYTES(host[GM_KIND_REGISTERED].peak),
                 BYTES(host[GM_KIND_REGISTERED].live), gm_when_left(view->run));
        gm_page_heading(view->page, "Registered host memory", about);
    }
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
        print_stack(view, transfer->stack, 6);
    }
    gm_more_places_text(view, run->transfer_count, top);
}

static void print_transfers(const struct gm_view *view)
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

static void print_contexts(const struct gm_view *view)
{
    const struct gm_model_run *run = view->run;
    if (run->context_count)
        gm_page_heading(view->page, "Contexts", "who made the driver keep memory of its own");
    for (size_t i = 0; i < run->context_count; i++) {
        const struct gm_model_context *context = &run->contexts[i];
        gm_page_paragraph(view->page, GM_PLAIN, 2, "%scontext on %s, %s after the start, by %s",
                          context->primary ? "primary " : "",
                          PLACE(GM_KIND_DEVICE, context->device), TIME(context->time_ns),
                          context->api[0] ? context->api : "?");
        print_stack(view, context->stack, 6);
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

static void each_device(const struct gm_view *view,
                        void (*print)(const struct gm_view *view,
                                      const struct gm_model_device *device))
{
    for (size_t i = 0; i < view->run->device_count; i++)
        print(view, &view->run->devices[i]);
}

static void print_run(const struct gm_view *view)
{
    if (view->run->base_path)
        print_compared(view);
    else
        gm_header_text(view);
    gm_findings_text(view);
    gm_pool_failures_text(view);
    gm_pools_text(view);
    each_device(view, print_peak);
    each_device(view, print_residual);
    print_leaks(view);
    gm_growth_text(view);
    print_failures(view);
    gm_phases_text(view);
    each_device(view, print_fragmentation);
    print_pinned(view);
    gm_lifetimes_text(view);
    print_transfers(view);
    print_contexts(view);
    gm_notes_section_text(view);
}

static void write_report_text(FILE *out, const struct gm_model *model,
                              const struct gm_output_options *options)
{
    struct gm_page page = {.out = out, GM_SAME(options, colour, all_frames, columns, ascii)};
    struct gm_view view = {.page = &page, .model = model, .top = options->top};
    bool many = options->many || model->run_count > 1;
    for (size_t i = 0; i < model->run_count; i++) {
        view.run = &model->runs[i];
        print_run(&view);
        if (many)
            fputs("\n----------------------------------------------------------------\n\n", out);
    }
    if (model->run_count > 1) {
        struct gm_balance balance = {0};
        gm_balance_add_model(&balance, model);
        gm_balance_text(out, &balance, options->colour);
        gm_balance_free(&balance);
    }
}

const struct gm_output gm_output_text = {
    .name = "text", .needs = GM_NEEDS_ALL & ~GM_NEEDS_LIFETIMES, .write = write_report_text};
