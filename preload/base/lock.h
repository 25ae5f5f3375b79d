/* A lock of the recorder's own. */
#ifndef GPUMEM_PRELOAD_BASE_LOCK_H
#define GPUMEM_PRELOAD_BASE_LOCK_H

#include "base/lock_order.h"
#include "base/platform.h"
#include <linux/futex.h>

/*
 * A lock for slow paths (file growth, new table entries, packing). Its holder never calls into the
 * host, never allocates and never blocks on anything but the file. No signal handler interrupts it:
 * one that never returned, or that waited for another thread, would make all wait that come after.
 * So it cannot deadlock with the host's locks.
 */
struct gm_lock {
    _Atomic uint32_t state; /* 0 free, 1 held, 2 held with waiters */
    enum gm_lock_rank rank; /* never changes */
    uint64_t signals;       /* the holder's, to be restored */
};

#define GM_LOCK(rank_)                                                                             \
    {                                                                                              \
        .rank = (rank_)                                                                            \
    }

static inline bool gm_lock_catch(struct gm_lock *lock)
{
    uint32_t free = 0;
    return atomic_compare_exchange_strong_explicit(&lock->state, &free, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline bool gm_lock_try(struct gm_lock *lock)
{
    uint64_t signals = gm_signals_block();
    bool caught = gm_lock_catch(lock);
    if (caught) {
        lock->signals = signals;
        gm_lock_order_take(lock->rank);
    } else {
        gm_signals_restore(signals);
    }
    return caught;
}

static inline void gm_lock_take(struct gm_lock *lock)
{
    uint64_t signals = gm_signals_block();
    gm_lock_order_take(lock->rank);
    bool caught = gm_lock_catch(lock);
    for (int spin = 0; !caught && spin < 100; spin++) {
        gm_pause();
        caught = gm_lock_catch(lock);
    }
    while (!caught && atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0)
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    lock->signals = signals;
}

static inline void gm_lock_release(struct gm_lock *lock)
{
    uint64_t signals = lock->signals;
    gm_lock_order_release(lock->rank);
    if (atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2)
        syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    gm_signals_restore(signals);
}

/* In a child: whoever held it is not there. */
static inline void gm_lock_forget(struct gm_lock *lock)
{
    atomic_store_explicit(&lock->state, 0, memory_order_relaxed);
}

#endif
