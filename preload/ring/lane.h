/*
 * What the recorder keeps for one thread: its lane (a ring in the trace), its unwinder, its open
 * calls.
 *
 * Guarantees, after a kill at any instant (tests/ring_model checks them step by step):
 *   - A record whose `head` was stored is found by a reader once, whole, and in the order its
 * thread committed it: the record is filled before `head` passes it, and `tail` passes it only when
 * it stands in a block that `file_end` covers. In between it stands in both, and its sequence
 *     number tells. It can be missing only where a counter of the header says so (dropped, or the
 *     disk would not take it).
 *   - At most the records of calls still under way are not there: one per thread, with its detail.
 *   - The fast path takes no lock and writes no line that another recording thread writes.
 *   - A full ring waits only for packing, never for the program: who waits packs itself. (A flight
 *     recorder's waits for other threads that are between the time of a record and its commit,
 * too.)
 *
 * Who writes what: `head` and the records the owner of the lane; `tail` the holder of the lane's
 * gm_pack_lock; `file_end` the holder of gm_file.lock, which is taken inside that, never around it.
 * The stores of all three release, the loads by others acquire; that is all the ordering there is.
 *
 * A gm_thread belongs to a lane for the life of the process and passes from a thread that has ended
 * to a new one; nothing runs at thread exit (no TLS destructor, no malloc), a successor notices:
 * who joins looks at a few lanes and asks the kernel whether their owners live. So of lanes there
 * are at most an eighth more than threads that live at one time.
 *
 * A lane begins with a page. One that is found half full is replaced by one sixteen times as large,
 * up to GPUMEM_RING, while all of these take no more than GM_RINGS_BYTES: the new ring, with all
 * that waits in the old one, is complete before it becomes part of the trace, the old one is not
 * written to any more, and a reader takes the last one. In between both say the same.
 *
 * A call that is never returned from (longjmp, an exception out of a callback, a coroutine that is
 * given up) is found over when its thread makes the next one from above it: see gm_call_nested.
 */
#ifndef GPUMEM_PRELOAD_RING_LANE_H
#define GPUMEM_PRELOAD_RING_LANE_H

#include "base/platform.h"

struct gm_stack;

/* The outermost call of a stack that the thread has left for another, to come back to. */
struct gm_call_around {
    uintptr_t outermost; /* 0: there is none */
    uint32_t depth;
    uint16_t api;
};

struct gm_thread {
    struct gm_lane *lane; /* mapped from the trace; a larger one may take its place */
    struct gm_record *records;
    uint64_t mask;
    uint64_t head;  /* next sequence number; lane->head is what is committed */
    uint64_t limit; /* head may run up to here before gm_thread_look */
    uint32_t number;
    uint32_t depth;               /* open calls; others look at it, so it is stored atomically */
    uint32_t events;              /* records of lives, for gm_call_seen_below */
    uint16_t api;                 /* of the outermost open call */
    uintptr_t outermost;          /* frame of the hook that it is in */
    struct gm_call_around around; /* a call on another stack, which that one interrupted */
    uint64_t stack_low;           /* the thread's own stack; both 0: not asked yet */
    uint64_t stack_high;
    uint64_t half_full; /* time when it was last found half full; stored atomically */
    bool committing;    /* may have taken the time of a record that is not committed yet */
    bool has_parts;     /* seal.c: `parts` is the sum over the slots of the lane */
    uint64_t parts;
    uint64_t late_from;         /* record being committed behind the end of the process */
    _Atomic uint64_t owner;     /* claims so far << 32 | tid: a claim is told from an older one */
    struct gm_stack *stack;     /* stack.c */
} __attribute__((aligned(64))); /* the stack state behind it wants whole cache lines */

/* Per OS thread. Small: it is taken from every thread's stack. */
struct gm_tls {
    struct gm_thread *thread;
    uint64_t epoch;  /* of the process when `thread` was set: a fork makes it stale */
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

#define GM_FIRST_RING_RECORDS 64u            /* with the lane's head, one page */
#define GM_RINGS_BYTES (UINT64_C(128) << 20) /* of all larger ones */

/* Claims a lane for the calling thread, NULL when there is none. */
struct gm_thread *gm_thread_claim(void);

/* The thread's lane, and whether more than half of it waits, for who is not the owner. */
static inline struct gm_lane *gm_thread_lane(const struct gm_thread *thread)
{
    return __atomic_load_n(&thread->lane, __ATOMIC_ACQUIRE);
}

static inline bool gm_lane_is_half_full(const struct gm_lane *lane)
{
    uint64_t tail = __atomic_load_n(&lane->tail, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&lane->head, __ATOMIC_ACQUIRE) - tail > (lane->capacity - 1) / 2;
}

/* Forgets all lanes after a fork. */
void gm_threads_forget(void);

/* Lanes in use, for the drainer. */
uint32_t gm_thread_count(void);
struct gm_thread *gm_thread_at(uint32_t number);

/*
 * Looks how far the ring is packed, when head has reached limit, and sets the next limit. When the
 * ring is half full, goes on in a larger one; where that cannot be had or it is as large as it may
 * be, wakes the drainer, or packs it here if there is no CPU for the drainer. In a full one makes
 * room: packs it here, or waits for the drainer that is at it. Returns false when a record must be
 * dropped instead (GPUMEM_ON_FULL=drop), and counts it.
 */
bool gm_thread_look(struct gm_thread *thread);

/* Tells the drainer that there is work; starts it the first time. False when there is no drainer,
 * because no thread could be had. */
bool gm_drain_wake(void);
void gm_drain_forget(void);

/*
 * Packs records from the lane's tail on into a block of the trace: all that are committed, or as
 * many as a block takes. Caller holds the lane's gm_pack_lock, which other lanes may share.
 * Records that cannot be written (disk full) are counted and given up: the host never waits for a
 * disk.
 */
struct gm_lock *gm_pack_lock(const struct gm_thread *thread);
void gm_pack(struct gm_thread *thread);
void gm_pack_forget(void);

#endif
