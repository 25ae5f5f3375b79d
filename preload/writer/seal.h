/*
 * The seal: checksums over what a trace holds that is not written once (header, rings, tables),
 * taken when the process ends. With it a reader finds every changed bit of a trace that ended.
 *
 * Guarantees: a seal that stands in the header is true, whatever other threads still do and whenever
 * they are killed (tests/ring_model/seal_model.c checks it step by step); where that cannot be had
 * (a thread stands still between reserving and committing a record, or in the middle of a change),
 * there is none.
 * Nothing on the fast path: what is recorded behind the end takes a way of its own, which breaks
 * the seal first and renews it. Lock-free for the threads that record before the end.
 * Relies on who changes what the seal covers saying so before and behind (gm_change_begin).
 */
#ifndef GPUMEM_PRELOAD_WRITER_SEAL_H
#define GPUMEM_PRELOAD_WRITER_SEAL_H

#include "process/process.h"
#include "ring/lane.h"

/* Seals the trace, or sees that it stays without. Async-signal-safe. */
void gm_seal(void);

/* The process goes on: an exec has failed. */
void gm_seal_take_back(void);

/* Around one record that is committed behind the end. */
void gm_seal_open(struct gm_thread *thread);
void gm_seal_close(struct gm_thread *thread);

void gm_unseal(void);

extern _Atomic uint32_t gm_changes; /* that are under way */

/*
 * Around each change of what the seal covers: from the first byte that differs to where all that
 * belongs together has changed. Changes may stand inside each other. First it is told that there is
 * a change, and then looked whether there is a seal: the other way round than in gm_seal.
 */
static inline void gm_change_begin(void)
{
    atomic_fetch_add(&gm_changes, 1);
    if (gm_unlikely(__atomic_load_n(&gm_process_ending, __ATOMIC_SEQ_CST) & GM_ENDING_SEALED))
        gm_unseal();
}

static inline void gm_change_end(void)
{
    atomic_fetch_sub_explicit(&gm_changes, 1, memory_order_release);
}

void gm_seal_forget(void);

#endif
