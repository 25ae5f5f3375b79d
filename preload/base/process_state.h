/*
 * Whether this process is recorded, how far it is at its end, and whether the calling thread may
 * record. Every hook asks this first. process/process.c, which starts and ends the recording, is the
 * one that changes it.
 */
#ifndef GPUMEM_PRELOAD_BASE_PROCESS_STATE_H
#define GPUMEM_PRELOAD_BASE_PROCESS_STATE_H

#include "base/platform.h"

struct gm_thread;

/*
 * Zero in a process without a trace and in a fresh forked child: the page it stands on is wiped by
 * the kernel when a child is made, so no fork handler is needed and none can be missed.
 */
struct gm_process_page {
    uint64_t epoch; /* not 0: the trace exists; which of this process and its ancestors' it is */
    struct gm_trace_header *header; /* mapped; NULL in a child, which has no counters */
    _Atomic uint32_t state;         /* enum gm_process_state; a futex */
};

/* BYPASSED: the trace is there, for what it says of the process at its end, and nobody records. */
enum gm_process_state {
    GM_PROCESS_IDLE,
    GM_PROCESS_STARTING,
    GM_PROCESS_READY,
    GM_PROCESS_REFUSED,
    GM_PROCESS_BYPASSED,
};

/* Until gm_process_make_page, a page that children are not spared. */
extern struct gm_process_page *gm_process_page;

/* Makes the page that the kernel wipes, the first time. False: it cannot be had, and the process is
 * not recorded. */
bool gm_process_make_page(void);
bool gm_process_has_page(void);

/* In a child, first of all, where no fork handlers run: does what the kernel cannot do here. */
void gm_process_wipe_page(void);

/* Another copy of this library records this process: this one leaves no trace of it. */
void gm_process_refuse(void);

/* How far the process is at its end; 0 until then. */
enum {
    GM_ENDING_EXITING = 1, /* our destructor ran: records from here on are LATE */
    GM_ENDING_SEALED = 2,  /* the end is marked; see ring/seal.h */
};
extern uint8_t gm_process_ending;

/* Another thread may be making the trace. A thread that belongs to it has been through that itself.
 */
static inline uint64_t gm_process_epoch(void)
{
    return __atomic_load_n(&gm_process_page->epoch, __ATOMIC_RELAXED);
}

/* Per OS thread. Small: it is taken from every thread's stack. */
struct gm_tls {
    struct gm_thread *thread; /* its lane: ring/lane.h */
    uint64_t epoch;           /* of the process when `thread` was set: a fork makes it stale */
    uint64_t gate;   /* ~epoch: may record; GM_GATE_BUSY: in the recorder; 0: has no lane (yet) */
    uint32_t missed; /* calls of signal handlers before there was a trace to count them in */
};

#define GM_GATE_BUSY UINT64_C(1) /* no epoch comes near its complement */

/* initial-exec: no __tls_get_addr, which may allocate; we are loaded at start-up, where space is
 * reserved. */
extern _Thread_local struct gm_tls gm_tls __attribute__((tls_model("initial-exec")));

/* Around all that the recorder does for itself: signal handlers of this thread must not record. */
static inline void gm_gate_close(struct gm_tls *tls)
{
    tls->gate = GM_GATE_BUSY;
    atomic_signal_fence(memory_order_seq_cst);
}

static inline void gm_gate_open(struct gm_tls *tls)
{
    atomic_signal_fence(memory_order_seq_cst);
    tls->gate = tls->thread ? ~tls->epoch : 0;
}

/* Whether `tls` belongs to this process's trace. */
static inline bool gm_process_ready(const struct gm_tls *tls)
{
    return tls->epoch != 0 && tls->epoch == gm_process_epoch();
}

/*
 * Whether the thread may record: it belongs to this process's trace, has a lane, and is not in the
 * recorder already. One compare tells: an epoch is never ~0, so the gate of a thread that may not
 * is never the complement of one.
 */
static inline bool gm_process_admits(const struct gm_tls *tls)
{
    return gm_likely(tls->gate == ~gm_process_epoch());
}

#endif
