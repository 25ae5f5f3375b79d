/* Times that PyTorch's allocator or the driver had nothing to give: fragmentation, a search for the
 * largest batch, or too little memory. */
#include "base/limit.h"
#include "base/size.h"
#include "findings/rules.h"
#include "replica/whatif.h"
#include "stacks/owner.h"
#include <stdio.h>
#include <stdlib.h>

/* What was refused at one place, and how it went on there. */
struct refusals {
    uint64_t count;
    uint64_t first, last; /* bytes asked for */
    uint64_t served;      /* bytes of the next request that was served; 0: none was */
    bool never_more;      /* none asked for more than the one before */
};

/* Refused at least twice, never asking for more than the time before, and then served; or refused,
 * and then asking for less: the program tries what fits. */
static bool is_search(const struct refusals *refusals)
{
    return refusals->never_more && refusals->served &&
           (refusals->count >= 2 || refusals->served < refusals->last);
}

static void add_search(struct gm_findings *findings, const struct gm_finding *finding,
                       const struct refusals *refusals)
{
    struct gm_finding search = *finding;
    search.code = GM_FINDING_BATCH_SIZE_SEARCH;
    search.severity = GM_SEVERITY_NOTE;
    if (refusals->count == 1)
        gm_findings_add(findings, &search,
                        "%s were refused here, and then %s served: the program tries what fits.",
                        SIZE(refusals->last), SIZE(refusals->served));
    else
        gm_findings_add(findings, &search,
                        "%s requests were refused here, %s at first and %s at last, and then one "
                        "was served: a search for what fits.",
                        COUNT(refusals->count), SIZE(refusals->first), SIZE(refusals->last));
}

/* A replica that does less alike says nothing of other settings. */
#define TRUSTED_SHARE 100u /* all but a hundredth */

/* What to do about a device's fragmentation: asked once, for it takes ten replays. */
struct advice {
    bool is_asked;
    int device;
    char text[256]; /* empty: nothing can be said */
};

/* Names the least risky setting under which nothing would have been refused, with its figure. */
static void write_advice(struct advice *advice, struct gm_whatif *whatif)
{
    gm_whatif_add_all(whatif);
    gm_whatif_run(whatif);
    gm_whatif_rank(whatif);
    size_t at = 0;
    while (at < whatif->count && whatif->settings[at].settings.async)
        at++; /* of another allocator too little is known */
    const struct gm_whatif_setting *best = at < whatif->count ? &whatif->settings[at] : NULL;
    if (best && gm_whatif_helps(whatif, best))
        snprintf(advice->text, sizeof(advice->text),
                 "With PYTORCH_CUDA_ALLOC_CONF=%s at most %s would have been reserved, and nothing "
                 "refused "
                 "(gpumem whatif).",
                 best->set, SIZE(best->outcome.reserved_peak));
    else
        snprintf(advice->text, sizeof(advice->text),
                 "No setting of the allocator would have served all requests (gpumem whatif). Free "
                 "the blocks that "
                 "keep the segments, or allocate them early.");
}

static const char *advice_for(const struct gm_analysis *analysis, struct advice *advice, int device)
{
    struct gm_whatif whatif = {0};
    char error[128];
    if (advice->is_asked && advice->device == device)
        return advice->text;
    *advice = (struct advice){.is_asked = true, .device = device};
    if (!gm_history_of_trace(&whatif.history, analysis->trace, device, error, sizeof(error)))
        return advice->text;
    gm_history_guess(&whatif.history);
    whatif.recorded = gm_replay_recorded(&whatif.history);
    whatif.as_recorded = gm_replay_as_recorded(&whatif.history);
    uint64_t events = whatif.as_recorded.events, equal = whatif.as_recorded.equal_events;
    /* Where the device's size is not told, it had at least what was reserved. */
    whatif.memory =
        whatif.history.capacity ? whatif.history.capacity : whatif.recorded.reserved_peak;
    whatif.total = whatif.history.total;
    if (equal >= events - events / TRUSTED_SHARE && !gm_limits_reached())
        write_advice(advice, &whatif);
    gm_whatif_free_settings(&whatif);
    gm_history_free(&whatif.history);
    return advice->text;
}

static void add_fragmentation(const struct gm_analysis *analysis, struct gm_findings *findings,
                              const struct gm_finding *finding,
                              const struct gm_pool_failure *failure, struct advice *advice)
{
    struct gm_pool_reason reason = gm_pool_failure_reason(failure);
    struct gm_finding fragmentation = *finding;
    fragmentation.code = GM_FINDING_POOL_FRAGMENTATION;
    if (reason.free >= failure->size)
        gm_findings_add(findings, &fragmentation,
                        "%s asked, %s reserved but free, largest hole %s: fragmentation.",
                        SIZE(failure->size), SIZE(reason.free), SIZE(reason.largest_hole));
    else
        gm_findings_add(findings, &fragmentation,
                        "%s asked, %s reserved but free, largest hole %s, and %s of the device not "
                        "used: together enough, so it is fragmentation.",
                        SIZE(failure->size), SIZE(reason.free), SIZE(reason.largest_hole),
                        SIZE(reason.outside));
    const char *remedy = advice_for(analysis, advice, failure->device);
    if (remedy[0])
        gm_findings_remedy(findings, "%s", remedy);
}

/* What had been growing on the device when it was first refused, and what had not; "" if nothing
 * had. The text lives in `text`. */
