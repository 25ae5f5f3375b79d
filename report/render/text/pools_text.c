/* See sections.h. */
#include "analysis/library_table.h"
#include "base/size.h"
#include "render/text/sections.h"
#include "trace/environment.h"
#include <stdlib.h>

#define MOMENT(analysis, time) TIME(gm_clock_elapsed(&(analysis)->trace->clock, (time)))

#define CURVE_COLUMNS 60u
#define SEGMENTS_SHOWN 3u

/* ---- segments -------------------------------------------------------------------------------- */

static void print_pin(struct gm_page *page, struct gm_stacks *stacks,
                      const struct gm_pool_block *block, unsigned indent)
{
    const struct gm_frame *frame =
        gm_stack_telling_frame(gm_stacks_get(stacks, block->stack, block->api));
    gm_page_print(page, GM_PLAIN, "%*s%-9s  ", (int)indent, "", SIZE(block->size));
    if (frame)
        gm_page_frame(page, frame, GM_PAGE_COLUMNS - indent - 11);
    fputc('\n', page->out);
}

static void print_segments(struct gm_page *page, struct gm_stacks *stacks,
                           const struct gm_segments *segments, size_t top, unsigned indent)
{
    for (size_t i = 0; i < segments->kept_count && i < top; i++) {
        const struct gm_segment *segment = &segments->kept[i];
        fprintf(page->out, "%*s", (int)indent, "");
        if (segment->count > 1)
            gm_page_print(page, GM_BOLD, "%s x ", COUNT(segment->count));
        gm_page_print(page, GM_BOLD, "%s", SIZE(segment->free));
        gm_page_print(page, GM_PLAIN, " free in %s%s, held by %s block%s%s\n", SIZE(segment->size),
                      segment->expandable ? " (expandable)" : "", COUNT(segment->blocks),
                      gm_plural(segment->blocks),
                      segment->blocks > GM_SEGMENT_PINS ? ", the largest:" : ":");
        for (size_t pin = 0; pin < GM_SEGMENT_PINS && segment->pins[pin].alive; pin++)
            print_pin(page, stacks, &segment->pins[pin], indent + 2);
    }
}

/* ---- a pool ---------------------------------------------------------------------------------- */

static void print_line(struct gm_page *page, const char *name, uint64_t allocated,
                       uint64_t reserved, const struct gm_segment_sums *sums)
{
    gm_page_print(page, GM_PLAIN, "  %-18s %10s %10s %10s %12s %10s\n", name, SIZE(allocated),
                  SIZE(reserved), SIZE(sums->free), sums->free ? SIZE(sums->largest_hole) : "-",
                  sums->returnable ? SIZE(sums->returnable) : "-");
}

static void print_moment(struct gm_page *page, const char *name,
                         const struct gm_pool_snapshot *snapshot)
{
    struct gm_segment_sums all = gm_segments_all(&snapshot->segments);
    print_line(page, name, snapshot->allocated, snapshot->reserved, &all);
}

/* Small and large blocks apart, if there are both. */
static void print_pools(struct gm_page *page, const struct gm_segments *segments)
{
    static const char *const names[GM_SEGMENT_POOLS] = {
        [GM_SEGMENTS_SMALL] = "  small blocks",
        [GM_SEGMENTS_LARGE] = "  large blocks",
    };
    if (!segments->sums[GM_SEGMENTS_SMALL].count || !segments->sums[GM_SEGMENTS_LARGE].count)
        return;
    for (unsigned pool = 0; pool < GM_SEGMENT_POOLS; pool++) {
        const struct gm_segment_sums *sums = &segments->sums[pool];
        print_line(page, names[pool], sums->size - sums->free, sums->size, sums);
    }
}

/* How many segments could go, and how many are held. */
static void print_counts(struct gm_page *page, const struct gm_segments *segments)
{
    struct gm_segment_sums all = gm_segments_all(segments);
    if (all.count)
        gm_page_print(page, GM_DIM, "  %s segment%s after the last use, %s without a block\n",
                      COUNT(all.count), gm_plural(all.count), COUNT(all.empty));
}

