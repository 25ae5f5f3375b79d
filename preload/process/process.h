/*
 * The life of a recorded process: nothing until the first CUDA call, one trace, a mark at the end;
 * a forked child starts over. A process that loaded the driver behind our back leaves a trace
 * without records at its normal end: GM_HEADER_BYPASSED.
 */
#ifndef GPUMEM_PRELOAD_PROCESS_PROCESS_H
#define GPUMEM_PRELOAD_PROCESS_PROCESS_H

#include "base/platform.h"
#include "ring/lane.h"

/*
 * Zero in a process without a trace and in a fresh forked child: the page it stands on is wiped by
 * the kernel when a child is made, so no fork handler is needed and none can be missed.
 */
struct gm_process_page {
    uint64_t epoch; /* not 0: the trace exists; which of this process and its ancestors' it is */
    struct gm_trace_header *header; /* mapped; NULL in a child, which has no counters */
    _Atomic uint32_t state;
};

extern struct gm_process_page *gm_process_page;

/* How far the process is at its end; 0 until then. */
enum {
    GM_ENDING_EXITING = 1, /* our destructor ran: records from here on are LATE */
    GM_ENDING_SEALED = 2,  /* the end is marked; see seal.h */
};
extern uint8_t gm_process_ending;

/* Another thread may be making the trace. A thread that belongs to it has been through that itself.
 */
static inline uint64_t gm_process_epoch(void)
{
    return __atomic_load_n(&gm_process_page->epoch, __ATOMIC_RELAXED);
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

/*
 * Slow path of the first call of a process or a thread: makes the trace, claims a lane. False when
 * this process or thread is not recorded.
 */
bool gm_process_join(struct gm_tls *tls);

/*
 * In a child made by fork or _Fork, on its thread: if a signal handler forked that had interrupted
 * the recorder, the child will return into the middle of it. It gets memory to go on with, and no
 * file.
 */
void gm_process_forked(void);

/* Another copy of this library records this process: this one leaves no trace of it. */
void gm_process_refuse(void);

/* Looks at the driver in this process and notes in the trace if it is the simulator. Called when a
 * context is new, by when the driver is certainly loaded. */
void gm_process_note_driver(void);

/* Tells the trace of functions that go unseen (newer_abi.h), if this process has one. */
void gm_process_tell_newer_abi(void);

/* Marks the end in the trace, if this process has one; async-signal-safe. */
bool gm_process_mark_end(enum gm_end end);

#endif
