/* Device code that is loaded over and over and stays. */
#include "base/size.h"
#include "judge/findings/rules.h"
#include "names/stacks/callers.h"
#include <stdlib.h>

#define TIMES 16u    /* apart must a line have loaded code that stayed, */
#define TIMES_FEW 8u /* or so often, if it is */
#define DENSE 8u     /* once for so many of the program's allocations, or for fewer; */
#define LATER 4u     /* one of so many times in the second half of the program's progress, */
#define LAST_PART 4u /* the latest in the last of so many parts of it, */
#define CALL_SHARE                                                                                 \
    4u /* at one of so many of its allocations: else what it compiled is used again */

/* How often the program allocated at a line: as often as it was run, where it returns something. */
static uint64_t calls_at(const struct gm_analysis *analysis, uint64_t line)
{
    uint64_t calls = 0;
    for (size_t i = 0; i < analysis->activity.count; i++) {
        const struct gm_active_site *site = &analysis->activity.sites[i];
        if (gm_callers_line(analysis->callers, site->stack) == line)
            calls = gm_add_saturated(calls, site->allocs);
    }
    return calls;
}

/* A thread of a library's that no call of the program's is behind loads code at one place for all of them. */
static bool is_of_program(const struct gm_analysis *analysis, uint32_t stack)
{
    return gm_callers_way(analysis->callers, stack) != 0;
}

static bool code_grows(const struct gm_analysis *analysis, const struct gm_code_line *line)
{
    uint64_t progress = analysis->code.progress;
    bool is_dense = line->times >= TIMES_FEW && progress / line->times <= DENSE;
    return (line->times >= TIMES || is_dense) && line->before <= progress / 2 &&
           line->later >= line->times / LATER &&
           line->latest->begin >= progress - progress / LAST_PART &&
           is_of_program(analysis, line->latest->stack) &&
           calls_at(analysis, line->latest->line) / CALL_SHARE <= line->times;
}

static bool has_arrays_of_xla(const struct gm_analysis *analysis)
{
    for (size_t i = 0; i < GM_DEVICES; i++)
        if (gm_blocks_are_of(&analysis->blocks.device[i], GM_BLOCK_OF_XLA))
            return true;
    return false;
}

void gm_find_growing_code(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    struct gm_code_line *lines;
    const struct gm_code_line *most = NULL;
    size_t count = gm_code_lines(&analysis->code, &lines);
    for (size_t i = 0; i < count; i++)
        if (code_grows(analysis, &lines[i]) && (!most || lines[i].modules > most->modules))
            most = &lines[i];
    if (most) {
        gm_findings_add(
            findings,
            &(struct gm_finding){.code = GM_FINDING_GROWING_CODE,
                                 .severity = GM_SEVERITY_NOTE,
                                 .device = -1,
                                 .stack = most->latest->stack,
                                 .api = most->latest->api},
            "Device code was loaded here %s times, up to the end of the program's work, and "
            "stayed: %s modules, each with its code and constants beside what is allocated.",
            COUNT(most->times), COUNT(most->modules));
        gm_findings_remedy(
            findings,
            has_arrays_of_xla(analysis)
                ? "JAX compiles a function anew for each shape, type and static argument: pad to a "
                  "few "
                  "shapes, pass what changes as an array; jax.clear_caches() frees what was "
                  "compiled."
                : "Compile once and keep the kernel: pass what changes from call to call as an "
                  "argument, not as a constant or a shape; unload what is not launched again.");
    }
    free(lines);
}
