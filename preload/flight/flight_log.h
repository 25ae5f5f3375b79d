/*
 * The area of a flight trace: extents one behind the other, round and round.
 *
 * Guarantees: header `start` and `end` name complete extents at every instant, and the extent at
 * `start` is a checkpoint or the very first; nothing between them is written to. The area is
 * allocated on the disk and mapped once: appending cannot fail but for lack of room, which is when
 * nothing is left to overwrite but the latest checkpoint and what follows it. Needs gm_pack_lock.
 */
#ifndef GPUMEM_PRELOAD_FLIGHT_FLIGHT_LOG_H
#define GPUMEM_PRELOAD_FLIGHT_FLIGHT_LOG_H

#include <gpumem/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Makes the area. Caller holds gm_file.lock. */
bool gm_log_create(uint64_t capacity);
uint64_t gm_log_capacity(void);

/* Where the next extent goes. Positions are those of struct gm_flight. */
uint64_t gm_log_end(void);

/*
 * Room for an extent with `size` bytes behind its header, which is filled in; returns where they
 * go, NULL if there is no room and then `spare` bytes more. What it takes is overwritten: `start`
 * moves on to the next checkpoint. The extent is not part of the trace before gm_log_publish.
 */
void *gm_log_reserve(enum gm_extent_type type, size_t size, uint64_t spare);
void gm_log_publish(void);

/* The extent that holds `payload` does not change any more: makes its checksum. */
void gm_log_complete(void *payload);

/* Seals what stands outside the extents of the area, if it has changed since the last time. */
void gm_log_seal(void);

/* Gives up what was reserved from `position` on and not published. */
void gm_log_rewind(uint64_t position);

/* The extents from `position` on are a complete checkpoint: the history may begin there. */
void gm_log_add_start(uint64_t position);

/* Forgets everything: a forked child. */
void gm_log_forget(void);

#endif
