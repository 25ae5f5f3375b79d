/* See headline.h. */
#include "output/headline.h"
#include "base/each.h"
#include "base/memory.h"
#include "base/text.h"
#include "output/amount.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PEAKS_SHOWN 3u /* devices; as many as fit a line */

/* ---- out of memory --------------------------------------------------------------------------- */

/* What was not survived is what matters; of several the latest. */
static void keep_worse(struct gm_refusal *worst, const struct gm_refusal *other)
{
    bool is_worse = !worst->is_there || (worst->survived && !other->survived) ||
                    (worst->survived == other->survived && other->time_ns >= worst->time_ns);
    if (is_worse)
        *worst = *other;
}

static uint64_t free_of(const struct gm_model_run *run, int device, uint64_t used)
{
    const struct gm_model_device *facts = gm_model_device(run, device);
    return !facts || !facts->total ? UINT64_MAX : facts->total > used ? facts->total - used : 0;
}

static struct gm_refusal of_driver(const struct gm_model_run *run,
                                   const struct gm_model_failure *failure)
{
    return (struct gm_refusal){GM_SAME(failure, size, purpose, device, time_ns, survived),
                               .is_there = true, .place = failure->place, .moment = failure->moment,
                               .free = free_of(run, failure->device, failure->used)};
}

static struct gm_refusal of_pool(const struct gm_model_run *run,
                                 const struct gm_model_pool_failure *failure)
{
    const struct gm_model_moment *moment = gm_model_moment(run, failure->moment);
    return (struct gm_refusal){
        .size = failure->size,
        .device = failure->device,
        .time_ns = moment ? moment->time_ns : 0,
        .survived = failure->survived,
        .is_there = true,
        .is_of_pool = true,
        .place = failure->place,
        .moment = failure->moment,
        .free = free_of(run, failure->device,
                        failure->tracked + failure->residual + failure->elsewhere),
    };
}

struct gm_refusal gm_refusal_of(const struct gm_model_run *run)
{
    struct gm_refusal worst = {.device = -1, .place = GM_NONE, .moment = GM_NONE};
    for (size_t i = 0; i < run->failure_count; i++) {
        struct gm_refusal one = of_driver(run, &run->failures[i]);
        if (run->failures[i].out_of_memory && !run->failures[i].is_of_pool)
            keep_worse(&worst, &one);
    }
    for (size_t i = 0; i < run->pool_failure_count; i++) {
        struct gm_refusal one = of_pool(run, &run->pool_failures[i]);
        keep_worse(&worst, &one);
    }
    return worst;
}

static void write_refusal_sentence(struct gm_headline *headline, const struct gm_refusal *worst)
{
    char where[32] = "";
    if (!worst->is_there)
        return;
    if (worst->device >= 0)
        snprintf(where, sizeof(where), " on device %d", worst->device);
    snprintf(headline->failure, sizeof(headline->failure), "%s%s, %ssurvived: %s%s",
             worst->survived ? "Out of memory" : "OUT OF MEMORY", where,
             worst->survived ? "" : "not ", ASKED(worst->size, worst->purpose),
             worst->purpose ? "" : " asked");
}

/* ---- what was left, peaks, findings ---------------------------------------------------------- */

