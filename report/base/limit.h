/*
 * What one trace may cost. A trace is untrusted, and a small one can ask for much: a few bytes
 * stand for thousands of records, a record for thousands of steps.
 *
 * The rule: a trace of up to SMALL bytes may cost so much and no more, about a second and some
 * hundred megabytes; a larger one as much more as its bytes can ask for that a recorder wrote. What
 * asks for more is not read to its end, which is counted as damage: the report says what was read
 * until then and no gate passes. Steps are counted, not time, and memory is what malloc says: the
 * same trace gives the same answer on any machine.
 *
 * Memory is limited while the trace is read. What is shown of it is bounded by its frames; what
 * symbols of its modules take then belongs to the modules' files, and does not count.
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

/* It has been read: from here on memory does not count. */
void gm_limits_end_reading(void);

/* Whether no more of this trace is to be read. */
bool gm_limits_reached(void);

/* Counts steps of work, each about a nanosecond. False: no more of them. */
static inline bool gm_limits_spend(uint64_t steps)
{
    extern uint64_t gm_limits_steps_left;
    bool gm_limits_exceed(void);
    if (steps > gm_limits_steps_left)
        return gm_limits_exceed();
    gm_limits_steps_left -= steps;
    return true;
}

/* One record: each time it is read, when it is that of another lane than the one before, and all
 * that is noted of it once. And what its block unpacks to. */
#define GM_STEPS_RECORD 40u
#define GM_STEPS_LANE 192u
#define GM_STEPS_NOTES 40u
#define GM_BYTES_UNPACKED_A_STEP 4u

/* To begin or end a life that a record does not name: with its context, in a graph. */
#define GM_STEPS_LIFE 128u

/* A graph that is launched, if that leaves nothing behind; each place in it, and each address that
 * has to be looked at. */
#define GM_STEPS_TURN 128u
#define GM_STEPS_TURN_SITE 24u
#define GM_STEPS_ADDRESS 24u

/* To undo one step of a free. */
#define GM_STEPS_UNDO 320u

/* A frame that is looked at, for the owner of a stack. */
#define GM_STEPS_NODE 24u

/* What is sorted, and looked at in that order. */
#define GM_STEPS_SORTED 128u

/* A refusal of a pool: of the last ones the state is kept. */
#define GM_STEPS_FAILURE 1024u

/* A memory that a phase begins or ends with. */
#define GM_STEPS_PHASE 32u

/* Memory about to be allocated. Called by memory.c. */
void gm_limits_note_memory(size_t bytes);

/* Whether so much may be allocated at once, which is much; if not, no more is to be read. */
bool gm_limits_allow_memory(size_t bytes);

/* Counts frames of stacks, and other lines of which there can be as many, that are to be shown.
 * False: no more of them. */
bool gm_limits_take_frame(void);

/* Bytes of columns that may be unpacked at a time. */
bool gm_limits_take_columns(uint64_t bytes);
void gm_limits_return_columns(uint64_t bytes);

/* From here on there are none: the user trusts the traces. */
void gm_limits_lift(void);

#endif
