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

#include <gpumem/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gm_thread;

/* Makes room in the new trace, which has its preamble. Caller holds gm_file.lock. */
bool gm_flight_begin(void);

/* The following need gm_pack_lock. */

/* Folds what is committed. Returns up to which of its records `thread` may be packed. That may be
 * nothing, also of a full ring: the caller tries again, shortly after. */
uint64_t gm_flight_fold(const struct gm_thread *thread);

/* Records of one block, at most: the area must have room for several. */
uint32_t gm_flight_block_records(void);

/* Writes a block down: its head, and then the stored bytes. False if there is no room. */
bool gm_flight_write(const struct gm_block *block, const void *bytes);

void gm_flight_forget(void);

#endif
