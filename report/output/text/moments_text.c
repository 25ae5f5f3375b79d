/* See sections.h. */
#include "base/each.h"
#include "output/headline.h"
#include "output/text/sections.h"
#include <inttypes.h>
#include <stdlib.h>

#define LIBRARIES_SHOWN 3u
#define LEFT_SHOWN 3u       /* places of what was left */
#define CURVE_EVENTS_MIN 8u /* fewer make no curve */

static void print_device_curve(const struct gm_view *view, const struct gm_model_device *device)
{
    const struct gm_model_run *run = view->run;
    if (device->curve && run->events >= CURVE_EVENTS_MIN && run->device_changes >= CURVE_EVENTS_MIN)
        gm_curve_text(view, "in use", device->curve, 0);
}

/* ---- a device, by blocks of its pool --------------------------------------------------------- */

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

/* The libraries whose memory is in no pool, at the peak of the device. */
static void print_outside(const struct gm_view *view, const struct gm_model_device *device)
{
    char text[160] = "";
    size_t used = 0, shown = 0;
    uint64_t rest = 0;
    for (size_t i = 0; device && i < device->library_count; i++) {
        const struct gm_library_line *line = &device->libraries[i];
        uint64_t bytes = line->at[GM_AT_PEAK].bytes;
        if (line->pool || !bytes)
            continue;
        if (shown++ < LIBRARIES_SHOWN && used < sizeof(text))
            used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%.20s %s",
                                     used ? ", " : "", line->name, SIZE(bytes));
        else
            rest += bytes;
    }
    if (rest && used < sizeof(text))
        snprintf(text + used, sizeof(text) - used, ", others %s", SIZE(rest));
    if (text[0])
        gm_page_paragraph(view->page, GM_PLAIN, 4, "Outside the pool, at the device's peak: %s",
                          text);
}

/* What the driver holds for this process beside what was tracked, and what others do. */
static void print_beside(const struct gm_view *view, const struct gm_model_device *device)
{
    if (device && device->residuals)
        gm_page_paragraph(view->page, GM_PLAIN, 4,
                          "Driver (contexts, modules) beside that: %s%s at most",
                          device->largest.estimated ? "about " : "", SIZE(device->largest.bytes));
    if (device)
        gm_all_processes_text(view, device, 4);
}

/* Whether stacks tell what some of the memory is for. */
static bool has_purpose(const struct gm_model_pool_state *state)
{
    for (unsigned i = 0; i < GM_CATEGORIES; i++)
        if (i != GM_CATEGORY_OTHER && i != GM_CATEGORY_CACHE && state->categories[i].bytes)
            return true;
    return false;
}

/* `says`, `unit`: what stands around the bytes in use; `rest`: what those of no array are. */
static void print_parts_in_use(struct gm_page *page, const struct gm_model_in_use_told *told,
                               const char *says, const char *unit, const char *rest)
{
    gm_page_paragraph(page, GM_DIM, 4,
                      "%s %" PRIu64 "%s in use: %" PRIu64 " of arrays, %" PRIu64
                      " that round these up, %" PRIu64 " %s.",
                      says, told->in_use, unit, told->allocated, told->rounding,
                      told->in_use - told->allocated - told->rounding, rest);
}

/* To the byte: who holds the two figures of JAX against each other finds the difference. Where the program had waited for its
 * computations when it last asked, the rest is what is left of chunks alone. */
static void print_in_use(struct gm_page *page, const struct gm_model_pool_state *state,
                         const struct gm_model_pool *pool)
{
    if (state->in_use > state->allocated)
        print_parts_in_use(
            page, &(struct gm_model_in_use_told){GM_SAME(state, in_use, allocated, rounding)},
            "XLA counts", " bytes",
            "of no array (temporaries, constants, what the device still works with, remainders of "
            "chunks)");
    if (!pool->told_count)
        return;
    const struct gm_model_in_use_told *last = &pool->told[pool->told_count - 1];
    if (last->in_use >= last->allocated)
        print_parts_in_use(page, last, "When last asked (memory_stats), XLA told of", "",
                           "that lie beside these in their chunks, or that still ran");
}

/* Of a computation that needs more than its arrays: what ran then. */
static void print_in_use_peak(const struct gm_view *view, const struct gm_model_in_use_peak *peak)
{
    uint32_t stack = view->model->places[peak->place].stack;
    struct gm_text name = peak->executable;
    char compiled[128] = "", running[256];
    char *clean = gm_clean_copy((struct gm_text){name.bytes, name.size < 60 ? name.size : 60});
    if (peak->temporaries)
        snprintf(compiled, sizeof(compiled), " (%s%s%s, as compiled)", clean, clean[0] ? ": " : "",
                 SIZE(peak->temporaries));
    free(clean);
    snprintf(running, sizeof(running),
             "temporaries of this call%s, or of what still ran beside it:", compiled);
    gm_page_paragraph(
        view->page, GM_PLAIN, 4, "At most %s were in use, as XLA counts, %s of that no array: %s",
        SIZE(peak->bytes), SIZE(peak->bytes - peak->arrays),
        stack == GM_NONE     ? "before what is on record."
        : peak->is_compiling ? "kernels that XLA's autotuner tried out when this was compiled:"
                             : running);
    if (stack != GM_NONE)
        gm_place_text(view, stack, 0);
}

