/*
 * GPUMEM_MODE=flight: the trace has a fixed size, the oldest history is overwritten, and what is
 * alive stays known.
 *
 * All records of all lanes are folded (fold.h) in the order of time before they leave their rings:
 * each packing first folds what every lane has committed up to now. What is folded can at any time
 * be written down as a checkpoint, after which all blocks before it may go. So no block is ever
 * read again here, and at every instant the file has a complete checkpoint with all blocks behind
 * it, or all there ever was.
 *
 * The order of time is exact because time is folded only as far as every record is committed: a
 * thread says that it is about to take a time before it does (`committing`, recorder.c). A thread
 * whose ring is full waits for such a thread, which waits for nothing but locks of ours; should it
 * not run all the same, then not for longer than a tenth of a second. What is then folded behind
 * its turn is counted (GM_COUNT_FLIGHT_LATE).
 */
#ifndef GPUMEM_PRELOAD_FLIGHT_FLIGHT_H
#define GPUMEM_PRELOAD_FLIGHT_FLIGHT_H

#include "ring/sink.h"

extern const struct gm_sink gm_flight_sink;

/* Folds what is committed. Returns the time up to which that is all. Needs the pack lock
 * of all lanes. */
uint64_t gm_flight_fold(void);

/* In a child: forgets what is folded, and the area. */
void gm_flight_forget(void);

#endif
