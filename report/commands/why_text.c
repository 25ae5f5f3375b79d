/* See why_text.h. */
#include "commands/why_text.h"
#include "base/size.h"
#include "base/text.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const reasons[GM_WHYS] = {
    [GM_WHY_CALL_IN_RECORDER] = "call not recorded: a signal handler made it inside the recorder",
    [GM_WHY_CALL_NOT_JOINED] = "call not recorded: there is no trace, or no ring for the thread",
    [GM_WHY_CALL_FORKED] = "call not recorded: a signal handler forked during it",
    [GM_WHY_ROAD_NAMESPACE] = "not answered with a hook: found in another namespace of the loader",
    [GM_WHY_ROAD_BEFORE_US] = "not answered with a hook: what was found comes before the recorder",
    [GM_WHY_ROAD_ASKER] = "not answered with a hook: the asker defines the function itself",
    [GM_WHY_ROAD_NOT_DEFINED] = "not answered with a hook: what was found is no definition",
    [GM_WHY_ROAD_OTHER] = "not answered with a hook: the hook calls another library's function",
    [GM_WHY_ROAD_ABSENT] = "answered with nothing: without the recorder the name is not there",
    [GM_WHY_ROAD_NEWER_ABI] = "not answered with a hook: the ABI is not known, or not proven",
    [GM_WHY_STEP_NO_RULE] = "step left to libunwind: no unwind data for the code",
    [GM_WHY_STEP_DECLINED] = "step left to libunwind: unwind data that our rules do not cover",
    [GM_WHY_STEP_BEYOND] = "step left to libunwind: beyond what may be read of the stack",
    [GM_WHY_WALK_CUT] = "stack cut here: libunwind is not there, or found no more",
    [GM_WHY_WALK_BUSY] = "no stack: a signal handler interrupted a walk of the thread",
    [GM_WHY_PYTHON_OFF] = "no Python frames",
    [GM_WHY_PYTHON_ENDING] = "no Python frames: the interpreter is finalizing",
    [GM_WHY_PYTHON_NO_STATE] = "no Python frames: the thread runs no Python",
    [GM_WHY_PYTHON_UNKNOWN] = "no Python frames: which subinterpreter runs is not told",
    [GM_WHY_PYTHON_UNPROVEN] = "no Python frames: the layout is not proven yet",
    [GM_WHY_PYTHON_CODE_GONE] = "Python frame left out: its code object is gone",
};

/* An address in the terms of the module that it was in; as it is where that is not on record. */
static void print_address(const struct gm_trace *trace, uint64_t address)
{
    for (uint32_t number = 1; number < trace->header.module_count; number++) {
        const struct gm_module *module = gm_trace_module(trace, number);
        if (!module || address < module->start || address >= module->end)
            continue;
        char *clean = gm_clean_copy(gm_trace_string(trace, module->path));
        printf(" %s+0x%" PRIx64, gm_name_behind_slash(clean), address - module->load_bias);
        free(clean);
        return;
    }
    printf(" 0x%" PRIx64, address);
}

/* The writer may be at it: what is printed is a copy. */
static void print_entry(const struct gm_trace *trace, const struct gm_why_entry *place)
{
    const struct gm_why_entry entry = *place;
    char count[GM_SIZE_TEXT];
    if (entry.reason == GM_WHY_NONE)
        return;
    const char *reason = entry.reason < GM_WHYS ? reasons[entry.reason] : "of a newer recorder";
    printf("%-12s %s times: %s", "why", gm_count_format(entry.count, count), reason);
    char *clean = gm_clean_copy(gm_trace_field(entry.name, sizeof(entry.name)));
    if (clean[0])
        printf(": %s", clean);
    free(clean);
    if (entry.address)
        print_address(trace, entry.address);
    putchar('\n');
}

void gm_why_text(const struct gm_trace *trace)
{
    const struct gm_why_ring *ring = trace->why;
    if (!ring) {
        printf("%-12s this trace does not tell: its recorder was not built with GPUMEM_WHY\n",
               "why");
        return;
    }
    uint64_t begun = ring->begun, oldest = begun > GM_WHY_ENTRIES ? begun - GM_WHY_ENTRIES : 0;
    if (oldest)
        printf("%-12s the first %" PRIu64 " are overwritten\n", "why", oldest);
    if (!begun)
        printf("%-12s nothing was declined\n", "why");
    for (uint64_t n = 0; n < GM_WHY_ENTRIES; n++)
        print_entry(trace, &ring->entry[(oldest + n) % GM_WHY_ENTRIES]);
}