static const char *describe_growth(const struct gm_analysis *analysis, int device, bool is_block,
                                   char *text, size_t size)
{
    const struct gm_rounds *rounds = &analysis->activity.rounds;
    const struct gm_round_growth *most = NULL;
    uint64_t grown = 0;
    text[0] = '\0';
    for (size_t i = 0; i < rounds->found_count; i++) {
        const struct gm_round_growth *growth = &rounds->found[i];
        if (growth->device != device || (growth->sort == GM_ROUND_BLOCKS) != is_block ||
            !growth->at_refusal)
            continue;
        most = most ? most : growth;
        grown += growth->bytes;
    }
    if (!most)
        return text;
    uint64_t before = most->before < most->total - grown ? most->before : most->total - grown;
    snprintf(text, size,
             " %s of what was held had grown from round to round (see \"retained\"); %s had been "
             "there before, and %s came meanwhile without growing.",
             SIZE(grown), SIZE(before), SIZE(most->total - grown - before));
    return text;
}

static void add_pool_failure(const struct gm_analysis *analysis, struct gm_findings *findings,
                             const struct gm_pool_failure *failure, struct advice *advice)
{
    struct gm_pool_reason reason = gm_pool_failure_reason(failure);
    bool survived = gm_pool_failure_survived(failure, &analysis->blocks);
    char growth[256];
    describe_growth(analysis, failure->device, true, growth, sizeof(growth));
    struct gm_finding finding = {.code = GM_FINDING_OUT_OF_MEMORY,
                                 .severity = survived ? GM_SEVERITY_WARNING : GM_SEVERITY_ERROR,
                                 .device = failure->device,
                                 .bytes = failure->size,
                                 .stack = failure->stack,
                                 .api = failure->api};
    struct refusals refusals = {failure->count, failure->first, failure->size,
                                failure->succeeded ? failure->served : 0, failure->never_more};
    if (is_search(&refusals))
        add_search(findings, &finding, &refusals);
    else if (reason.fragmentation)
        add_fragmentation(analysis, findings, &finding, failure, advice);
    else if (!failure->snapshot.record)
        gm_findings_add(findings, &finding, "%s asked with %s allocated and %s reserved.%s",
                        SIZE(failure->size), SIZE(failure->snapshot.allocated),
                        SIZE(failure->snapshot.reserved), growth);
    else
        gm_findings_add(findings, &finding,
                        "%s asked with %s allocated and %s reserved; the largest hole of the pool "
                        "had %s.%s",
                        SIZE(failure->size), SIZE(failure->snapshot.allocated),
                        SIZE(failure->snapshot.reserved), SIZE(reason.largest_hole), growth);
}

/* What the driver refused to a framework's cache, the framework tries again or reports itself. */
static bool is_of_a_cache(const struct gm_analysis *analysis, const struct gm_failure *failure)
{
    return gm_owners_cache(analysis->owners, failure->kind, failure->stack);
}

static void add_refusal(const struct gm_analysis *analysis, struct gm_findings *findings,
                        const struct gm_failure *failure)
{
    if (!failure->snapshot.step || gm_kind_is_host(failure->kind) ||
        is_of_a_cache(analysis, failure) || gm_analysis_pool_failure(analysis, failure))
        return;
    const struct gm_holes *holes = &failure->snapshot.holes;
    enum gm_fragmentation fragmentation = gm_analysis_fragmentation(analysis, failure);
    struct gm_finding finding = {
        .code = GM_FINDING_OUT_OF_MEMORY,
        .severity = failure->survived ? GM_SEVERITY_WARNING : GM_SEVERITY_ERROR,
        .device = failure->device,
        .bytes = failure->size,
        .stack = failure->stack,
        .api = failure->api,
    };
    struct refusals refusals = {failure->count, failure->first, failure->size, failure->served,
                                failure->never_more};
    if (is_search(&refusals))
        add_search(findings, &finding, &refusals);
    else if (fragmentation == GM_FRAGMENTATION_CERTAIN)
        gm_findings_add(findings, &finding,
                        "The driver refused %s when the process had %s allocated on the device. "
                        "Between its allocations %s were free, in holes of at most %s: "
                        "fragmentation.",
                        SIZE(failure->size), SIZE(failure->snapshot.owners.bytes),
                        SIZE(holes->free), SIZE(holes->largest));
    else if (fragmentation == GM_FRAGMENTATION_UNTOLD)
        gm_findings_add(findings, &finding,
                        "The driver refused %s when the process had %s allocated on the device. "
                        "Between its allocations were gaps of %s, of at most %s each; whether "
                        "fragmentation refused it cannot be told, for the size of the device is "
                        "not on record.",
                        SIZE(failure->size), SIZE(failure->snapshot.owners.bytes),
                        SIZE(holes->free), SIZE(holes->largest));
    else
        gm_findings_add(findings, &finding,
                        "The driver refused %s when the process had %s allocated on the device.%s",
                        SIZE(failure->size), SIZE(failure->snapshot.owners.bytes),
                        describe_growth(analysis, failure->device, false, (char[256]){0}, 256));
}

void gm_find_out_of_memory(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    struct advice advice = {0};
    for (size_t i = 0; i < analysis->pool_failures.count; i++)
        add_pool_failure(analysis, findings, &analysis->pool_failures.entries[i], &advice);
    for (size_t i = 0; i < analysis->failure_count; i++)
        add_refusal(analysis, findings, &analysis->failures[i]);
}
