/* See sections.h. */
#include "base/text.h"
#include "output/text/sections.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEGMENTS_SHOWN 3u
#define CURVE_EVENTS_MIN 8 /* fewer make no curve */

/* ---- segments -------------------------------------------------------------------------------- */

static void print_pin(const struct gm_view *view, uint32_t place, uint64_t size, unsigned indent)
{
    struct gm_page *page = view->page;
    const struct gm_frame *frame =
        gm_stack_telling_frame(gm_model_stack(view->model, view->model->places[place].stack));
    gm_page_print(page, GM_PLAIN, "%*s%-9s  ", (int)indent, "", SIZE(size));
    if (frame)
        gm_page_frame(page, frame, gm_page_columns(page) - indent - 11);
    fputc('\n', page->out);
}

static void print_segments(const struct gm_view *view, const struct gm_model_pool_state *state,
                           unsigned indent)
{
    struct gm_page *page = view->page;
    for (size_t i = 0; i < state->segment_count && i < SEGMENTS_SHOWN; i++) {
        const struct gm_model_segment *own = &state->segments[i];
        const struct gm_segment *segment = &own->segment;
        fprintf(page->out, "%*s", (int)indent, "");
        if (segment->count > 1)
            gm_page_print(page, GM_BOLD, "%s x ", COUNT(segment->count));
        gm_page_print(page, GM_BOLD, "%s", SIZE(segment->free));
        gm_page_print(page, GM_PLAIN, " free in %s%s, held by %s block%s%s\n", SIZE(segment->size),
                      segment->expandable ? " (expandable)" : "", COUNT(segment->blocks),
                      gm_plural(segment->blocks),
                      segment->blocks > GM_SEGMENT_PINS ? ", the largest:" : ":");
        for (size_t pin = 0; pin < GM_SEGMENT_PINS && segment->pins[pin].alive; pin++)
            print_pin(view, own->pins[pin], segment->pins[pin].size, indent + 2);
    }
}

/* ---- a pool ---------------------------------------------------------------------------------- */

static void print_pool_line(struct gm_page *page, const char *name, uint64_t allocated,
                            uint64_t reserved, const struct gm_segment_sums *sums)
{
    gm_page_print(page, GM_PLAIN, "  %-18s %10s %10s %10s %12s %10s\n", name, SIZE(allocated),
                  SIZE(reserved), SIZE(sums->free), sums->free ? SIZE(sums->largest_hole) : "-",
                  sums->returnable ? SIZE(sums->returnable) : "-");
}

static void print_moment(struct gm_page *page, const char *name,
                         const struct gm_model_pool_state *state)
{
    struct gm_segment_sums all = gm_segments_all(state->sums);
    print_pool_line(page, name, state->allocated, state->reserved, &all);
}

/* Small and large blocks apart, if there are both. */
static void print_pools(struct gm_page *page, const struct gm_model_pool_state *state)
{
    static const char *const names[GM_SEGMENT_POOLS] = {
        [GM_SEGMENTS_SMALL] = "  small blocks",
        [GM_SEGMENTS_LARGE] = "  large blocks",
    };
    if (!state->sums[GM_SEGMENTS_SMALL].count || !state->sums[GM_SEGMENTS_LARGE].count)
        return;
    for (unsigned pool = 0; pool < GM_SEGMENT_POOLS; pool++) {
        const struct gm_segment_sums *sums = &state->sums[pool];
        print_pool_line(page, names[pool], sums->size - sums->free, sums->size, sums);
    }
}

/* How many segments could go, and how many are held. */
static void print_counts(struct gm_page *page, const struct gm_model_pool_state *state)
{
    struct gm_segment_sums all = gm_segments_all(state->sums);
    if (all.count)
        gm_page_print(page, GM_DIM, "  %s segment%s after the last use, %s without a block\n",
                      COUNT(all.count), gm_plural(all.count), COUNT(all.empty));
}

static void print_pool_settings(const struct gm_view *view)
{
    if (!view->run->allocator_variable)
        return;
    struct gm_page *page = view->page;
    char *clean = gm_clean_copy(view->run->allocator_settings);
    gm_page_print(page, GM_DIM, "  %s=", view->run->allocator_variable);
    gm_page_begin(page, GM_DIM);
    gm_page_cut(page, clean, 50);
    gm_page_end(page, GM_DIM);
    fputc('\n', page->out);
    free(clean);
}

