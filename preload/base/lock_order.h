/*
 * The order in which the recorder takes its locks: a thread that holds one takes only locks of higher
 * ranks. So no two threads wait for each other.
 *
 * Each lock has its rank from where it is defined. The rank costs nothing but in builds that define
 * GPUMEM_CHECK_LOCKS (the recorder's tests, the debug build): there each taking is checked, and a
 * process that breaks the order is aborted.
 */
#ifndef GPUMEM_PRELOAD_BASE_LOCK_ORDER_H
#define GPUMEM_PRELOAD_BASE_LOCK_ORDER_H

#include <stdint.h>

enum gm_lock_rank {
    GM_RANK_UNSET, /* no lock has it */
    GM_RANK_LIVE,  /* who asks what is alive: one thread at a time */
    GM_RANK_MODULES,
    GM_RANK_PACKER = GM_RANK_MODULES, /* neither is taken inside the other */
    GM_RANK_PACKER_SECOND,            /* all packers' one after the other: who asks what is alive */
    GM_RANK_PACKER_THIRD,
    GM_RANK_PACKER_FOURTH,
    GM_RANK_TABLE, /* nodes, frames */
    GM_RANK_STRINGS,
    GM_RANK_FILE,  /* whoever grows the trace */
    GM_RANK_ALONE, /* handles, names of NVTX: nothing but the seal is taken inside */
    GM_RANK_SEAL,  /* inside all others, for any of them may count something */
    GM_RANK_WHY,   /* likewise; in the debug build alone */
};

#ifdef GPUMEM_CHECK_LOCKS
/* The calling thread is about to wait for a lock of this rank, or has caught it without waiting. */
void gm_lock_order_take(enum gm_lock_rank rank);
void gm_lock_order_release(enum gm_lock_rank rank);
#else
static inline void gm_lock_order_take(enum gm_lock_rank rank)
{
    (void)rank;
}

static inline void gm_lock_order_release(enum gm_lock_rank rank)
{
    (void)rank;
}
#endif

#endif
