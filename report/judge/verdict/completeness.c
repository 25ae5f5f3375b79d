/* See completeness.h. */
#include "judge/verdict/completeness.h"
#include "base/size.h"
#include "judge/analysis/recorder_counters.h"
#include "judge/verdict/ending.h"
#include "judge/verdict/file_system.h"
#include "judge/verdict/newer_abi.h"
#include <stdio.h>
#include <string.h>

/* ---- what else there is ---------------------------------------------------------------------- */

static uint64_t is_not_recorded(const struct gm_analysis *analysis)
{
    return (analysis->trace->header.flags & GM_HEADER_NOT_RECORDED) != 0;
}

static uint64_t is_elsewhere(const struct gm_analysis *analysis)
{
    return (analysis->trace->header.flags & GM_HEADER_ELSEWHERE) != 0;
}

static bool is_without_end(const struct gm_analysis *analysis)
{
    return analysis->trace->ending == GM_ENDING_CUT && !is_not_recorded(analysis);
}

static uint64_t is_asked_to_end(const struct gm_analysis *analysis)
{
    return is_without_end(analysis) && gm_was_asked_to_end(&analysis->trace->header);
}

static uint64_t is_cut(const struct gm_analysis *analysis)
{
    return is_without_end(analysis) && !is_asked_to_end(analysis);
}

static uint64_t is_failed(const struct gm_analysis *analysis)
{
    const struct gm_device_failure *failed = &analysis->trace->failed;
    return failed->status ? failed->frees + 1 : 0;
}

static uint64_t is_snapshot(const struct gm_analysis *analysis)
{
    return (analysis->trace->header.flags & GM_HEADER_SNAPSHOT) != 0;
}

static uint64_t has_unknown_xla(const struct gm_analysis *analysis)
{
    return (analysis->trace->header.flags & GM_HEADER_XLA_UNKNOWN) != 0;
}

static uint64_t is_running(const struct gm_analysis *analysis)
{
    return analysis->trace->ending == GM_ENDING_RUNNING && !is_not_recorded(analysis) &&
           !is_snapshot(analysis);
}

static uint64_t is_truncated(const struct gm_analysis *analysis)
{
    return analysis->trace->truncated;
}

static uint64_t damaged(const struct gm_analysis *analysis)
{
    return analysis->trace->damaged;
}

static uint64_t lost_events(const struct gm_analysis *analysis)
{
    return analysis->lost;
}

static uint64_t is_area_too_small(const struct gm_analysis *analysis)
{
    return analysis->lost && analysis->trace->header.counters[GM_COUNT_FLIGHT_FULL];
}

static uint64_t counted_by_newer(const struct gm_analysis *analysis)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < GM_COUNTERS; i++)
        if (gm_counter_rule(i)->meaning == GM_COUNTER_UNKNOWN)
            sum = gm_add_saturated(sum, analysis->trace->header.counters[i]);
    return sum;
}

static uint64_t vital_newer_abi(const struct gm_analysis *analysis)
{
    return analysis->trace->header.counters[GM_COUNT_NEWER_ABI_VITAL];
}

static uint64_t other_newer_abi(const struct gm_analysis *analysis)
{
    const uint64_t *counters = analysis->trace->header.counters;
    return counters[GM_COUNT_NEWER_ABI_VITAL] ? 0 : counters[GM_COUNT_NEWER_ABI];
}

static uint64_t lost_frees(const struct gm_analysis *analysis)
{
    return analysis->replay.ledger.lost_frees;
}

static uint64_t unknown_frees(const struct gm_analysis *analysis)
{
    return analysis->replay.ledger.unknown_frees;
}

static uint64_t malformed(const struct gm_analysis *analysis)
{
    return analysis->replay.ledger.malformed + analysis->blocks.malformed;
}

static uint64_t unknown_records(const struct gm_analysis *analysis)
{
    return analysis->replay.not_understood;
}

static uint64_t refused_nodes(const struct gm_analysis *analysis)
{
    return analysis->replay.graphs.nodes_refused;
}

