/* See verdict.h. */
#include "verdict.h"
#include <stdio.h>
#include "flight.h"
#include "newer_abi.h"
#include "size.h"

#define PEAKS_SHOWN 3u /* devices; as many as fit a line */

bool gm_verdict_has_events(const struct gm_analysis *analysis)
{
    return analysis->replay.step != 0 || analysis->transfers.site_count != 0 ||
           analysis->blocks.records != 0 || analysis->replay.unknown_frees != 0;
}

void gm_incompleteness_text(struct gm_page *page, const struct gm_analysis *analysis)
{
    const struct gm_trace *trace = analysis->trace;
    if (trace->ending == GM_ENDING_CUT)
        gm_page_paragraph(page, GM_BAD, 0,
                          "CUT: the process did not end normally (killed or crashed). This is its "
                          "memory up to that moment.");
    if (trace->ending == GM_ENDING_RUNNING)
        gm_page_paragraph(page, GM_WARNING, 0,
                          "RUNNING: the process has not ended. This is its memory up to now.");
    if (trace->truncated)
        gm_page_paragraph(page, GM_BAD, 0,
                          "TRUNCATED: the file is shorter than it was; what is left was read.");
    if (trace->damaged)
        gm_page_paragraph(page, GM_BAD, 0,
                          "DAMAGED: %s part%s of the trace could not be read; the numbers are too "
                          "low or too high by what was in there.",
                          COUNT(trace->damaged), trace->damaged == 1 ? "" : "s");
    if (analysis->lost) {
        gm_page_paragraph(page, GM_BAD, 0,
                          "INCOMPLETE: %s record%s missing; the numbers are too low or too high "
                          "by what they told.",
                          COUNT(analysis->lost), analysis->lost == 1 ? " is" : "s are");
        gm_flight_loss_text(page, trace);
    }
    if (gm_newer_abi_is_vital(trace))
        gm_newer_abi_text(page, GM_BAD, 0, trace);
}

static void print_leaks(struct gm_page *page, const struct gm_analysis *analysis)
{
    const char *plural = analysis->leaked_count[GM_LEAK] == 1 ? "" : "s";
    if (analysis->trace->ending != GM_ENDING_NORMAL)
        gm_page_print(page, GM_WARNING, "%s live in %s allocation%s at that moment",
                      SIZE(analysis->leaked[GM_LEAK]), COUNT(analysis->leaked_count[GM_LEAK]),
                      plural);
    else if (analysis->leaked_count[GM_LEAK])
        gm_page_print(page, GM_BAD, "%s leaked in %s allocation%s", SIZE(analysis->leaked[GM_LEAK]),
                      COUNT(analysis->leaked_count[GM_LEAK]), plural);
    else if (gm_analysis_is_complete(analysis))
        gm_page_print(page, GM_GOOD, "No leaks");
    else
        gm_page_print(page, GM_WARNING, "Nothing live at the end, in what could be read");
}

void gm_bypass_text(struct gm_page *page, unsigned indent, const struct gm_analysis *analysis)
{
    if (analysis->trace->header.flags & GM_HEADER_BYPASSED)
        gm_page_paragraph(page, GM_WARNING, indent,
                          "BYPASSED: the CUDA driver (libcuda) was loaded, yet no call to it was "
                          "seen. Either the process made none, or it reached the driver where no "
                          "LD_PRELOAD can follow: through a library opened with dlmopen or "
                          "RTLD_DEEPBIND, or by addresses that it found without dlsym.");
}

/* Goes on in the line of the leaks if there is one device, in one of its own if there are more. */
static void print_peaks(struct gm_page *page, const struct gm_analysis *analysis)
{
    size_t count = analysis->device_peak_count;
    const char *separator = count == 1 ? ", peak " : ".\nPeak ";
    for (size_t i = 0; i < count && i < PEAKS_SHOWN; i++) {
        const struct gm_snapshot *peak = &analysis->device_peaks[i];
        gm_page_print(page, GM_PLAIN, "%s%s on device %d", separator, SIZE(peak->owners.bytes),
                      peak->device);
        separator = ", ";
    }
    gm_page_print(page, GM_PLAIN, "%s.\n", count > PEAKS_SHOWN ? " ..." : "");
}

/* Whether memory was allocated after every refusal that is known: the program could do without. */
static bool went_on(const struct gm_analysis *analysis)
{
    for (size_t i = 0; i < analysis->failure_count; i++)
        if (analysis->failures[i].out_of_memory && !analysis->failures[i].survived)
            return false;
    for (size_t i = 0; i < analysis->pool_failures.count; i++)
        if (!gm_pool_failure_survived(&analysis->pool_failures.entries[i], &analysis->blocks))
            return false;
    return true;
}

/* A request that a framework could serve after all is no lack of memory, but the driver's refusals
 * are told. */
static void print_refusals(struct gm_page *page, const struct gm_analysis *analysis)
{
    uint64_t failed = analysis->replay.counters.failed, pool = 0;
    for (int i = 0; i < GM_DEVICES; i++)
        pool += analysis->blocks.device[i].out_of_memory;
    char by_pool[64] = "", by_driver[64] = "";
    if (pool)
        snprintf(by_pool, sizeof(by_pool), " PyTorch gave up %s time%s%s", COUNT(pool),
                 pool == 1 ? "" : "s", failed ? ";" : "");
    if (failed)
        snprintf(by_driver, sizeof(by_driver), " the driver refused %s request%s", COUNT(failed),
                 failed == 1 ? "" : "s");
    if (pool || failed)
        gm_page_paragraph(page, GM_BAD, 0, "Out of memory:%s%s%s.", by_pool, by_driver,
                          went_on(analysis) ? "; the program went on" : "");
}

void gm_verdict_text(struct gm_page *page, const struct gm_analysis *analysis)
{
    gm_incompleteness_text(page, analysis);
    gm_flight_text(page, analysis->trace);
    if (!gm_verdict_has_events(analysis)) {
        gm_page_print(page, GM_WARNING, "Nothing was recorded: no CUDA memory call was seen.\n");
        gm_bypass_text(page, 0, analysis);
        return;
    }
    print_leaks(page, analysis);
    print_peaks(page, analysis);
    print_refusals(page, analysis);
}