void gm_purposes_text(struct gm_page *page, unsigned indent,
                      const struct gm_model_pool_state *state)
{
    char text[GM_CATEGORIES * 64] = "";
    bool is_told[GM_CATEGORIES] = {[GM_CATEGORY_CACHE] = true}; /* the column "free" has it */
    for (unsigned told = 0; told < GM_CATEGORIES; told++) {
        unsigned most = GM_CATEGORIES;
        for (unsigned i = 0; i < GM_CATEGORIES; i++)
            if (!is_told[i] && state->categories[i].bytes &&
                (most == GM_CATEGORIES ||
                 state->categories[i].bytes > state->categories[most].bytes))
                most = i;
        if (most == GM_CATEGORIES)
            break;
        is_told[most] = true;
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "%s%s %s", used ? ", " : "",
                 gm_category_name((enum gm_category)most), SIZE(state->categories[most].bytes));
    }
    if (text[0])
        gm_page_paragraph(page, GM_PLAIN, indent, "By purpose: %s", text);
}

/* Worth a reader's time: much of the pool is free, and blocks keep it from going back. */
static bool is_held_open(const struct gm_model_pool_state *state)
{
    struct gm_segment_sums all = gm_segments_all(state->sums);
    return all.free - all.returnable > all.size / 10 && all.size > 16 * GM_SMALL_SEGMENT;
}

void gm_pool_text(const struct gm_view *view, const struct gm_model_pool *pool)
{
    const struct gm_model_pool_state *peak = gm_model_moment(view->run, pool->at_peak)->pool;
    const struct gm_model_pool_state *last = gm_model_moment(view->run, pool->last)->pool;
    struct gm_page *page = view->page;
    if (pool->drawn && pool->allocs >= CURVE_EVENTS_MIN)
        gm_curve_text(view, "reserved", pool->drawn, 1);
    print_pool_settings(view);
    gm_page_print(page, GM_DIM, "  %-18s %10s %10s %10s %12s %10s\n", "", "allocated", "reserved",
                  "free", "largest hole", "returnable");
    print_moment(page, "at the peak", peak);
    print_pools(page, peak);
    print_moment(page, "after the last use", last);
    print_pools(page, last);
    print_counts(page, last);
    if (last->allocated < peak->allocated && last->line_count) {
        gm_page_print(page, GM_PLAIN, "  Who held blocks after the last use:\n");
        gm_blocks_text(view, last);
    }
    if (is_held_open(last)) {
        gm_page_print(page, GM_PLAIN, "  Segments with most free space, after the last use:\n");
        print_segments(view, last, 4);
    }
}

/* ---- out of memory --------------------------------------------------------------------------- */

/* Free space that a request of that size could have come from, and why it did not. */
static void print_reason(struct gm_page *page, const struct gm_model_pool_failure *failure,
                         bool is_known)
{
    struct gm_pool_reason reason = failure->reason;
    if (!is_known)
        gm_page_paragraph(page, GM_DIM, 4, "What lived then was overwritten (flight recorder).");
    else if (!reason.is_known)
        gm_page_paragraph(page, GM_DIM, 4,
                          "What holes its pool had just then, the framework does not tell.");
    else if (reason.fragmentation && reason.free < failure->size)
        gm_page_paragraph(page, GM_WARNING, 4,
                          "%s asked, %s reserved but free, largest hole %s, and %s of the device "
                          "not used: together enough, so it is fragmentation.",
                          SIZE(failure->size), SIZE(reason.free), SIZE(reason.largest_hole),
                          SIZE(reason.outside));
    else if (reason.fragmentation)
        gm_page_paragraph(page, GM_WARNING, 4,
                          "%s asked, %s reserved but free, largest hole %s: fragmentation.",
                          SIZE(failure->size), SIZE(reason.free), SIZE(reason.largest_hole));
    else if (reason.free == 0)
        gm_page_paragraph(page, GM_PLAIN, 4, "Not fragmentation: nothing was free in the pool.");
    else if (reason.free < failure->size)
        gm_page_paragraph(page, GM_PLAIN, 4, "Not fragmentation: only %s were free in the pool.",
                          SIZE(reason.free));
    else
        gm_page_paragraph(page, GM_PLAIN, 4,
                          "Not fragmentation: a hole of %s was free, but not for this request. It "
                          "belonged to another stream, to a graph or to a pool of its own.",
                          SIZE(reason.largest_hole));
}