/* In the order in which they are told. */
static const struct rule {
    const char *code; /* stable: the JSON has it */
    enum gm_gap_effect effect;
    uint64_t (*count)(const struct gm_analysis *analysis); /* 0: not the case */
    const char *one;
    const char *more;                                                     /* NULL: the same */
    void (*write)(const struct gm_trace *trace, char *text, size_t size); /* instead of both */
} rules[] = {
    {"not_recorded", GM_GAP_LOSS, is_not_recorded, NULL, NULL, gm_not_recorded_sentence},
    {"cut", GM_GAP_LOSS, is_cut, NULL, NULL, gm_cut_sentence},
    {"device_failed", GM_GAP_LOSS, is_failed, NULL, NULL, gm_failed_sentence},
    {"asked_to_end", GM_GAP_NOTE, is_asked_to_end,
     "SIGTERM ended the process, and the process that waited for it was there to see it, as pools "
     "of workers do. Nothing says that what it held then is a leak.",
     NULL, NULL},
    {"running", GM_GAP_LOSS, is_running, NULL, NULL, gm_running_sentence},
    {"snapshot", GM_GAP_NOTE, is_snapshot,
     "SNAPSHOT: this is what PyTorch recorded of its own pools, up to the moment at which the "
     "snapshot was taken. Memory that others allocated is not in it.",
     NULL, NULL},
    {"truncated", GM_GAP_LOSS, is_truncated,
     "TRUNCATED: the file is shorter than it was; what is left was read.", NULL, NULL},
    {"damaged", GM_GAP_LOSS, damaged,
     "DAMAGED: %s part of the trace could not be read; the numbers are too low or too high by what "
     "was in there.",
     "DAMAGED: %s parts of the trace could not be read; the numbers are too low or too high by "
     "what was in there.",
     NULL},
    {"lost", GM_GAP_LOSS, lost_events,
     "INCOMPLETE: %s record is missing; the numbers are too low or too high by what it told.",
     "INCOMPLETE: %s records are missing; the numbers are too low or too high by what they told.",
     NULL},
    {"flight_full", GM_GAP_LOSS, is_area_too_small,
     "The flight recorder's area was too small for what was alive. Record with a larger one: "
     "gpumem run --flight=SIZE, or GPUMEM_FLIGHT_SIZE.",
     NULL, NULL},
    {"newer_counter", GM_GAP_LOSS, counted_by_newer,
     "INCOMPLETE: %s trouble was counted by a newer recorder, in a way that this version does not "
     "know.",
     "INCOMPLETE: %s troubles were counted by a newer recorder, in a way that this version does "
     "not know.",
     NULL},
    {"newer_abi_vital", GM_GAP_LOSS, vital_newer_abi, NULL, NULL, gm_newer_abi_sentence},
    {"newer_abi", GM_GAP_NOTE, other_newer_abi, NULL, NULL, gm_newer_abi_sentence},
    {"xla_unknown", GM_GAP_NOTE, has_unknown_xla,
     "A plugin of XLA's has an unknown interface: its arrays were not recorded.", NULL, NULL},
    {"elsewhere", GM_GAP_NOTE, is_elsewhere, NULL, NULL, gm_elsewhere_sentence},
    {"lost_frees", GM_GAP_LOSS, lost_frees,
     "INCOMPLETE: %s address was allocated again without a free on record: a free was not seen.",
     "INCOMPLETE: %s addresses were allocated again without a free on record: frees were not "
     "seen.",
     NULL},
    {"unknown_frees", GM_GAP_LOSS, unknown_frees,
     "INCOMPLETE: %s free succeeded of memory whose allocation is not on record: an allocation was "
     "not seen.",
     "INCOMPLETE: %s frees succeeded of memory whose allocation is not on record: allocations were "
     "not seen.",
     NULL},
    {"malformed", GM_GAP_LOSS, malformed, "INCOMPLETE: %s record makes no sense and was not used.",
     "INCOMPLETE: %s records make no sense and were not used.", NULL},
    {"not_understood", GM_GAP_LOSS, unknown_records,
     "INCOMPLETE: %s record is of a kind that this version does not know.",
     "INCOMPLETE: %s records are of kinds that this version does not know.", NULL},
    {"nodes_refused", GM_GAP_LOSS, refused_nodes,
     "INCOMPLETE: %s node of graphs was not followed: there are more than this version keeps.",
     "INCOMPLETE: %s nodes of graphs were not followed: there are more than this version keeps.",
     NULL},
};

#define RULES (sizeof(rules) / sizeof(rules[0]))

/* ---- both, as one list ----------------------------------------------------------------------- */

static void describe_gap(struct gm_gap *gap, const char *one, const char *more)
{
    const char *text = gap->count == 1 || !more ? one : more, *at = strstr(text, "%s");
    if (!at) {
        snprintf(gap->text, sizeof(gap->text), "%s", text);
        return;
    }
    snprintf(gap->text, sizeof(gap->text), "%.*s%s%s", (int)(at - text), text, COUNT(gap->count),
             at + 2);
}

/* Number `at` of all there could be; false if it is not the case, or has nothing to say. */
static bool gap_at(const struct gm_analysis *analysis, size_t at, struct gm_gap *gap)
{
    if (at < RULES) {
        const struct rule *rule = &rules[at];
        *gap = (struct gm_gap){rule->code, rule->effect, rule->count(analysis), ""};
        if (gap->count && rule->write)
            rule->write(analysis->trace, gap->text, sizeof(gap->text));
        else if (gap->count)
            describe_gap(gap, rule->one, rule->more);
        return gap->count != 0;
    }
    unsigned counter = (unsigned)(at - RULES);
    const struct gm_counter_rule *rule = gm_counter_rule(counter);
    if (rule->meaning == GM_COUNTER_UNKNOWN || rule->meaning == GM_COUNTER_STATISTICS)
        return false;
    *gap = (struct gm_gap){rule->name,
                           rule->meaning == GM_COUNTER_WORSE_STACKS ? GM_GAP_NOTE : GM_GAP_LOSS,
                           gm_counter_value(analysis->trace, counter), ""};
    if (gap->count)
        describe_gap(gap, rule->one, rule->more);
    return gap->count != 0;
}

bool gm_gap_next(const struct gm_analysis *analysis, size_t *at, struct gm_gap *gap)
{
    while (*at < RULES + GM_COUNTERS)
        if (gap_at(analysis, (*at)++, gap))
            return true;
    return false;
}

bool gm_analysis_is_complete(const struct gm_analysis *analysis)
{
    struct gm_gap gap;
    for (size_t at = 0; gm_gap_next(analysis, &at, &gap);)
        if (gap.effect == GM_GAP_LOSS)
            return false;
    return true;
}
