/* Times that PyTorch's allocator or the driver had nothing to give: fragmentation, a search for the
 * largest batch, or too little memory. */
#include "base/limit.h"
#include "base/memory.h"
#include "base/size.h"
#include "judge/findings/holding.h"
#include "judge/findings/rules.h"
#include "judge/pool/libraries.h"
#include "names/stacks/owner.h"
#include "replay/replica/whatif.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What was refused at one place, and how it went on there. */
struct refusals {
    uint64_t count;
    uint64_t first, last; /* bytes asked for */
    uint64_t served;      /* bytes of the next request that was served; 0: none was */
    bool never_more;      /* none asked for more than the one before */
    bool never_same;      /* nor for as much */
    bool starts_over; /* more was given back than was asked for, each time before one was served */
    bool was_served;  /* something was, if only between two of them */
    bool survived;
};

/* Refused, and then asking for less, or for as much beside less: the program tries what fits. Of bisection the last
 * is often refused. Who makes room for one and asks again searches nothing. */
static bool is_search(const struct refusals *refusals)
{
    bool asks_less = refusals->served && refusals->served < refusals->last;
    bool tries = refusals->count >= 2 && (refusals->never_same || refusals->starts_over);
    bool is_over = refusals->served || (refusals->was_served && refusals->survived);
    return refusals->never_more && is_over && (asks_less || tries);
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
                        "%s requests were refused here, %s at first and %s at last, and %s "
                        "served: a search for what fits.",
                        COUNT(refusals->count), SIZE(refusals->first), SIZE(refusals->last),
                        refusals->served ? "then one was" : "smaller ones were");
    gm_findings_remedy(findings, "Keep the size that was found: the next run need not search.");
}

/* A replica that does less alike says nothing of other settings. */
#define TRUSTED_SHARE 100u /* all but a hundredth */

/* What to do about a device's fragmentation: asked once, for it takes ten replays. */
struct advice {
    bool is_asked;
    int device;
    char text[256]; /* empty: nothing can be said */
};

static const char keepers[] = "Free the blocks that keep the segments, or allocate them early.";

static const char of_xla[] =
    "Make arrays that live long before large ones come and go, or give these away "
    "(donate_argnums). XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async maps pages instead of dividing one "
    "piece.";

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
                 "No setting of the allocator would have served all requests (gpumem whatif). %s",
                 keepers);
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
    bool is_trusted = gm_replay_is_trusted(&whatif.history, TRUSTED_SHARE) && !gm_limits_reached();
    whatif.recorded = gm_replay_recorded(&whatif.history);
    /* Where the device's size is not told, it had at least what was reserved. */
    whatif.memory =
        whatif.history.capacity ? whatif.history.capacity : whatif.recorded.reserved_peak;
    whatif.total = whatif.history.total;
    if (is_trusted)
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
    const char *remedy =
        failure->is_placed ? advice_for(analysis, advice, failure->device) : of_xla;
    gm_findings_remedy(findings, "%s", remedy[0] ? remedy : keepers);
}

/* Memory was full of what had grown: with less fragmentation it had been full a little later. */
static bool is_full_of_growth(const struct gm_analysis *analysis,
                              const struct gm_pool_failure *failure)
{
    const struct gm_rounds *rounds = &analysis->activity.rounds;
    uint64_t grown = 0;
    for (size_t i = 0; i < rounds->found_count; i++) {
        const struct gm_round_growth *growth = &rounds->found[i];
        if (growth->device == failure->device && growth->sort == GM_ROUND_BLOCKS &&
            growth->at_refusal && growth->weight >= GM_ROUND_WARNING)
            grown += growth->bytes;
    }
    return grown > failure->snapshot.reserved / 2;
}

