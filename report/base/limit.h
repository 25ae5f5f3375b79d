/*
 * What one trace may cost. A trace is untrusted, and a small one can ask for much: a few bytes
 * stand for thousands of records, a record for thousands of steps.
 *
 * The rule: memory and work grow with the bytes of the file, with so much to spare that no recorder
 * gets there. What asks for more is not read to its end, which is counted as damage: the report
 * says what was read until then and no gate passes. Steps are counted, not time, and memory is what
 * malloc says: the same trace gives the same answer on any machine.
 *
 * One trace is read at a time: the limits are the process's.
 */
#ifndef GPUMEM_REPORT_BASE_LIMIT_H
#define GPUMEM_REPORT_BASE_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A trace of `size` bytes is read from here on. Memory that is in use already does not count. */
void gm_limits_begin(uint64_t size);

/* Whether no more of this trace is to be read. */
bool gm_limits_reached(void);

/* Counts steps beyond the few that each record costs. False: no more of them. */
static inline bool gm_limits_spend(uint64_t steps)
{
    extern uint64_t gm_limits_steps_left;
    bool gm_limits_exceed(void);
    if (steps > gm_limits_steps_left)
        return gm_limits_exceed();
    gm_limits_steps_left -= steps;
    return true;
}

/* Memory about to be allocated. Called by memory.c. */
void gm_limits_note_memory(size_t bytes);

/* What it costs besides to end a life that a record does not name, and to undo that. */
#define GM_STEPS_IMPLICIT 8u
#define GM_STEPS_UNDO 16u

/* A memory node of a graph that is launched. */
#define GM_STEPS_NODE 8u

/* One record, each time it is read: they may be many for few bytes. */
#define GM_STEPS_RECORD 48u

/* Counts frames of stacks that are to be shown. False: no more of them. */
bool gm_limits_take_frame(void);

/* Bytes of columns that may be unpacked at a time. */
bool gm_limits_take_columns(uint64_t bytes);
void gm_limits_return_columns(uint64_t bytes);

/* From here on there are none: the user trusts the traces. */
void gm_limits_lift(void);

#endif
