/* See sections.h. */
#include "output/headline.h"
#include "output/text/sections.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

static enum gm_style style_of(const struct gm_model_verdict *verdict,
                              const struct gm_headline *headline)
{
    if (verdict->state == GM_VERDICT_LEAKS)
        return GM_BAD;
    bool is_sound = verdict->state == GM_VERDICT_NO_LEAKS && headline->gravity == GM_GRAVITY_FINE;
    return is_sound ? GM_GOOD : GM_WARNING;
}

/* "12.0 MiB leaked in 12 allocations, peak 1.93 GiB on device 0. 1 error, 2 warnings." */
static void print_state(const struct gm_view *view, const struct gm_headline *headline)
{
    struct gm_page *page = view->page;
    gm_page_print(page, style_of(&view->run->verdict, headline), "%s", headline->state);
    size_t used = strlen(headline->state), more = strlen(headline->peaks);
    size_t columns = gm_page_columns(page);
    if (more > columns) {
        gm_page_print(page, GM_PLAIN, ".\n");
        gm_page_paragraph(page, GM_PLAIN, 0, "P%s.", headline->peaks + 1); /* "peak" */
        used = 0;
    } else if (more && used + more + 3 > columns) {
        gm_page_print(page, GM_PLAIN, ".\nP%s.", headline->peaks + 1);
        used = more + 1;
    } else {
        gm_page_print(page, GM_PLAIN, "%s%s.", more ? ", " : "", headline->peaks);
        used += more + 3;
    }
    if (headline->findings[0])
        gm_page_print(page, GM_WARNING, "%s%s.",
                      !used                                             ? ""
                      : used + strlen(headline->findings) + 2 > columns ? "\n"
                                                                        : " ",
                      headline->findings);
    if (used || headline->findings[0])
        fputc('\n', page->out);
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

/* What was asked, what was there, and where. */
static void print_verdict_failure(const struct gm_view *view, const struct gm_headline *headline)
{
    struct gm_refusal refusal = gm_refusal_of(view->run);
    const struct gm_model_device *device = gm_model_device(view->run, refusal.device);
    struct gm_page *page = view->page;
    char text[160] = "", clock[32] = "";
    time_t seconds =
        (time_t)((view->run->start_realtime_ns + refusal.time_ns) / UINT64_C(1000000000));
    struct tm moment;
    if (view->run->start_realtime_ns && gmtime_r(&seconds, &moment))
        strftime(clock, sizeof(clock), " (%T UTC)", &moment);
    if (!refusal.is_there)
        return;
    gm_page_print(page, refusal.survived ? GM_WARNING : GM_BAD, "%s\n", headline->failure);
    bool is_known = device && device->total && refusal.free != UINT64_MAX;
    bool is_sampled = device && device->residuals; /* else what the driver held is not known */
    const char *at_most = is_sampled ? "" : "at most ", *at_least = is_sampled ? "" : "at least ";
    if (is_known && refusal.free < refusal.size)
        snprintf(text, sizeof(text), "%s%s of %s were free, %s%s short; ", at_most,
                 SIZE(refusal.free), SIZE(device->total), at_least,
                 SIZE(refusal.size - refusal.free));
    else if (is_known)
        snprintf(text, sizeof(text), "%s%s of %s were free; ", at_most, SIZE(refusal.free),
                 SIZE(device->total));
    gm_page_paragraph(page, GM_PLAIN, 2, "%s%s after the start%s", text, TIME(refusal.time_ns),
                      clock);
    bool is_found = view->run->finding_count && view->run->findings[0].severity > GM_SEVERITY_NOTE;
    const struct gm_frame *frame =
        refusal.place == GM_NONE || is_found
            ? NULL
            : gm_stack_telling_frame(
                  gm_model_stack(view->model, view->model->places[refusal.place].stack));
    if (frame) {
        fputs("  at ", page->out);
        gm_page_frame(page, frame, gm_page_columns(page) - 5);
        fputc('\n', page->out);
    }
}

/* A request that a framework could serve after all is no lack of memory, but the driver's refusals
 * are told. */
static void print_refusals(const struct gm_view *view)
{
    int64_t failed = view->run->failed, pool = 0;
    const char *owner = "";
    for (size_t i = 0; i < view->run->pool_count; i++) {
        pool += view->run->pools[i].out_of_memory;
        owner = view->run->pools[i].out_of_memory ? view->run->pools[i].owner : owner;
    }
    char by_pool[64] = "", by_driver[64] = "";
    if (pool)
        snprintf(by_pool, sizeof(by_pool), " %s gave up %s time%s%s", owner, NUMBER(pool),
                 gm_plural((uint64_t)pool), failed ? ";" : "");
    if (failed)
        snprintf(by_driver, sizeof(by_driver), " the driver refused %s request%s", NUMBER(failed),
                 gm_plural((uint64_t)failed));
    if (pool + failed > 1) /* of one the head has said it */
        gm_page_paragraph(view->page, GM_BAD, 0, "Out of memory:%s%s%s.", by_pool, by_driver,
                          view->run->went_on ? "; the program went on" : "");
}

void gm_verdict_text(const struct gm_view *view)
{
    struct gm_headline headline = gm_headline_of(view->run);
    gm_losses_text(view);
    gm_flight_text(view);
    print_verdict_failure(view, &headline);
    print_state(view, &headline);
    if (view->run->verdict.state == GM_VERDICT_NOTHING) {
        gm_bypass_text(view, 0);
        return;
    }
    print_host(view->page, &view->run->verdict);
    print_refusals(view);
}
