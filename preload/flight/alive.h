/*
 * How much of what is folded is alive, and the most there was at one time. Where a framework's pool
 * makes blocks of memory that it took, the blocks are in use, and not that memory.
 */
#ifndef GPUMEM_PRELOAD_FLIGHT_ALIVE_H
#define GPUMEM_PRELOAD_FLIGHT_ALIVE_H

#include "flight/carry.h"

#define GM_ALIVE_DEVICES 129u /* [device + 1]; 0: unknown */

struct gm_alive {
    uint64_t live[GM_KINDS]; /* bytes */
    uint64_t pooled;         /* bytes of these that a pool's blocks are made of */
    uint64_t blocks;         /* bytes */
    uint64_t peak;           /* bytes in use, the most when something ended */
};

extern struct gm_alive gm_alive_on[GM_ALIVE_DEVICES];

/* Bytes on the device that the process took, in all kinds. */
uint64_t gm_alive_bytes(const struct gm_alive *sums);

/* Bytes of the device that are in use now, and were at most since gm_alive_restart. */
uint64_t gm_alive_in_use(const struct gm_alive *sums);
uint64_t gm_alive_peak(struct gm_alive *sums);

/* An entry comes to life, or its life ends, as far as it is memory. */
void gm_alive_enter(const struct gm_carried *entry);
void gm_alive_leave(const struct gm_carried *entry);

/* A pool makes blocks of it. */
void gm_alive_pool(struct gm_carried *entry);

/* The peak of each device is what is in use now. */
void gm_alive_restart(void);

/* What is alive of those that began after `since` (record clock), and is not ignored. */
struct gm_left {
    uint64_t bytes;
    uint64_t count;
};
struct gm_left gm_alive_left(uint64_t since);

/* Whether the sums are those of what is carried. Of checked builds (base/assert.h). */
bool gm_alive_is_valid(void);

void gm_alive_forget(void);

#endif
