/* See brief.h. */
#include "base/curve.h"
#include "base/memory.h"
#include "output/brief/brief.h"
#include "output/headline.h"
#include "output/text/sections.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define LIBRARIES_SHOWN 3u
#define LEFT_SHOWN 3u       /* places of what was left */
#define CURVE_EVENTS_MIN 8u /* fewer make no curve */

/* ---- use over time --------------------------------------------------------------------------- */

static void print_column(const struct gm_page *page, double share)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char steps[] = " .,-=+*%@";
    size_t step = (size_t)(share * 8 + 0.5);
    step = step > 8 ? 8 : step;
    if (page->ascii)
        fputc(steps[step], page->out);
    else
        fputs(blocks[step], page->out);
}

/* The largest value of each stretch, and what the height of a column means. Times of a simulated run mean nothing. */
static void print_curve(const struct gm_view *view, const struct gm_curve *curve, const char *name)
{
    struct gm_page *page = view->page;
    uint64_t least = UINT64_MAX, most = 0;
    bool is_simulated = view->run->simulated;
    unsigned columns = gm_page_columns(page) - (is_simulated ? 49 : 40);
    for (unsigned column = 0; column < columns; column++) {
        uint64_t value = gm_curve_most(curve, 0, column, column + 1, columns);
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    uint64_t base = least > most / 2 && least < most ? least - (most - least) / 8 : 0;
    if (!most)
        return;
    gm_page_print(page, GM_PLAIN, "    %-8s ", name);
    gm_page_begin(page, GM_DIM);
    for (unsigned column = 0; column < columns; column++) {
        uint64_t value = gm_curve_most(curve, 0, column, column + 1, columns);
        double share = (double)(value - base) / (double)(most - base);
        print_column(page, value && share < 1.0 / 8 ? 1.0 / 8 : share);
    }
    gm_page_end(page, GM_DIM);
    gm_page_print(page, GM_DIM, " %s to %s%s\n", SIZE(base), SIZE(most),
                  is_simulated ? ", by call" : "");
}

static void print_device_curve(const struct gm_view *view, const struct gm_model_device *device)
{
    const struct gm_model_run *run = view->run;
    if (device->curve && run->events >= CURVE_EVENTS_MIN && run->device_changes >= CURVE_EVENTS_MIN)
        print_curve(view, device->curve, "in use");
}

/* ---- a device, by allocations ---------------------------------------------------------------- */

static void print_samples(const struct gm_view *view, struct gm_brief_sites *sites,
                          const struct gm_model_moment *moment)
{
    struct gm_holder *parts = gm_allocate(moment->sample_count + 1, sizeof(*parts));
    size_t count;
    for (size_t i = 0; i < moment->sample_count; i++) {
        const struct gm_model_sample *sample = &moment->samples[i];
        parts[i] = (struct gm_holder){.stack = view->model->places[sample->place].stack,
                                      .bytes = sample->bytes,
                                      .count = sample->count};
    }
    struct gm_holder *holders = gm_holders_add(view->model, parts, moment->sample_count, &count);
    gm_brief_holders(view, sites, holders, count, moment->bytes, gm_view_rows(view, GM_VIEW_ROWS));
    free(holders);
    free(parts);
}

/* ---- a device, by blocks of its pool --------------------------------------------------------- */

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

static void print_blocks(const struct gm_view *view, struct gm_brief_sites *sites,
                         const struct gm_model_pool_state *state)
{
    struct gm_holder *parts = gm_allocate(state->line_count + 1, sizeof(*parts));
    bool has_free = state->reserved > state->allocated;
    int64_t free_bytes = has_free ? gm_amount(state->reserved - state->allocated) : 0;
    int64_t whole = gm_amount(has_free ? state->reserved : state->allocated);
    size_t count;
    for (size_t i = 0; i < state->line_count; i++)
        parts[i] = (struct gm_holder){state->lines[i].stack, gm_amount(state->lines[i].bytes),
                                      gm_amount(state->lines[i].count), &state->lines[i]};
    struct gm_holder *holders = gm_holders_add(view->model, parts, state->line_count, &count);
    gm_brief_holders(view, sites, holders, count, whole, gm_view_rows(view, GM_VIEW_ROWS));
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

/* Whether stacks tell what some of the memory is for. */
static bool has_purpose(const struct gm_model_pool_state *state)
{
    for (unsigned i = 0; i < GM_CATEGORIES; i++)
        if (i != GM_CATEGORY_OTHER && i != GM_CATEGORY_CACHE && state->categories[i].bytes)
            return true;
    return false;
}

/* To the byte: who holds the two figures of JAX against each other finds the difference. */
static void print_in_use(struct gm_page *page, const struct gm_model_pool_state *state)
{
    gm_page_paragraph(page, GM_DIM, 4,
                      "XLA counts %" PRIu64 " bytes in use: %" PRIu64 " of arrays, %" PRIu64
                      " that round these up, %" PRIu64 " of no array (temporaries, constants, what "
                      "the device still works with, remainders of chunks).",
                      state->in_use, state->allocated, state->rounding,
                      state->in_use - state->allocated - state->rounding);
}

static void print_pool(const struct gm_view *view, struct gm_brief_sites *sites,
                       const struct gm_model_pool *pool, const struct gm_refusal *refusal)
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
    if (moment->pool->in_use > moment->pool->allocated)
        print_in_use(view->page, moment->pool);
    if (has_purpose(moment->pool))
        gm_purposes_text(view->page, 4, moment->pool);
    print_blocks(view, sites, moment->pool);
    if (pool->drawn && pool->allocs >= (int64_t)CURVE_EVENTS_MIN)
        print_curve(view, pool->drawn, "blocks");
}

/* ---- devices --------------------------------------------------------------------------------- */

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

static void print_device(const struct gm_view *view, struct gm_brief_sites *sites,
                         const struct gm_model_device *device, const struct gm_refusal *refusal)
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
    if (!pool)
        print_samples(view, sites, has_failed ? then : peak);
    else if (has_failed)
        print_samples(view, sites, then);
    if (pool)
        print_outside(view, device);
    print_beside(view, device);
    if (!pool)
        print_device_curve(view, device);
    else
        print_pool(view, sites, pool, refusal);
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

void gm_brief_devices(const struct gm_view *view, struct gm_brief_sites *sites)
{
    struct gm_refusal refusal = gm_refusal_of(view->run);
    const struct gm_model_device *first = fullest(view->run, &refusal);
    bool has_more = false;
    if (!first)
        return;
    print_device(view, sites, first, &refusal);
    for (size_t i = 0; i < view->run->device_count; i++) {
        const struct gm_model_device *device = &view->run->devices[i];
        if (device == first || device->peak == GM_NONE)
            continue;
        if (!has_more)
            fputc('\n', view->page->out);
        has_more = true;
        print_peak_line(view, device);
        gm_all_processes_text(view, device, 4);
        gm_page_print(view->page, GM_DIM, "    who held it: gpumem report --device %d\n",
                      device->id);
    }
}

void gm_brief_pinned(const struct gm_view *view)
{
    const struct gm_model_moment *peak = gm_model_moment(view->run, view->run->pinned_peak);
    const struct gm_model_tally *pinned = &view->run->host[GM_KIND_PINNED];
    if (!peak)
        return;
    fputc('\n', view->page->out);
    gm_page_paragraph(view->page, GM_PLAIN, 0,
                      "Pinned host memory: peak %s, %s after the start; %s %s", BYTES(pinned->peak),
                      TIME(peak->time_ns), BYTES(pinned->live), gm_when_left(view->run));
}

/* ---- what was left --------------------------------------------------------------------------- */

/* One line for memory that was not freed and is no leak. */
static void print_other_classes(const struct gm_view *view)
{
    static const char *const means[GM_LEAK_CLASSES] = {
        [GM_LEAK_LATE] = "freed too late: the driver was shut down when the free came",
        [GM_LEAK_IMPLICIT] = "freed with its context, not by the program",
        [GM_LEAK_EXTERNAL] = "of another owner, or held by a vendor's library",
        [GM_LEAK_CACHED] = "cached by a framework, for its next use",
        [GM_LEAK_UNTOLD] = "freed or not: the end of its context is not on record",
        [GM_LEAK_IGNORED] = "that the program says is no leak (gpumem_ignore_begin)",
    };
    for (unsigned class = GM_LEAK_LATE; class < GM_LEAK_CLASSES; class ++)
        if (view->run->leaked_count[class])
            gm_page_paragraph(view->page, GM_DIM, 4, "%s %s", BYTES(view->run->leaked[class]),
                              means[class]);
}

void gm_brief_left(const struct gm_view *view, struct gm_brief_sites *sites)
{
    static const char *const titles[] = {
        [GM_ENDING_NORMAL] = "Leaked: never freed",
        [GM_ENDING_RUNNING] = "Live now",
        [GM_ENDING_CUT] = "Live when the process was cut off",
        [GM_ENDING_FAILED] = "Live when the device failed",
    };
    const struct gm_model_run *run = view->run;
    const struct gm_model_moment *end = gm_model_moment(run, run->end);
    size_t sample_count = end ? end->sample_count : 0, part_count = 0, count;
    struct gm_holder *parts = gm_allocate(sample_count + 1, sizeof(*parts));
    int64_t whole = 0, others = 0;
    for (size_t i = 0; i < sample_count; i++) {
        const struct gm_model_place *place = &view->model->places[end->samples[i].place];
        bool is_told = place->leak_class == GM_LEAK || place->leak_class == GM_LEAK_LIVE;
        if (!is_told || place->is_block)
            continue;
        whole += end->samples[i].bytes;
        parts[part_count++] = (struct gm_holder){
            .stack = place->stack, .bytes = end->samples[i].bytes, .count = end->samples[i].count};
    }
    for (unsigned class = GM_LEAK_LATE; class < GM_LEAK_CLASSES; class ++)
        others += run->leaked_count[class];
    if (part_count || others)
        gm_page_heading(view->page,
                        !part_count && !run->as_of_ns ? "Left at the end"
                        : run->was_asked_to_end       ? "Live when SIGTERM ended it"
                                                      : titles[run->ending],
                        NULL);
    struct gm_holder *holders = gm_holders_add(view->model, parts, part_count, &count);
    if (part_count)
        gm_brief_holders(view, sites, holders, count, whole, gm_view_rows(view, LEFT_SHOWN));
    print_other_classes(view);
    free(holders);
    free(parts);
}
