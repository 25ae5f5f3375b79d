/* See sections.h. */
#include "base/size.h"
#include "render/text/sections.h"
#include "verdict/verdict.h"
#include <stdio.h>

#define PEAKS_SHOWN 3u /* devices; as many as fit a line */

static void print_state(struct gm_page *page, const struct gm_verdict *verdict)
{
    switch (verdict->state) {
    case GM_VERDICT_NOTHING:
        gm_page_print(page, GM_WARNING, "Nothing was recorded: no CUDA memory call was seen.\n");
        break;
    case GM_VERDICT_LIVE:
        gm_page_print(page, GM_WARNING, "%s live in %s allocation%s at that moment",
                      SIZE(verdict->on_devices.bytes), COUNT(verdict->on_devices.count),
                      gm_plural(verdict->on_devices.count));
        break;
    case GM_VERDICT_LEAKS:
        gm_page_print(page, GM_BAD, "%s leaked in %s allocation%s", SIZE(verdict->leaked.bytes),
                      COUNT(verdict->leaked.count), gm_plural(verdict->leaked.count));
        break;
    case GM_VERDICT_NO_LEAKS:
        gm_page_print(page, GM_GOOD, "No leaks");
        break;
    case GM_VERDICT_NO_LEAKS_SEEN:
        gm_page_print(page, GM_WARNING, "Nothing live at the end, in what could be read");
        break;
    }
}

/* What was not on a device at that moment. */
static void print_host(struct gm_page *page, const struct gm_verdict *verdict)
{
    if (verdict->state == GM_VERDICT_LIVE && verdict->on_host.count)
        gm_page_print(page, GM_WARNING, "%s of host memory live in %s allocation%s.\n",
                      SIZE(verdict->on_host.bytes), COUNT(verdict->on_host.count),
                      gm_plural(verdict->on_host.count));
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
    uint64_t failed = analysis->replay.ledger.counters.failed, pool = 0;
    for (int i = 0; i < GM_DEVICES; i++)
        pool += analysis->blocks.device[i].out_of_memory;
    char by_pool[64] = "", by_driver[64] = "";
    if (pool)
        snprintf(by_pool, sizeof(by_pool), " PyTorch gave up %s time%s%s", COUNT(pool),
                 gm_plural(pool), failed ? ";" : "");
    if (failed)
        snprintf(by_driver, sizeof(by_driver), " the driver refused %s request%s", COUNT(failed),
                 gm_plural(failed));
    if (pool || failed)
        gm_page_paragraph(page, GM_BAD, 0, "Out of memory:%s%s%s.", by_pool, by_driver,
                          went_on(analysis) ? "; the program went on" : "");
}

void gm_verdict_text(struct gm_page *page, const struct gm_analysis *analysis)
{
    struct gm_verdict verdict = gm_verdict_of(analysis);
    gm_losses_text(page, analysis);
    gm_flight_text(page, analysis->trace);
    print_state(page, &verdict);
    if (verdict.state == GM_VERDICT_NOTHING) {
        gm_bypass_text(page, 0, analysis);
        return;
    }
    print_peaks(page, analysis);
    print_host(page, &verdict);
    print_refusals(page, analysis);
}