/* The most of each stretch of time, in nine steps up to `whole`. */
static void print_curve(struct gm_page *page, const char *name, const struct gm_curve *curve,
                        unsigned value, uint64_t whole)
{
    static const char steps[] = " .:-=+*#@";
    gm_page_print(page, GM_PLAIN, "  %-12s", name);
    gm_page_begin(page, GM_DIM);
    for (unsigned column = 0; column < CURVE_COLUMNS; column++) {
        uint64_t most = gm_curve_most(curve, value, column, column + 1, CURVE_COLUMNS);
        /* What a damaged trace says of blocks can be more than what it says of segments. */
        double share = whole && most < whole ? (double)most / (double)whole : most > 0;
        size_t step = (size_t)(share * (double)(sizeof(steps) - 2) + 0.5);
        fputc(steps[most && !step ? 1 : step], page->out);
    }
    gm_page_end(page, GM_DIM);
    fputc('\n', page->out);
}

static void print_settings(struct gm_page *page, const struct gm_trace *trace)
{
    const char *name;
    struct gm_text value;
    if (!gm_environment_allocator(trace, &name, &value))
        return;
    char *clean = gm_clean_copy(value);
    gm_page_print(page, GM_DIM, "  %s=", name);
    gm_page_begin(page, GM_DIM);
    gm_page_cut(page, clean, 50);
    gm_page_end(page, GM_DIM);
    fputc('\n', page->out);
    free(clean);
}

static void print_lines(struct gm_page *page, const struct gm_analysis *analysis,
                        struct gm_stacks *stacks, const char *when, const struct gm_sites *owners,
                        size_t top)
{
    if (!owners->count)
        return;
    gm_page_print(page, GM_PLAIN, "  Lines that held blocks %s:\n", when);
    gm_pool_lines_text(page, analysis, stacks, owners, top);
}

/* Worth a reader's time: much of the pool is free, and blocks keep it from going back. */
static bool is_held_open(const struct gm_segments *segments)
{
    struct gm_segment_sums all = gm_segments_all(segments);
    return all.free - all.returnable > all.size / 10 && all.size > 16 * GM_SMALL_SEGMENT;
}

static void print_pool(struct gm_page *page, const struct gm_analysis *analysis,
                       struct gm_stacks *stacks, size_t which, size_t top)
{
    const struct gm_pool_snapshot *peak = &analysis->pool_peaks[which];
    const struct gm_pool_snapshot *last = &analysis->pool_lasts[which];
    const struct gm_block_totals *totals = &analysis->blocks.device[peak->device + 1];
    char title[64], about[128];
    snprintf(title, sizeof(title), "PyTorch's pool on device %d", peak->device);
    snprintf(about, sizeof(about), "%s allocated at the peak, %s reserved", SIZE(peak->allocated),
             SIZE(totals->reserved_peak.bytes));
    gm_page_heading(page, title, about);
    print_settings(page, analysis->trace);
    gm_page_print(page, GM_DIM, "  %-18s %10s %10s %10s %12s %10s\n", "", "allocated", "reserved",
                  "free", "largest hole", "returnable");
    print_moment(page, "at the peak", peak);
    print_pools(page, &peak->segments);
    print_moment(page, "after the last use", last);
    print_pools(page, &last->segments);
    print_counts(page, &last->segments);
    if (totals->allocs >= CURVE_COLUMNS) {
        print_curve(page, "allocated", totals->curve, 0, totals->reserved_peak.bytes);
        print_curve(page, "reserved", totals->curve, 1, totals->reserved_peak.bytes);
    }
    print_lines(page, analysis, stacks, "at the peak", &peak->owners, top);
    if (last->allocated < peak->allocated)
        print_lines(page, analysis, stacks, "after the last use", &last->owners, top);
    if (is_held_open(&last->segments)) {
        gm_page_print(page, GM_PLAIN, "  Segments with most free space, after the last use:\n");
        print_segments(page, stacks, &last->segments, SEGMENTS_SHOWN, 4);
    }
}

void gm_pools_text(struct gm_page *page, const struct gm_analysis *analysis,
                   struct gm_stacks *stacks, size_t top)
{
    for (size_t i = 0; i < analysis->pool_count; i++)
        print_pool(page, analysis, stacks, i, top);
}

/* ---- out of memory --------------------------------------------------------------------------- */