static void write_state(struct gm_headline *headline, const struct gm_model_run *run)
{
    const struct gm_model_verdict *verdict = &run->verdict;
    const struct gm_model_living *living =
        verdict->state == GM_VERDICT_LIVE ? &verdict->on_devices : &verdict->leaked;
    bool is_sound = !headline->errors && !headline->warnings && !headline->failure[0];
    const char *text = "Nothing was recorded: no CUDA memory call was seen";
    switch (verdict->state) {
    case GM_VERDICT_NOTHING:
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
        if (!peak)
            continue;
        headline->peak = peak->bytes > headline->peak ? peak->bytes : headline->peak;
        count++;
        if (shown == PEAKS_SHOWN)
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
                                  const struct gm_model_run *run, const struct gm_refusal *worst)
{
    if (worst->is_there && !worst->survived)
        return GM_GRAVITY_NO_MEMORY;
    if (run->verdict.state == GM_VERDICT_LEAKS || headline->errors)
        return GM_GRAVITY_LEAKS;
    if (run->verdict.state == GM_VERDICT_NOTHING)
        return GM_GRAVITY_IDLE;
    if ((run->ending == GM_ENDING_CUT && !run->was_asked_to_end) || run->ending == GM_ENDING_FAILED)
        return GM_GRAVITY_CUT;
    if (!run->complete && run->ending == GM_ENDING_NORMAL)
        return GM_GRAVITY_UNKNOWN;
    return headline->warnings || headline->failure[0] ? GM_GRAVITY_WARNING : GM_GRAVITY_FINE;
}

struct gm_headline gm_headline_of(const struct gm_model_run *run)
{
    struct gm_headline headline = {0};
    struct gm_refusal worst = gm_refusal_of(run);
    write_refusal_sentence(&headline, &worst);
    if (!worst.is_there && run->device_failed.status)
        snprintf(headline.failure, sizeof(headline.failure), "DEVICE FAILED: error %u",
                 run->device_failed.status);
    count_findings(&headline, run);
    write_state(&headline, run);
    write_peaks(&headline, run);
    headline.gravity = gravity_of(&headline, run, &worst);
    return headline;
}

const char *gm_ending_text(const struct gm_model_run *run, char text[GM_ENDING_TEXT])
{
    static const char *const endings[] = {
        [GM_ENDING_NORMAL] = "ended normally",
        [GM_ENDING_RUNNING] = "still running",
        [GM_ENDING_CUT] = "killed or crashed",
        [GM_ENDING_FAILED] = "the device failed",
    };
    char name[GM_SIGNAL_TEXT];
    if (run->ended.signal)
        snprintf(text, GM_ENDING_TEXT, "ended by %s", gm_signal_name(run->ended.signal, name));
    else if (run->ended.exit_code >= 0)
        snprintf(text, GM_ENDING_TEXT, "exit code %d%s", run->ended.exit_code,
                 run->ended.is_bare ? ", without its destructors" : "");
    else
        snprintf(text, GM_ENDING_TEXT, "%s",
                 run->is_recorded ? endings[run->ending] : "end not known");
    return text;
}

/* ---- who ------------------------------------------------------------------------------------- */

struct gm_text gm_command_line(const struct gm_model_run *run, char *line, size_t size)
{
    size = run->command_line.size < size ? run->command_line.size : size;
    for (size_t i = 0; i < size; i++)
        line[i] = run->command_line.bytes[i] ? run->command_line.bytes[i] : ' ';
    while (size && run->command_line.bytes[size - 1] == 0)
        size--;
    return (struct gm_text){line, size};
}

char *gm_command_text(const struct gm_model_run *run)
{
    char *line = gm_allocate(run->command_line.size + 1, 1);
    struct gm_text text = gm_command_line(run, line, run->command_line.size);
    char *clean = text.size ? gm_clean_copy(text) : gm_copy_text("an unnamed command");
    free(line);
    return clean;
}

const char *gm_process_text(const struct gm_model_run *run, char text[GM_PROCESS_TEXT])
{
    char *host = gm_clean_copy(run->host_name);
    text[0] = 0;
    if (run->pid)
        snprintf(text, GM_PROCESS_TEXT, "process %" PRIu32 "%s%.64s", run->pid, *host ? " on " : "",
                 host);
    free(host);
    return text;
}

const char *gm_start_text(const struct gm_model_run *run, char text[GM_START_TEXT])
{
    time_t seconds = (time_t)(run->start_realtime_ns / UINT64_C(1000000000));
    struct tm moment;
    if (!run->start_realtime_ns || !gmtime_r(&seconds, &moment) ||
        !strftime(text, GM_START_TEXT, ", started %F %T UTC", &moment))
        text[0] = 0;
    return text;
}

char *gm_no_moment_text(const struct gm_model_run *run, const struct gm_when *when)
{
    bool is_known = false;
    char text[96];
    for (size_t i = 0; i < run->failure_count; i++)
        is_known |= run->failures[i].moment != GM_NONE;
    for (size_t i = 0; i < run->pool_failure_count; i++)
        is_known |= run->pool_failures[i].moment != GM_NONE;
    if (when->kind == GM_WHEN_OOM && !is_known)
        return gm_copy_text("no allocation was refused for lack of memory, so there was no oom");
    if (when->kind != GM_WHEN_TIME || when->time_ns <= run->duration_ns + run->duration_ns / 100)
        return NULL;
    snprintf(text, sizeof(text), "%s is behind its end, %s after the start", TIME(when->time_ns),
             TIME(run->duration_ns));
    return gm_copy_text(text);
}

const char *gm_when_left(const struct gm_model_run *run)
{
    return run->as_of_ns ? "now" : "at the end";
}
