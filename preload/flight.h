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
 * Why folding up to "now" is sound: what a call does to an address is committed before the call if
 * it frees and after it if it allocates. A record that is not committed yet when the clock is read
 * is therefore not what any committed record relies on. What two threads do to one handle at once
 * (one maps it, another releases it) has no such order: so time is folded only as far as no thread
 * inside a call can add to, unless a ring is full and would have to wait for that thread.
 */
#ifndef GPUMEM_PRELOAD_FLIGHT_H
#define GPUMEM_PRELOAD_FLIGHT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <gpumem/trace.h>

struct gm_thread;

/* Makes room in the new trace, which has its preamble. Caller holds gm_file.lock. */
bool gm_flight_begin(void);

/* The following need gm_pack_lock. */

/* Folds what is committed. Returns up to which of its records `thread` may be packed: further than
 * its tail, if its ring is full. */
uint64_t gm_flight_fold(const struct gm_thread *thread);

/* Records of one block, at most: the area must have room for several. */
uint32_t gm_flight_block_records(void);

/* Writes a block down: its head, and then the stored bytes. False if there is no room. */
bool gm_flight_write(const struct gm_block *block, const void *bytes);

void gm_flight_forget(void);

#endif
