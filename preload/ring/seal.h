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
 * Relies on every writer of sealed data to bracket the change (base/change.h).
 */
#ifndef GPUMEM_PRELOAD_RING_SEAL_H
#define GPUMEM_PRELOAD_RING_SEAL_H

#include "ring/lane.h"

/* Seals the trace, or leaves it unsealed if a writer is active. Async-signal-safe. */
void gm_seal(void);

/* The process goes on: an exec has failed. */
void gm_seal_take_back(void);

/* Writes how the process ended (header.status) into a trace whose end is marked, sealed or not. */
void gm_seal_tell(uint32_t status);

/* Around one record that is committed behind the end. */
void gm_seal_open(struct gm_thread *thread);
void gm_seal_close(struct gm_thread *thread);

/* In a child: who held the lock is not there, and this process goes on. */
void gm_seal_forget(void);

#endif
