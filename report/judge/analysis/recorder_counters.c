/* See recorder_counters.h. */
#include "judge/analysis/recorder_counters.h"
#include "replay/ledger/counters.h"

static const struct gm_counter_rule rules[GM_COUNTERS] = {
    [GM_COUNT_DROPPED] = {"dropped", GM_COUNTER_MISSING_RECORD,
                          "%s record was dropped because a ring was full (GPUMEM_ON_FULL=drop).",
                          "%s records were dropped because a ring was full "
                          "(GPUMEM_ON_FULL=drop)."},
    [GM_COUNT_REENTRANT] = {"reentrant", GM_COUNTER_MISSING_RECORD,
                            "%s call from a signal handler inside a call was not recorded.",
                            "%s calls from signal handlers inside a call were not recorded."},
    [GM_COUNT_NO_LANE] = {"no_lane", GM_COUNTER_MISSING_RECORD,
                          "%s call of a thread for which there was no ring was not recorded.",
                          "%s calls of threads for which there was no ring were not recorded."},
    [GM_COUNT_WRITE_FAILED] = {"write_failed", GM_COUNTER_WRONG_NUMBERS,
                               "%s record could not be written: the disk was full, or a limit on "
                               "the size of files was reached.",
                               "%s records could not be written: the disk was full, or a limit on "
                               "the size of files was reached."},
    [GM_COUNT_STACK_TRUNCATED] = {"stack_truncated", GM_COUNTER_WORSE_STACKS,
                                  "%s stack is cut: deeper than the limit, or without unwind data",
                                  "%s stacks are cut: deeper than the limit, or without unwind "
                                  "data"},
    [GM_COUNT_STACK_LIMIT] = {"stack_limit", GM_COUNTER_WORSE_STACKS,
                              "%s stack is missing: the table of stacks was full",
                              "%s stacks are missing: the table of stacks was full"},
    [GM_COUNT_STRING_LIMIT] = {"string_limit", GM_COUNTER_WORSE_STACKS,
                               "%s name is missing: the table of names was full",
                               "%s names are missing: the table of names was full"},
    [GM_COUNT_FALLBACK] = {"stack_fallback", GM_COUNTER_STATISTICS, NULL, NULL},
    [GM_COUNT_MODULE_LIMIT] = {"module_limit", GM_COUNTER_WORSE_STACKS,
                               "%s frame is without a module: the table of modules was full",
                               "%s frames are without a module: the table of modules was full"},
    /* Records of which no trace is left are missed by their numbers. */
    [GM_COUNT_FLIGHT_FULL] = {"flight_full", GM_COUNTER_STATISTICS, NULL, NULL},
    [GM_COUNT_FLIGHT_MISSED] = {"flight_missed", GM_COUNTER_MISSING_RECORD,
                                "The flight recorder had no memory for %s record of what was "
                                "alive.",
                                "The flight recorder had no memory for %s records of what was "
                                "alive."},
    [GM_COUNT_FLIGHT_LATE] =
        {"flight_late", GM_COUNTER_MISSING_RECORD,
         "Of a thread that did not run for long the flight recorder missed "
         "the turn of %s record: what it did at once with others can be wrong.",
         "Of threads that did not run for long the flight recorder missed the "
         "turn of %s records: what they did at once with others can be wrong."},
    /* Told with their names. */
    [GM_COUNT_NEWER_ABI] = {"newer_abi", GM_COUNTER_STATISTICS, NULL, NULL},
    [GM_COUNT_NEWER_ABI_VITAL] = {"newer_abi_vital", GM_COUNTER_STATISTICS, NULL, NULL},
    [GM_COUNT_PYTHON_UNKNOWN] = {"python_unknown", GM_COUNTER_WORSE_STACKS,
                                 "%s stack is without Python frames: CPython did not tell which "
                                 "subinterpreter ran",
                                 "%s stacks are without Python frames: CPython did not tell which "
                                 "subinterpreter ran"},
    [GM_COUNT_GROW_FAILED] =
        {"grow_failed", GM_COUNTER_WORSE_STACKS,
         "%s stack, name or module is missing: when it came there was no room "
         "on the disk, or no memory",
         "%s stacks, names or modules are missing: when they came there was no "
         "room on the disk, or no memory"},
    [GM_COUNT_LANE_LIMIT] = {"lane_limit", GM_COUNTER_MISSING_RECORD,
                             "%s call of a thread beyond 65,536 at one time was not recorded.",
                             "%s calls of threads beyond 65,536 at one time were not recorded."},
    [GM_COUNT_FRAME_LIMIT] = {"frame_limit", GM_COUNTER_WORSE_STACKS,
                              "%s frame of an interpreter is missing: their table was full",
                              "%s frames of an interpreter are missing: their table was full"},
    [GM_COUNT_STRING_CUT] = {"string_cut", GM_COUNTER_WORSE_STACKS,
                             "%s name is cut: it is longer than 4,096 bytes",
                             "%s names are cut: they are longer than 4,096 bytes"},
    [GM_COUNT_MARK_LIMIT] = {"mark_limit", GM_COUNTER_WORSE_STACKS,
                             "%s mark or range has no name: their share of the table of names was "
                             "full",
                             "%s marks and ranges have no name: their share of the table of names "
                             "was full"},
    [GM_COUNT_MODULE_UNREAD] = {"module_unread", GM_COUNTER_WORSE_STACKS,
                                "%s frame is without a module: /proc/self/maps could not be read",
                                "%s frames are without a module: /proc/self/maps could not be "
                                "read"},
    [GM_COUNT_CONTEXT_LIMIT] = {"context_limit", GM_COUNTER_WRONG_NUMBERS,
                                "%s context beyond 65,534 was not followed: what was allocated in "
                                "it may have ended unseen.",
                                "%s contexts beyond 65,534 were not followed: what was allocated "
                                "in them may have ended unseen."},
    [GM_COUNT_CONTEXT_DEPTH] = {"context_depth", GM_COUNTER_WRONG_NUMBERS,
                                "%s context was pushed on 32 others or more, where they are not "
                                "followed: what was allocated there may have ended unseen.",
                                "%s contexts were pushed on 32 others or more, where they are not "
                                "followed: what was allocated there may have ended unseen."},
    [GM_COUNT_HANDLE_LIMIT] = {"handle_limit", GM_COUNTER_WRONG_NUMBERS,
                               "%s pool, stream or capture could not be noted for lack of memory: "
                               "what was allocated by it may be on another device, or a graph's.",
                               "%s pools, streams or captures could not be noted for lack of "
                               "memory: what was allocated by them may be on another device, or a "
                               "graph's."},
    [GM_COUNT_DEVICE_LIMIT] =
        {"device_limit", GM_COUNTER_WRONG_NUMBERS,
         "%s call about a device beyond 64 was not followed: memory there may "
         "have ended unseen.",
         "%s calls about devices beyond 64 were not followed: memory there "
         "may have ended unseen."},
    [GM_COUNT_SAMPLE_LIMIT] =
        {"sample_limit", GM_COUNTER_WORSE_STACKS,
         "%s sample of a device is missing or incomplete: NVML or CUDA_VISIBLE_DEVICES names more "
         "than the recorder takes",
         "%s samples of devices are missing or incomplete: NVML or CUDA_VISIBLE_DEVICES names more "
         "than the recorder takes"},
    [GM_COUNT_NAME_LIMIT] = {"name_limit", GM_COUNTER_WORSE_STACKS,
                             "%s name registered with NVTX is missing: their table was full",
                             "%s names registered with NVTX are missing: their table was full"},
    [GM_COUNT_ENVIRONMENT_LIMIT] =
        {"environment_limit", GM_COUNTER_WORSE_STACKS,
         "%s variable of the environment is missing: it is too long, or 64 KiB were full",
         "%s variables of the environment are missing: they are too long, or 64 KiB were full"},
    [GM_COUNT_LEND_LIMIT] = {"lend_limit", GM_COUNTER_STATISTICS, NULL, NULL},
    [GM_COUNT_CLOCK_BACK] =
        {"clock_back", GM_COUNTER_WRONG_NUMBERS,
         "The processor's counter was set back %s time, as where a machine sleeps: order and times "
         "of what was recorded around it are not known.",
         "The processor's counter was set back %s times, as where a machine sleeps: order and "
         "times of what was recorded around it are not known."},
    [GM_COUNT_SNAPSHOT] = {"snapshot_contradicts", GM_COUNTER_WRONG_NUMBERS,
                           "%s entry of the snapshot contradicts its segments, or makes no sense",
                           "%s entries of the snapshot contradict its segments or make no sense"},
};

const struct gm_counter_rule *gm_counter_rule(unsigned counter)
{
    return &rules[counter];
}

/* Late turns matter for what was folded only: without a checkpoint the history is whole. */
uint64_t gm_counter_value(const struct gm_trace *trace, unsigned counter)
{
    if (counter == GM_COUNT_FLIGHT_LATE && !trace->checkpoint)
        return 0;
    return trace->header.counters[counter];
}

uint64_t gm_counted_loss(const struct gm_trace *trace)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < GM_COUNTERS; i++)
        if (rules[i].meaning == GM_COUNTER_MISSING_RECORD)
            sum = gm_add_saturated(sum, gm_counter_value(trace, i));
    return sum;
}
