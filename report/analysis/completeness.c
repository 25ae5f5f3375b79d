/* See completeness.h. */
#include "analysis/completeness.h"
#include "base/size.h"
#include "commands/trace_home.h"
#include "render/sections/newer_abi.h"
#include <stdio.h>
#include <string.h>

/* ---- the recorder's counters ----------------------------------------------------------------- */

/* What a counter of the recorder means for those who judge its trace. */
enum meaning {
    UNKNOWN,        /* none of ours: a newer recorder counts something that went wrong */
    MISSING_RECORD, /* each is a record that is missing, and belongs to `lost` */
    WRONG_NUMBERS, /* no record is missing, or it is missed in another way; the numbers are wrong */
    WORSE_STACKS,  /* names or stacks are worse, no byte is missing */
    STATISTICS,    /* how the recorder worked */
};

/* Each counter of enum gm_counter: its name in the JSON, its meaning and its line, for one and for
 * more; %s is the count. */
static const struct counter_rule {
    const char *name;
    enum meaning meaning;
    const char *one;
    const char *more;
} counter_rules[GM_COUNTERS] = {
    [GM_COUNT_DROPPED] = {"dropped", MISSING_RECORD,
                          "%s record was dropped because a ring was full (GPUMEM_ON_FULL=drop).",
                          "%s records were dropped because a ring was full "
                          "(GPUMEM_ON_FULL=drop)."},
    [GM_COUNT_REENTRANT] = {"reentrant", MISSING_RECORD,
                            "%s call from a signal handler inside a call was not recorded.",
                            "%s calls from signal handlers inside a call were not recorded."},
    [GM_COUNT_NO_LANE] = {"no_lane", MISSING_RECORD,
                          "%s call of a thread for which there was no ring was not recorded.",
                          "%s calls of threads for which there was no ring were not recorded."},
    [GM_COUNT_WRITE_FAILED] = {"write_failed", WRONG_NUMBERS,
                               "%s record could not be written: the disk was full, or a limit on "
                               "the size of files was reached.",
                               "%s records could not be written: the disk was full, or a limit on "
                               "the size of files was reached."},
    [GM_COUNT_STACK_TRUNCATED] = {"stack_truncated", WORSE_STACKS,
                                  "%s stack is cut: deeper than the limit, or without unwind data",
                                  "%s stacks are cut: deeper than the limit, or without unwind "
                                  "data"},
    [GM_COUNT_STACK_LIMIT] = {"stack_limit", WORSE_STACKS,
                              "%s stack is missing: the table of stacks was full",
                              "%s stacks are missing: the table of stacks was full"},
    [GM_COUNT_STRING_LIMIT] = {"string_limit", WORSE_STACKS,
                               "%s name is missing: the table of names was full",
                               "%s names are missing: the table of names was full"},
    [GM_COUNT_FALLBACK] = {"stack_fallback", STATISTICS, NULL, NULL},
    [GM_COUNT_MODULE_LIMIT] = {"module_limit", WORSE_STACKS,
                               "%s frame is without a module: the table of modules was full",
                               "%s frames are without a module: the table of modules was full"},
    /* Records of which no trace is left are missed by their numbers. */
    [GM_COUNT_FLIGHT_FULL] = {"flight_full", STATISTICS, NULL, NULL},
    [GM_COUNT_FLIGHT_MISSED] = {"flight_missed", MISSING_RECORD,
                                "The flight recorder had no memory for %s record of what was "
                                "alive.",
                                "The flight recorder had no memory for %s records of what was "
                                "alive."},
    [GM_COUNT_FLIGHT_LATE] =
        {"flight_late", MISSING_RECORD,
         "Of a thread that did not run for long the flight recorder missed "
         "the turn of %s record: what it did at once with others can be wrong.",
         "Of threads that did not run for long the flight recorder missed the "
         "turn of %s records: what they did at once with others can be wrong."},
    /* Told with their names. */
    [GM_COUNT_NEWER_ABI] = {"newer_abi", STATISTICS, NULL, NULL},
    [GM_COUNT_NEWER_ABI_VITAL] = {"newer_abi_vital", STATISTICS, NULL, NULL},
    [GM_COUNT_PYTHON_UNKNOWN] = {"python_unknown", WORSE_STACKS,
                                 "%s stack is without Python frames: CPython did not tell which "
                                 "subinterpreter ran",
                                 "%s stacks are without Python frames: CPython did not tell which "
                                 "subinterpreter ran"},
    [GM_COUNT_GROW_FAILED] =
        {"grow_failed", WORSE_STACKS,
         "%s stack, name or module is missing: when it came there was no room "
         "on the disk, or no memory",
         "%s stacks, names or modules are missing: when they came there was no "
         "room on the disk, or no memory"},
    [GM_COUNT_LANE_LIMIT] = {"lane_limit", MISSING_RECORD,
                             "%s call of a thread beyond 65,536 at one time was not recorded.",
                             "%s calls of threads beyond 65,536 at one time were not recorded."},
    [GM_COUNT_FRAME_LIMIT] = {"frame_limit", WORSE_STACKS,
                              "%s frame of an interpreter is missing: their table was full",
                              "%s frames of an interpreter are missing: their table was full"},
    [GM_COUNT_STRING_CUT] = {"string_cut", WORSE_STACKS,
                             "%s name is cut: it is longer than 4,096 bytes",
                             "%s names are cut: they are longer than 4,096 bytes"},
    [GM_COUNT_MARK_LIMIT] = {"mark_limit", WORSE_STACKS,
                             "%s mark or range has no name: their share of the table of names was "
                             "full",
                             "%s marks and ranges have no name: their share of the table of names "
                             "was full"},
    [GM_COUNT_MODULE_UNREAD] = {"module_unread", WORSE_STACKS,
                                "%s frame is without a module: /proc/self/maps could not be read",
                                "%s frames are without a module: /proc/self/maps could not be "
                                "read"},
    [GM_COUNT_CONTEXT_LIMIT] = {"context_limit", WRONG_NUMBERS,
                                "%s context beyond 65,534 was not followed: what was allocated in "
                                "it may have ended unseen.",
                                "%s contexts beyond 65,534 were not followed: what was allocated "
                                "in them may have ended unseen."},
    [GM_COUNT_CONTEXT_DEPTH] = {"context_depth", WRONG_NUMBERS,
                                "%s context was pushed on 32 others or more, where they are not "
                                "followed: what was allocated there may have ended unseen.",
                                "%s contexts were pushed on 32 others or more, where they are not "
                                "followed: what was allocated there may have ended unseen."},
    [GM_COUNT_HANDLE_LIMIT] = {"handle_limit", WRONG_NUMBERS,
                               "%s pool, stream or capture could not be noted for lack of memory: "
                               "what was allocated by it may be on another device, or a graph's.",
                               "%s pools, streams or captures could not be noted for lack of "
                               "memory: what was allocated by them may be on another device, or a "
                               "graph's."},
};

