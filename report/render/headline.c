/* See headline.h. */
#include "render/headline.h"
#include "render/amount.h"
#include <stdio.h>

#define PEAKS_SHOWN 3u /* devices; as many as fit a line */

/* ---- out of memory --------------------------------------------------------------------------- */

/* One request that was refused, of a pool's or of the driver's. */
struct refusal {
    uint64_t size;
    int device;
    uint64_t time_ns;
    bool survived;
    bool is_there;
};

/* What was not survived is what matters; of several the latest. */
static void keep_worse(struct refusal *worst, const struct refusal *other)
{
    bool is_worse = !worst->is_there || (worst->survived && !other->survived) ||
                    (worst->survived == other->survived && other->time_ns >= worst->time_ns);
    if (is_worse)
        *worst = *other;
}

static struct refusal worst_refusal(const struct gm_model_run *run)
{
    struct refusal worst = {0};
    for (size_t i = 0; i < run->failure_count; i++) {
        const struct gm_model_failure *failure = &run->failures[i];
        struct refusal one = {failure->size, failure->device, failure->time_ns, failure->survived,
                              true};
        if (failure->out_of_memory && !failure->is_of_pool)
            keep_worse(&worst, &one);
    }
    for (size_t i = 0; i < run->pool_failure_count; i++) {
        const struct gm_model_pool_failure *failure = &run->pool_failures[i];
        const struct gm_model_moment *moment = gm_model_moment(run, failure->moment);
        struct refusal one = {failure->size, failure->device, moment ? moment->time_ns : 0,
                              failure->survived, true};
        keep_worse(&worst, &one);
    }
    return worst;
}

static void write_failure(struct gm_headline *headline, const struct refusal *worst)
{
    char where[32] = "";
    if (!worst->is_there)
        return;
    if (worst->device >= 0)
        snprintf(where, sizeof(where), " on device %d", worst->device);
    snprintf(headline->failure, sizeof(headline->failure), "%s%s, %ssurvived: %s asked",
             worst->survived ? "Out of memory" : "OUT OF MEMORY", where,
             worst->survived ? "" : "not ", SIZE(worst->size));
}

/* ---- what was left, peaks, findings ---------------------------------------------------------- */

static void write_state(struct gm_headline *headline, const struct gm_model_run *run)
{
    const struct gm_model_verdict *verdict = &run->verdict;
    const struct gm_model_living *living =
        verdict->state == GM_VERDICT_LIVE ? &verdict->on_devices : &verdict->leaked;
    bool is_sound = !headline->errors && !headline->warnings && !headline->failure[0];
    const char *text = "";
    switch (verdict->state) {
    case GM_VERDICT_NOTHING:
        text = "Nothing was recorded: no CUDA memory call was seen";
        break;
    case GM_VERDICT_LIVE:
    case GM_VERDICT_LEAKS:
        snprintf(headline->state, sizeof(headline->state), "%s %s in %s allocation%s%s",
                 BYTES(living->bytes), verdict->state == GM_VERDICT_LIVE ? "live" : "leaked",
                 NUMBER(living->count), gm_plural((uint64_t)living->count),
                 verdict->state == GM_VERDICT_LIVE ? " at that moment" : "");
        return;
    case GM_VERDICT_NO_LEAKS:
        text = is_sound ? "No leaks" : "Nothing was left at the end";
        break;
    case GM_VERDICT_NO_LEAKS_SEEN:
        text = "Nothing live at the end, in what could be read";
        break;
    }
    snprintf(headline->state, sizeof(headline->state), "%s", text);
}

static void write_peaks(struct gm_headline *headline, const struct gm_model_run *run)
{
    size_t shown = 0, count = 0, used = 0, size = sizeof(headline->peaks);
    for (size_t i = 0; i < run->device_count; i++) {
        const struct gm_model_moment *peak = gm_model_moment(run, run->devices[i].peak);
        if (!peak || (count++, shown == PEAKS_SHOWN))
            continue;
        used += (size_t)snprintf(headline->peaks + used, size - used, "%s%s on device %d",
                                 shown ? ", " : "peak ", BYTES(peak->bytes), run->devices[i].id);
        shown++;
    }
    if (count > shown)
        snprintf(headline->peaks + used, size - used, " ...");
}

static void count_findings(struct gm_headline *headline, const struct gm_model_run *run)
{
    for (size_t i = 0; i < run->finding_count; i++) {
        headline->errors += run->findings[i].severity == GM_SEVERITY_ERROR;
        headline->warnings += run->findings[i].severity == GM_SEVERITY_WARNING;
    }
    char errors[32] = "", warnings[32] = "";
    if (headline->errors)
        snprintf(errors, sizeof(errors), "%u error%s", headline->errors,
                 gm_plural(headline->errors));
    if (headline->warnings)
        snprintf(warnings, sizeof(warnings), "%u warning%s", headline->warnings,
                 gm_plural(headline->warnings));
    snprintf(headline->findings, sizeof(headline->findings), "%s%s%s", errors,
             errors[0] && warnings[0] ? ", " : "", warnings);
}

static enum gm_gravity gravity_of(const struct gm_headline *headline,
                                  const struct gm_model_run *run, const struct refusal *worst)
{
    if (worst->is_there && !worst->survived)
        return GM_GRAVITY_NO_MEMORY;
    if (run->verdict.state == GM_VERDICT_LEAKS || headline->errors)
        return GM_GRAVITY_LEAKS;
    if (run->verdict.state == GM_VERDICT_NOTHING)
        return GM_GRAVITY_IDLE;
    if (run->ending == GM_ENDING_CUT)
        return GM_GRAVITY_CUT;
    if (!run->complete && run->ending == GM_ENDING_NORMAL)
        return GM_GRAVITY_UNKNOWN;
    return headline->warnings || headline->failure[0] ? GM_GRAVITY_WARNING : GM_GRAVITY_FINE;
}

struct gm_headline gm_headline_of(const struct gm_model_run *run)
{
    struct gm_headline headline = {0};
    struct refusal worst = worst_refusal(run);
    write_failure(&headline, &worst);
    count_findings(&headline, run);
    write_state(&headline, run);
    write_peaks(&headline, run);
    headline.gravity = gravity_of(&headline, run, &worst);
    return headline;
}
