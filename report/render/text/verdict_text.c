/* See sections.h. */
#include "render/text/sections.h"
#include <stdio.h>

#define PEAKS_SHOWN 3u /* devices; as many as fit a line */

static void print_state(struct gm_page *page, const struct gm_model_verdict *verdict)
{
    switch (verdict->state) {
    case GM_VERDICT_NOTHING:
        gm_page_print(page, GM_WARNING, "Nothing was recorded: no CUDA memory call was seen.\n");
        break;
    case GM_VERDICT_LIVE:
        gm_page_print(page, GM_WARNING, "%s live in %s allocation%s at that moment",
                      BYTES(verdict->on_devices.bytes), NUMBER(verdict->on_devices.count),
                      gm_plural((uint64_t)verdict->on_devices.count));
        break;
    case GM_VERDICT_LEAKS:
        gm_page_print(page, GM_BAD, "%s leaked in %s allocation%s", BYTES(verdict->leaked.bytes),
                      NUMBER(verdict->leaked.count), gm_plural((uint64_t)verdict->leaked.count));
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
static void print_host(struct gm_page *page, const struct gm_model_verdict *verdict)
{
    if (verdict->state == GM_VERDICT_LIVE && verdict->on_host.count)
        gm_page_print(page, GM_WARNING, "%s of host memory live in %s allocation%s.\n",
                      BYTES(verdict->on_host.bytes), NUMBER(verdict->on_host.count),
                      gm_plural((uint64_t)verdict->on_host.count));
}

void gm_bypass_text(const struct gm_view *view, unsigned indent)
{
    if (view->run->bypassed)
        gm_page_paragraph(view->page, GM_WARNING, indent,
                          "BYPASSED: the CUDA driver (libcuda) was loaded, yet no call to it was "
                          "seen. Either the process made none, or it reached the driver where no "
                          "LD_PRELOAD can follow: through a library opened with dlmopen or "
                          "RTLD_DEEPBIND, or by addresses that it found without dlsym.");
}

/* Goes on in the line of the leaks if there is one device, in one of its own if there are more. */
static void print_peaks(const struct gm_view *view)
{
    const struct gm_model_run *run = view->run;
    size_t count = 0, shown = 0;
    for (size_t i = 0; i < run->device_count; i++)
        count += run->devices[i].peak != GM_NONE;
    const char *separator = count == 1 ? ", peak " : ".\nPeak ";
    for (size_t i = 0; i < run->device_count && shown < PEAKS_SHOWN; i++) {
        if (run->devices[i].peak == GM_NONE)
            continue;
        gm_page_print(view->page, GM_PLAIN, "%s%s on device %d", separator,
                      BYTES(gm_model_moment(run, run->devices[i].peak)->bytes), run->devices[i].id);
        separator = ", ";
        shown++;
    }
    gm_page_print(view->page, GM_PLAIN, "%s.\n", count > PEAKS_SHOWN ? " ..." : "");
}

/* A request that a framework could serve after all is no lack of memory, but the driver's refusals
 * are told. */
static void print_refusals(const struct gm_view *view)
{
    int64_t failed = view->run->failed, pool = 0;
    for (size_t i = 0; i < view->run->pool_count; i++)
        pool += view->run->pools[i].out_of_memory;
    char by_pool[64] = "", by_driver[64] = "";
    if (pool)
        snprintf(by_pool, sizeof(by_pool), " PyTorch gave up %s time%s%s", NUMBER(pool),
                 gm_plural((uint64_t)pool), failed ? ";" : "");
    if (failed)
        snprintf(by_driver, sizeof(by_driver), " the driver refused %s request%s", NUMBER(failed),
                 gm_plural((uint64_t)failed));
    if (pool || failed)
        gm_page_paragraph(view->page, GM_BAD, 0, "Out of memory:%s%s%s.", by_pool, by_driver,
                          view->run->went_on ? "; the program went on" : "");
}

void gm_verdict_text(const struct gm_view *view)
{
    const struct gm_model_verdict *verdict = &view->run->verdict;
    gm_losses_text(view);
    gm_flight_text(view);
    print_state(view->page, verdict);
    if (verdict->state == GM_VERDICT_NOTHING) {
        gm_bypass_text(view, 0);
        return;
    }
    print_peaks(view);
    print_host(view->page, verdict);
    print_refusals(view);
}
