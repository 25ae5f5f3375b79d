/*
 * What the recorder keeps for one thread: its lane (a ring in the trace), its unwinder, its open
 * calls.
 *
 * Guarantees, after a kill at any instant (tests/ring_model checks them step by step):
 *   - A reader finds a record whose `head` was stored once, whole, and in the order its thread
 *     committed it: the record is filled before `head` passes it, and `tail` passes it only when it
 *     stands in a block that `file_end` covers. In between it stands in both, and its sequence number
 *     tells. It can be missing only where a counter of the header says so (dropped, or the disk would
 *     not take it).
 *   - At most the records of calls still under way are not there: one per thread, with its detail.
 *   - The fast path takes no lock and writes no line that another recording thread writes.
 *   - A full ring waits only for packing, never for the program: the thread that waits packs itself.
 *     (A flight recorder's also waits for threads that are between the time of a record and its
 *     commit.)
 *
 * Who writes what: `head` and the records the owner of the lane; `tail` the holder of the lane's
 * gm_pack_lock; `file_end` the holder of gm_file.lock, which is taken inside that, never around it.
 * The stores of all three release, the loads by others acquire; that is all the ordering there is.
 *
 * A gm_thread belongs to a lane for the life of the process and passes from a thread that has ended
 * to a new one. Nothing runs at thread exit (no TLS destructor, no malloc). A joining thread probes a
 * few lanes and reuses one whose owner has died, so there are at most 1/8 more lanes than live threads.
 *
 * A lane begins with a page. One that is found half full is replaced by one sixteen times as large,
 * up to GPUMEM_RING, while all of these take no more than GM_RINGS_BYTES: the new ring, with all
 * that waits in the old one, is complete before it becomes part of the trace, the old one is not
 * written to any more, and a reader takes the last one. In between both say the same.
 *
 * A call that never returns (longjmp, an exception out of a callback, a coroutine that is given up) is
 * closed when its thread next calls from an outer frame: see gm_call_nested.
 */
#ifndef GPUMEM_PRELOAD_RING_LANE_H
#define GPUMEM_PRELOAD_RING_LANE_H

#include "base/process_state.h"

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
    uint16_t fast_calls;          /* so many more calls are not timed: see gm_call_clock_slow */
    uintptr_t outermost;          /* frame of the hook that it is in */
    struct gm_call_around around; /* a call on another stack, which that one interrupted */
    uint64_t stack_low;           /* the thread's own stack; both 0: not asked yet */
    uint64_t stack_high;
    uint64_t half_full; /* time when it was last found half full; stored atomically */
    bool committing;    /* may have taken the time of a record that is not committed yet */
    bool ignoring;      /* what the lane says since the latest IGNORE record */
    bool has_parts;     /* seal.c: `parts` is the sum over the slots of the lane */
    uint64_t parts;
    uint64_t late_from;         /* record being committed behind the end of the process */
    uint32_t owner;             /* how many threads had claimed a lane before this one */
    uint32_t owner_tid;         /* the kernel's number of the thread */
    struct gm_stack *stack;     /* stack.c */
} __attribute__((aligned(64))); /* the stack state behind it wants whole cache lines */

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

/* Whether the ring agrees with itself; with its gm_pack_lock. Of checked builds (base/assert.h). */
bool gm_lane_is_valid(const struct gm_thread *thread);

/* Lanes in use, for the drainer: number is below the count. */
uint32_t gm_thread_count(void);
struct gm_thread *gm_thread_at(uint32_t number) __attribute__((returns_nonnull));

/* Whether a larger ring is worth taking locks for, as far as can be told without them. */
bool gm_lane_may_grow(const struct gm_thread *thread);

/*
 * Gives the thread a larger ring, with all that waits. By its owner alone, between two records,
 * with the lane's gm_pack_lock. False: it is as large as it may be, or the file cannot grow.
 */
bool gm_lane_grow(struct gm_thread *thread);

#endif