/* What else was on the device. */
static void print_device(const struct gm_view *view, const struct gm_model_pool_failure *failure,
                         const struct gm_model_pool_state *at)
{
    const struct gm_model_device *device = gm_model_device(view->run, failure->device);
    uint64_t outside = failure->tracked > at->reserved ? failure->tracked - at->reserved : 0;
    char more[4][64] = {"", "", "", ""};
    if (outside)
        snprintf(more[0], sizeof(more[0]), ", %s held outside the pool", SIZE(outside));
    if (failure->residual)
        snprintf(more[1], sizeof(more[1]), ", %s by the driver (contexts, modules)",
                 SIZE(failure->residual));
    if (failure->elsewhere)
        snprintf(more[2], sizeof(more[2]), ", %s by other processes", SIZE(failure->elsewhere));
    if (device && device->total)
        snprintf(more[3], sizeof(more[3]), "; the device has %s", SIZE(device->total));
    gm_page_paragraph(view->page, GM_PLAIN, 4, "%s allocated in %s reserved%s%s%s%s.",
                      SIZE(at->allocated), SIZE(at->reserved), more[0], more[1], more[2], more[3]);
}

static void print_libraries(struct gm_page *page, const struct gm_model_pool_failure *failure)
{
    size_t count = failure->library_count;
    if (count < 2)
        return;
    gm_page_print(page, GM_PLAIN, "    Blocks of ");
    for (size_t i = 0; i < count; i++)
        gm_page_print(page, GM_PLAIN, "%s%.14s %s", i ? ", " : "", failure->libraries[i].name,
                      SIZE(failure->libraries[i].bytes));
    fputc('\n', page->out);
}

static void print_pool_failure(const struct gm_view *view,
                               const struct gm_model_pool_failure *failure)
{
    const struct gm_model_moment *moment = gm_model_moment(view->run, failure->moment);
    const struct gm_model_pool_state *at = moment->pool;
    const struct gm_model_place *place = &view->model->places[failure->place];
    struct gm_page *page = view->page;
    char times[96] = "";
    if (failure->count > 1)
        snprintf(times, sizeof(times), " (%s times, at first %s)", COUNT(failure->count),
                 SIZE(failure->first));
    gm_page_paragraph(page, GM_BOLD, 2, "%s asked on device %d%s, %s after the start%s",
                      SIZE(failure->size), failure->device, times, TIME(moment->time_ns),
                      failure->survived ? "; it went on" : "");
    gm_place_text(view, place->stack, 4);
    print_device(view, failure, at);
    if (view->run->failed == 0 && failure->reason.is_known)
        gm_page_paragraph(page, GM_PLAIN, 4,
                          "The driver refused nothing: a limit was set by the program itself, as "
                          "torch.cuda.set_per_process_memory_fraction() does.");
    print_reason(page, failure, at->is_known);
    print_libraries(page, failure);
    gm_blocks_text(view, at);
    if (failure->reason.fragmentation) {
        gm_page_print(page, GM_PLAIN, "    Segments with most free space:\n");
        print_segments(view, at, 6);
    }
}

void gm_pool_failures_text(const struct gm_view *view)
{
    const struct gm_model_run *run = view->run;
    int64_t count = 0;
    char about[64], title[64];
    const char *owner = "";
    for (size_t i = 0; i < run->pool_count; i++) {
        count += run->pools[i].out_of_memory;
        owner = run->pools[i].out_of_memory ? run->pools[i].owner : owner;
    }
    if (!run->pool_failure_count)
        return;
    snprintf(about, sizeof(about), "%s time%s", NUMBER(count), gm_plural((uint64_t)count));
    snprintf(title, sizeof(title), "Out of memory in %s's pool", owner);
    gm_page_heading(view->page, title, about);
    size_t told = 0, top = gm_view_rows(view, GM_VIEW_ROWS);
    for (size_t i = run->pool_failure_count; i-- > 0 && told < top; told++)
        print_pool_failure(view, &run->pool_failures[i]);
    gm_more_places_text(view, run->pool_failure_count, top);
}