static void add_pool_failure(const struct gm_analysis *analysis, struct gm_findings *findings,
                             const struct gm_pool_failure *failure, struct advice *advice)
{
    struct gm_pool_reason reason = gm_pool_failure_reason(failure);
    struct gm_finding finding = {.code = GM_FINDING_OUT_OF_MEMORY,
                                 .severity =
                                     failure->survived ? GM_SEVERITY_WARNING : GM_SEVERITY_ERROR,
                                 .device = failure->device,
                                 .bytes = failure->size,
                                 .stack = failure->stack,
                                 .api = failure->api};
    struct gm_held held = gm_held_describe(analysis, &finding, GM_ROUND_BLOCKS,
                                           failure->snapshot.allocated, &failure->snapshot.owners);
    struct refusals refusals = {failure->count,       failure->first,
                                failure->size,        failure->succeeded ? failure->served : 0,
                                failure->never_more,  failure->never_same,
                                failure->starts_over, failure->was_served,
                                failure->survived};
    if (is_search(&refusals))
        add_search(findings, &finding, &refusals);
    else if (reason.fragmentation && !is_full_of_growth(analysis, failure))
        add_fragmentation(analysis, findings, &finding, failure, advice);
    else if (!failure->snapshot.record || !reason.is_known)
        gm_findings_add(findings, &finding, "%s asked with %s allocated and %s reserved.%s",
                        SIZE(failure->size), SIZE(failure->snapshot.allocated),
                        SIZE(failure->snapshot.reserved), held.text);
    else if (failure->limit && reason.outside < failure->size)
        gm_findings_add(findings, &finding,
                        "%s asked with %s in arrays, %s in use and %s reserved of the %s that XLA "
                        "may take (XLA_PYTHON_CLIENT_MEM_FRACTION); the largest hole had %s.%s",
                        SIZE(failure->size), SIZE(failure->snapshot.allocated),
                        SIZE(failure->snapshot.in_use), SIZE(failure->snapshot.reserved),
                        SIZE(failure->limit), SIZE(reason.largest_hole), held.text);
    else
        gm_findings_add(findings, &finding,
                        "%s asked with %s allocated and %s reserved; the largest hole of the pool "
                        "had %s.%s",
                        SIZE(failure->size), SIZE(failure->snapshot.allocated),
                        SIZE(failure->snapshot.reserved), SIZE(reason.largest_hole), held.text);
    if (!findings->entries[findings->count - 1].remedy &&
        findings->entries[findings->count - 1].code == GM_FINDING_OUT_OF_MEMORY)
        gm_findings_remedy(findings, "%s", held.remedy);
    free(held.text);
}

static bool has_blocks(const struct gm_analysis *analysis, int device)
{
    return analysis->blocks.device[device + 1].allocs > 0;
}

static bool is_pytorchs(const struct gm_analysis *analysis, const struct gm_failure *failure)
{
    struct gm_libraries *libraries = gm_libraries_new(analysis->trace);
    const char *pool = gm_libraries_of(libraries, failure->kind, failure->stack).pool;
    bool is = pool && strcmp(pool, "PyTorch") == 0;
    gm_libraries_free(libraries);
    return is;
}

/* What the driver refused to a framework's cache, the framework tries again or reports itself. PyTorch does neither
 * where it hands the driver's answer on: without caching, and on cudaMallocAsync. */
static bool is_of_a_cache(const struct gm_analysis *analysis, const struct gm_failure *failure)
{
    return failure->kind != GM_KIND_NONE &&
           gm_owners_cache(analysis->owners, failure->kind, failure->stack) &&
           (has_blocks(analysis, failure->device) || failure->survived ||
            !is_pytorchs(analysis, failure));
}

/* "1.16 GiB allocated on the device", and what managed memory there was beside. */
static void write_had(char *text, size_t size, const struct gm_sites *owners)
{
    uint64_t managed = gm_held_managed(owners);
    snprintf(text, size, "%s allocated on the device%s%s%s", SIZE(owners->bytes - managed),
             managed ? " (and " : "", managed ? SIZE(managed) : "",
             managed ? " of managed memory, which takes no room there)" : "");
}

/* A call that is no allocation: of it nobody knows how much it needed. Who else held the device then matters more. */
static void add_refused_purpose(const struct gm_analysis *analysis, struct gm_findings *findings,
                                const struct gm_finding *finding, const struct gm_failure *failure,
                                const char *held)
{
    const struct gm_device_facts *facts = &analysis->facts[gm_device_slot(failure->device)];
    char own[64] = "nothing", left[96] = "", others[96] = "";
    const char *where = failure->device >= 0 ? " on the device" : "";
    if (failure->snapshot.owners.bytes)
        snprintf(own, sizeof(own), "%s", SIZE(failure->snapshot.owners.bytes));
    if (facts->total && failure->device >= 0)
        snprintf(left, sizeof(left), ", and of %s at most %s were free", SIZE(facts->total),
                 SIZE(facts->total > failure->used ? facts->total - failure->used : 0));
    if (facts->elsewhere)
        snprintf(others, sizeof(others), " Other processes held %s.", SIZE(facts->elsewhere));
    else if (facts->fullest.bytes) /* how much of that was its own, nobody told */
        snprintf(others, sizeof(others), " All processes together used %s of it at most.",
                 SIZE(facts->fullest.bytes));
    gm_findings_add(findings, finding,
                    "The driver had no memory for %s when the process had %s allocated%s%s. How "
                    "much it needed is not told.%s%s",
                    gm_purpose_text(failure->purpose), own, where, left, others, held);
}