/* Late turns matter for what was folded only: without a checkpoint the history is whole. */
static uint64_t counted(const struct gm_trace *trace, unsigned counter)
{
    if (counter == GM_COUNT_FLIGHT_LATE && !trace->checkpoint)
        return 0;
    return trace->header.counters[counter];
}

uint64_t gm_counted_loss(const struct gm_trace *trace)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < GM_COUNTERS; i++)
        if (counter_rules[i].meaning == MISSING_RECORD)
            sum = gm_add_saturated(sum, counted(trace, i));
    return sum;
}

/* ---- what else there is ---------------------------------------------------------------------- */

static uint64_t is_not_recorded(const struct gm_analysis *analysis)
{
    return (analysis->trace->header.flags & GM_HEADER_NOT_RECORDED) != 0;
}

static uint64_t is_elsewhere(const struct gm_analysis *analysis)
{
    return (analysis->trace->header.flags & GM_HEADER_ELSEWHERE) != 0;
}

static uint64_t is_cut(const struct gm_analysis *analysis)
{
    return analysis->trace->ending == GM_ENDING_CUT && !is_not_recorded(analysis);
}

static uint64_t is_running(const struct gm_analysis *analysis)
{
    return analysis->trace->ending == GM_ENDING_RUNNING && !is_not_recorded(analysis);
}

static uint64_t is_truncated(const struct gm_analysis *analysis)
{
    return analysis->trace->truncated;
}

static uint64_t damaged(const struct gm_analysis *analysis)
{
    return analysis->trace->damaged;
}

static uint64_t lost(const struct gm_analysis *analysis)
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
        if (counter_rules[i].meaning == UNKNOWN)
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
    return analysis->replay.lost_frees;
}

static uint64_t unknown_frees(const struct gm_analysis *analysis)
{
    return analysis->replay.unknown_frees;
}