static void print_pool(const struct gm_view *view, const struct gm_model_pool *pool,
                       const struct gm_refusal *refusal)
{
    const struct gm_model_moment *moment = gm_model_moment(view->run, pool->at_peak);
    bool is_failure = refusal->is_of_pool && refusal->device == pool->device;
    if (is_failure)
        moment = gm_model_moment(view->run, refusal->moment);
    char title[96];
    if (!moment || !moment->pool)
        return;
    snprintf(title, sizeof(title), "Who held %s's pool on device %d %s", pool->owner, pool->device,
             is_failure ? "when memory ran out" : "at its peak");
    gm_page_heading(view->page, title, NULL);
    gm_page_print(view->page, GM_PLAIN, "    %s in blocks, %s reserved, at %s\n",
                  SIZE(moment->pool->allocated), SIZE(moment->pool->reserved),
                  TIME(moment->time_ns));
    print_in_use(view->page, moment->pool, pool);
    if (has_purpose(moment->pool))
        gm_purposes_text(view->page, 4, moment->pool);
    gm_blocks_text(view, moment->pool);
    if (pool->in_use_peak.bytes - pool->in_use_peak.arrays > pool->in_use_peak.bytes / 100)
        print_in_use_peak(view, &pool->in_use_peak);
    if (pool->drawn && pool->allocs >= (int64_t)CURVE_EVENTS_MIN)
        gm_curve_text(view, "blocks", pool->drawn, 0);
    if (view->verbose)
        gm_pool_text(view, pool);
}

/* ---- devices --------------------------------------------------------------------------------- */

static void print_samples(const struct gm_view *view, const struct gm_model_moment *moment)
{
    gm_samples_text(view, moment->samples, moment->sample_count, moment->bytes, 0, GM_VIEW_ROWS);
}

static void print_peak_line(const struct gm_view *view, const struct gm_model_device *device)
{
    const struct gm_model_moment *peak = gm_model_moment(view->run, device->peak);
    char total[64] = "";
    if (device->total) /* managed memory need not be on the device, and more than it has */
        snprintf(total, sizeof(total), "%s %s",
                 peak->bytes <= gm_amount(device->total) ? " of" : ", the device has",
                 SIZE(device->total));
    gm_page_print(view->page, GM_BOLD, "Peak of device %d", device->id);
    gm_page_print(view->page, GM_PLAIN, "  %s%s,%s%s after the start\n", BYTES(peak->bytes), total,
                  gm_page_columns(view->page) < GM_PAGE_COLUMNS ? "\n    " : " ",
                  TIME(peak->time_ns));
}

static void print_device(const struct gm_view *view, const struct gm_model_device *device,
                         const struct gm_refusal *refusal)
{
    const struct gm_model_moment *peak = gm_model_moment(view->run, device->peak);
    const struct gm_model_moment *then = gm_model_moment(view->run, refusal->moment);
    const struct gm_model_pool *pool = gm_model_pool(view->run, device->id);
    bool has_failed = refusal->is_there && refusal->device == device->id && then &&
                      !refusal->is_of_pool && then->sample_count;
    if (!peak)
        return;
    fputc('\n', view->page->out);
    print_peak_line(view, device);
    if (has_failed)
        gm_page_print(view->page, GM_PLAIN, "    when memory ran out, %s were live:\n",
                      BYTES(then->bytes));
    if (has_failed || !pool)
        print_samples(view, has_failed ? then : peak);
    if (pool)
        print_outside(view, device);
    print_beside(view, device);
    if (view->verbose)
        gm_device_details_text(view, device);
    if (!pool)
        print_device_curve(view, device);
    else
        print_pool(view, pool, refusal);
    if (pool && view->verbose && !has_failed) {
        gm_page_print(view->page, GM_PLAIN,
                      "  Who made the driver give memory, at the device's peak:\n");
        print_samples(view, peak);
    }
    if (view->verbose)
        gm_libraries_text(view, device);
}

static const struct gm_model_device *fullest(const struct gm_model_run *run,
                                             const struct gm_refusal *refusal)
{
    const struct gm_model_device *found = NULL;
    for (size_t i = 0; i < run->device_count; i++) {
        const struct gm_model_device *device = &run->devices[i];
        if (device->peak == GM_NONE)
            continue;
        if (refusal->is_there && device->id == refusal->device)
            return device;
        if (!found || device->all.peak > found->all.peak)
            found = device;
    }
    return found;
}

void gm_devices_text(const struct gm_view *view)
{
    struct gm_refusal refusal = gm_refusal_of(view->run);
    const struct gm_model_device *first = fullest(view->run, &refusal);
    bool has_more = false;
    if (!first)
        return;
    print_device(view, first, &refusal);
    for (size_t i = 0; i < view->run->device_count; i++) {
        const struct gm_model_device *device = &view->run->devices[i];
        if (device == first || device->peak == GM_NONE)
            continue;
        if (view->verbose) {
            print_device(view, device, &refusal);
            continue;
        }
        if (!has_more)
            fputc('\n', view->page->out);
        has_more = true;
        print_peak_line(view, device);
        gm_all_processes_text(view, device, 4);
        gm_page_print(view->page, GM_DIM, "    who held it: gpumem report --device %d\n",
                      device->id);
    }
}

void gm_pinned_text(const struct gm_view *view)
{
    const struct gm_model_moment *peak = gm_model_moment(view->run, view->run->pinned_peak);
    const struct gm_model_tally *pinned = &view->run->host[GM_KIND_PINNED];
    const struct gm_model_tally *registered = &view->run->host[GM_KIND_REGISTERED];
    if (peak) {
        fputc('\n', view->page->out);
        gm_page_paragraph(
            view->page, GM_PLAIN, 0, "Pinned host memory: peak %s, %s after the start; %s %s",
            BYTES(pinned->peak), TIME(peak->time_ns), BYTES(pinned->live), gm_when_left(view->run));
    }
    if (peak && view->verbose)
        print_samples(view, peak);
    if (registered->allocs && view->verbose)
        gm_page_print(view->page, GM_PLAIN, "\nRegistered host memory: peak %s; %s %s\n",
                      BYTES(registered->peak), BYTES(registered->live), gm_when_left(view->run));
}