/* Free space that a request of that size could have come from, and why it did not. */
static void print_reason(struct gm_page *page, const struct gm_pool_failure *failure)
{
    struct gm_pool_reason reason = gm_pool_failure_reason(failure);
    if (!failure->snapshot.record)
        gm_page_paragraph(page, GM_DIM, 4, "What lived then was overwritten (flight recorder).");
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
static void print_device(struct gm_page *page, const struct gm_analysis *analysis,
                         const struct gm_pool_failure *failure)
{
    const struct gm_pool_snapshot *at = &failure->snapshot;
    const struct gm_device_facts *facts = &analysis->facts[failure->device + 1];
    uint64_t outside = failure->tracked > at->reserved ? failure->tracked - at->reserved : 0;
    char more[4][64] = {"", "", "", ""};
    if (outside)
        snprintf(more[0], sizeof(more[0]), ", %s held outside the pool", SIZE(outside));
    if (failure->residual)
        snprintf(more[1], sizeof(more[1]), ", %s by the driver (contexts, modules)",
                 SIZE(failure->residual));
    if (failure->elsewhere)
        snprintf(more[2], sizeof(more[2]), ", %s by other processes", SIZE(failure->elsewhere));
    if (facts->total)
        snprintf(more[3], sizeof(more[3]), "; the device has %s", SIZE(facts->total));
    gm_page_paragraph(page, GM_PLAIN, 4, "%s allocated in %s reserved%s%s%s%s.",
                      SIZE(at->allocated), SIZE(at->reserved), more[0], more[1], more[2], more[3]);
}

static void print_libraries(struct gm_page *page, const struct gm_analysis *analysis,
                            const struct gm_sites *owners)
{
    struct gm_libraries *libraries = gm_libraries_new(analysis->trace);
    struct gm_library_share shares[4];
    size_t count = gm_library_shares(libraries, owners, shares, sizeof(shares) / sizeof(*shares));
    if (count > 1)
        gm_page_print(page, GM_PLAIN, "    Blocks of ");
    for (size_t i = 0; i < count && count > 1; i++)
        gm_page_print(page, GM_PLAIN, "%s%.14s %s", i ? ", " : "", shares[i].name,
                      SIZE(shares[i].bytes));
    if (count > 1)
        fputc('\n', page->out);
    gm_libraries_free(libraries);
}

static void print_failure(struct gm_page *page, const struct gm_analysis *analysis,
                          struct gm_stacks *stacks, const struct gm_pool_failure *failure,
                          size_t top)
{
    const struct gm_pool_snapshot *at = &failure->snapshot;
    char times[96] = "";
    if (failure->count > 1)
        snprintf(times, sizeof(times), " (%s times, at first %s)", COUNT(failure->count),
                 SIZE(failure->first));
    gm_page_paragraph(page, GM_BOLD, 2, "%s asked on device %d%s, %s after the start%s",
                      SIZE(failure->size), failure->device, times, MOMENT(analysis, at->time),
                      gm_pool_failure_survived(failure, &analysis->blocks) ? "; it went on" : "");
    gm_page_stack(page, 6, gm_stacks_get(stacks, failure->stack, failure->api));
    print_device(page, analysis, failure);
    if (analysis->replay.ledger.counters.failed == 0)
        gm_page_paragraph(page, GM_PLAIN, 4,
                          "The driver refused nothing: a limit was set by the program itself, as "
                          "torch.cuda.set_per_process_memory_fraction() does.");
    print_reason(page, failure);
    print_libraries(page, analysis, &at->owners);
    gm_pool_lines_text(page, analysis, stacks, &at->owners, top);
    if (gm_pool_failure_reason(failure).fragmentation) {
        gm_page_print(page, GM_PLAIN, "    Segments with most free space:\n");
        print_segments(page, stacks, &at->segments, SEGMENTS_SHOWN, 6);
    }
}

void gm_pool_failures_text(struct gm_page *page, const struct gm_analysis *analysis,
                           struct gm_stacks *stacks, size_t top)
{
    const struct gm_pool_failures *failures = &analysis->pool_failures;
    uint64_t count = 0;
    char about[64];
    for (int i = 0; i < GM_DEVICES; i++)
        count += analysis->blocks.device[i].out_of_memory;
    if (!failures->count)
        return;
    snprintf(about, sizeof(about), "%s time%s", COUNT(count), gm_plural(count));
    gm_page_heading(page, "Out of memory in PyTorch's pool", about);
    for (size_t i = failures->count, shown = 0; i-- > 0 && shown < top; shown++)
        print_failure(page, analysis, stacks, &failures->entries[i], top);
}