static uint64_t malformed(const struct gm_analysis *analysis)
{
    return analysis->replay.malformed + analysis->blocks.malformed;
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
    {"cut", GM_GAP_LOSS, is_cut,
     "CUT: the process did not end normally (killed or crashed). This is its memory up to that "
     "moment.",
     NULL, NULL},
    {"running", GM_GAP_LOSS, is_running,
     "RUNNING: the process has not ended. This is its memory up to now.", NULL, NULL},
    {"truncated", GM_GAP_LOSS, is_truncated,
     "TRUNCATED: the file is shorter than it was; what is left was read.", NULL, NULL},
    {"damaged", GM_GAP_LOSS, damaged,
     "DAMAGED: %s part of the trace could not be read; the numbers are too low or too high by what "
     "was in there.",
     "DAMAGED: %s parts of the trace could not be read; the numbers are too low or too high by "
     "what was in there.",
     NULL},
    {"lost", GM_GAP_LOSS, lost,
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

/* One that is the case. */
struct gap {
    const char *code;
    enum gm_gap_effect effect;
    uint64_t count;
    char text[1280];
};

static void describe(struct gap *gap, const char *one, const char *more)
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
static bool gap_at(const struct gm_analysis *analysis, size_t at, struct gap *gap)
{
    if (at < RULES) {
        const struct rule *rule = &rules[at];
        *gap = (struct gap){rule->code, rule->effect, rule->count(analysis), ""};
        if (gap->count && rule->write)
            rule->write(analysis->trace, gap->text, sizeof(gap->text));
        else if (gap->count)
            describe(gap, rule->one, rule->more);
        return gap->count != 0;
    }
    const struct counter_rule *rule = &counter_rules[at - RULES];
    if (rule->meaning == UNKNOWN || rule->meaning == STATISTICS)
        return false;
    *gap = (struct gap){rule->name, rule->meaning == WORSE_STACKS ? GM_GAP_NOTE : GM_GAP_LOSS,
                        counted(analysis->trace, (unsigned)(at - RULES)), ""};
    if (gap->count)
        describe(gap, rule->one, rule->more);
    return gap->count != 0;
}

static bool is_any(const struct gm_analysis *analysis, enum gm_gap_effect effect)
{
    struct gap gap;
    for (size_t i = 0; i < RULES + GM_COUNTERS; i++)
        if (gap_at(analysis, i, &gap) && gap.effect == effect)
            return true;
    return false;
}

bool gm_analysis_is_complete(const struct gm_analysis *analysis)
{
    return !is_any(analysis, GM_GAP_LOSS);
}

bool gm_has_notes(const struct gm_analysis *analysis)
{
    return is_any(analysis, GM_GAP_NOTE);
}

void gm_losses_text(struct gm_page *page, const struct gm_analysis *analysis)
{
    struct gap gap;
    for (size_t i = 0; i < RULES + GM_COUNTERS; i++)
        if (gap_at(analysis, i, &gap) && gap.effect == GM_GAP_LOSS)
            gm_page_paragraph(page, GM_BAD, 0, "%s", gap.text);
}

void gm_notes_text(struct gm_page *page, const struct gm_analysis *analysis, const char *start)
{
    struct gap gap;
    for (size_t i = 0; i < RULES + GM_COUNTERS; i++)
        if (gap_at(analysis, i, &gap) && gap.effect == GM_GAP_NOTE)
            gm_page_paragraph(page, GM_DIM, 2, "%s%s", start, gap.text);
}

void gm_gaps_json(struct gm_json *json, const struct gm_analysis *analysis)
{
    struct gap gap;
    gm_json_open_array(json, "gaps");
    for (size_t i = 0; i < RULES + GM_COUNTERS; i++) {
        if (!gap_at(analysis, i, &gap))
            continue;
        gm_json_open_object(json, NULL);
        gm_json_string(json, "code", gap.code);
        gm_json_bool(json, "loss", gap.effect == GM_GAP_LOSS);
        gm_json_number(json, "count", gap.count);
        gm_json_string(json, "text", gap.text);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

void gm_recorder_json(struct gm_json *json, const struct gm_analysis *analysis)
{
    gm_json_open_object(json, "recorder");
    for (size_t i = 0; i < GM_COUNTERS; i++)
        if (counter_rules[i].name)
            gm_json_number(json, counter_rules[i].name, analysis->trace->header.counters[i]);
    struct gm_text python = gm_trace_string(analysis->trace, analysis->trace->header.python_state);
    if (python.size)
        gm_json_text(json, "python", python);
    gm_json_close_object(json);
}