static const char end_others[] =
    "Other processes hold most of the device: end them, or give this one another "
    "(CUDA_VISIBLE_DEVICES).";
static const char see_others[] =
    "This process held nothing there: see what does (nvidia-smi), or give it another device "
    "(CUDA_VISIBLE_DEVICES).";
static const char keep_together[] =
    "Take large blocks before small ones come and go, or from a pool "
    "that maps pages (cudaMallocAsync).";

/* More than half of the device. */
static bool is_held_by_others(const struct gm_analysis *analysis, const struct gm_failure *failure)
{
    const struct gm_device_facts *facts = &analysis->facts[gm_device_slot(failure->device)];
    return failure->device >= 0 && facts->elsewhere > facts->total / 2;
}

/* To a call that is no allocation. */
static const char *purpose_remedy(const struct gm_analysis *analysis,
                                  const struct gm_failure *failure, const char *remedy)
{
    if (is_held_by_others(analysis, failure))
        return end_others;
    return failure->snapshot.owners.bytes ? remedy : see_others;
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
    struct refusals refusals = {failure->count,       failure->first,      failure->size,
                                failure->served,      failure->never_more, failure->never_same,
                                failure->starts_over, failure->was_served, failure->survived};
    enum gm_round_sort sort =
        gm_round_sort_of(&analysis->activity.tellers, false, failure->kind, failure->stack);
    struct gm_held held = gm_held_describe(analysis, &finding, sort, failure->snapshot.owners.bytes,
                                           &failure->snapshot.owners);
    char had[128];
    write_had(had, sizeof(had), &failure->snapshot.owners);
    if (failure->purpose) {
        add_refused_purpose(analysis, findings, &finding, failure, held.text);
        gm_findings_remedy(findings, "%s", purpose_remedy(analysis, failure, held.remedy));
    } else if (is_search(&refusals)) {
        add_search(findings, &finding, &refusals);
    } else if (failure->fell_back) {
        finding.severity = GM_SEVERITY_NOTE;
        gm_findings_add(findings, &finding,
                        "The driver refused %s when the process had %s; as much was taken on the "
                        "host instead.",
                        SIZE(failure->size), had);
    } else if (fragmentation == GM_FRAGMENTATION_CERTAIN) {
        gm_findings_add(findings, &finding,
                        "The driver refused %s when the process had %s. "
                        "Between its allocations %s were free, in holes of at most %s: "
                        "fragmentation.",
                        SIZE(failure->size), had, SIZE(holes->free), SIZE(holes->largest));
        gm_findings_remedy(findings, "%s", keep_together);
    } else if (fragmentation == GM_FRAGMENTATION_UNTOLD) {
        gm_findings_add(findings, &finding,
                        "The driver refused %s when the process had %s. "
                        "Between its allocations were gaps of %s, of at most %s each; whether "
                        "fragmentation refused it cannot be told, for the size of the device is "
                        "not on record.",
                        SIZE(failure->size), had, SIZE(holes->free), SIZE(holes->largest));
        gm_findings_remedy(findings, "%s", held.remedy);
    } else {
        gm_findings_add(findings, &finding, "The driver refused %s when the process had %s.%s",
                        SIZE(failure->size), had, held.text);
        gm_findings_remedy(findings, "%s",
                           is_held_by_others(analysis, failure) ? end_others : held.remedy);
    }
    free(held.text);
}

/* A framework asks a second time, on another way, at the same line. */
static bool is_asked_again(const struct gm_analysis *analysis, size_t number)
{
    const struct gm_failure *failure = &analysis->failures[number];
    uint64_t line = gm_callers_line(analysis->callers, failure->stack);
    if (failure->kind == GM_KIND_NONE ||
        !gm_owners_cache(analysis->owners, failure->kind, failure->stack))
        return false;
    for (size_t i = number + 1; i < analysis->failure_count; i++)
        if (analysis->failures[i].device == failure->device &&
            gm_callers_line(analysis->callers, analysis->failures[i].stack) == line)
            return true;
    return false;
}

void gm_find_out_of_memory(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    struct advice advice = {0};
    for (size_t i = 0; i < analysis->pool_failures.count; i++)
        add_pool_failure(analysis, findings, &analysis->pool_failures.entries[i], &advice);
    for (size_t i = 0; i < analysis->failure_count; i++)
        if (!is_asked_again(analysis, i))
            add_refusal(analysis, findings, &analysis->failures[i]);
}
