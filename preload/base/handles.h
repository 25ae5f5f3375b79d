/*
 * Tables of handles: what the hooks learn of pools, streams, captures and contexts.
 *
 * Guarantees: a lookup takes no lock; a change, but for those that say so, takes one that is never
 * held while anything of the host runs; errno is kept; no malloc. A table begins small. When a handle finds no room in it, a
 * larger part is mapped behind it. Only where that cannot be had is the change forgotten: it is
 * counted, and the handle is "unknown", which is a legal answer everywhere.
 */
#ifndef GPUMEM_PRELOAD_BASE_HANDLES_H
#define GPUMEM_PRELOAD_BASE_HANDLES_H

#include <stdbool.h>
#include <stdint.h>

struct gm_handle {
    _Atomic uint64_t key; /* 0: never used */
    _Atomic uint64_t value;
};

struct gm_handles {
    struct gm_handle *slots;
    uint32_t size;                            /* a power of two */
    _Atomic(const struct gm_handles *) *more; /* the next part */
};

#define GM_HANDLES(name, size_)                                                                    \
    static struct gm_handle name##_slots[size_];                                                   \
    static _Atomic(const struct gm_handles *) name##_more;                                         \
    static const struct gm_handles name = {name##_slots, size_, &name##_more}

#define GM_HANDLES_MAX (1u << 20) /* slots of a part */

/* What is noted for `key`, 0 if nothing is. */
uint64_t gm_handles_get(const struct gm_handles *handles, uint64_t key);

/* Notes `value` (not 0) for `key`. False when there is no room. */
bool gm_handles_set(const struct gm_handles *handles, uint64_t key, uint64_t value);

/* The same if nothing is noted yet; returns what is noted then, 0 when there is no room. */
uint64_t gm_handles_add(const struct gm_handles *handles, uint64_t key, uint64_t value);

/* Forgets `key`, and returns what was noted for it. */
uint64_t gm_handles_take(const struct gm_handles *handles, uint64_t key);

/* Forgets `key` if `value` is still what is noted for it. */
void gm_handles_take_if(const struct gm_handles *handles, uint64_t key, uint64_t value);

/*
 * The same as gm_handles_set and gm_handles_take, without a lock and its system calls, for objects that programs make
 * and end all the time. Who calls is the only one who can know the handle just then: it was just made, or is being
 * ended. If it is ended twice at a time, one of the two gets the value. A table is changed by these two alone, or by
 * the others alone.
 */
bool gm_handles_begin(const struct gm_handles *handles, uint64_t key, uint64_t value);
uint64_t gm_handles_end(const struct gm_handles *handles, uint64_t key);

/* Forgets every handle that has this value. */
void gm_handles_drop(const struct gm_handles *handles, uint64_t value);

/* Forgets all of it. */
void gm_handles_clear(const struct gm_handles *handles);

/* After a fork: who held the lock may not be in this process. */
void gm_handles_after_fork(void);

#endif
