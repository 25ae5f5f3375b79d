/* See recorder.h. The fast path of every event is in this file; all that is slow is behind it. */
#include "record/recorder.h"
#include "base/count.h"
#include "base/ticks.h"
#include "record/current.h"
#include "ring/ring_full.h"
#include "ring/seal.h"
#include "stack/native/stack_bounds.h"
#include "stack/native/unwind.h"
#include "stack/stack.h"
#include "writer/tables.h"
#include "writer/why.h"
#include <string.h>
#include <sys/prctl.h>

#define THREAD_NAME_MAX 15u /* bytes: TASK_COMM_LEN of the kernel, without the end */

/* Event types that carry a stack. Frees do not: who held the memory is what a report answers. */
static const uint64_t types_with_stack =
    1ull << GM_EVENT_ALLOC | 1ull << GM_EVENT_ALLOC_FAILED | 1ull << GM_EVENT_COPY |
    1ull << GM_EVENT_SET | 1ull << GM_EVENT_CONTEXT | 1ull << GM_EVENT_CONTEXT_END |
    1ull << GM_EVENT_VMM_CREATE | 1ull << GM_EVENT_VMM_IMPORT | 1ull << GM_EVENT_VMM_RESERVE |
    1ull << GM_EVENT_VMM_MAP | 1ull << GM_EVENT_MULTICAST_CREATE | 1ull << GM_EVENT_POOL_CREATE |
    1ull << GM_EVENT_GRAPH_ALLOC_NODE | 1ull << GM_EVENT_GRAPH_LAUNCH |
    1ull << GM_EVENT_MODULE_LOAD | 1ull << GM_EVENT_GLOBAL | 1ull << GM_EVENT_BLOCK_ALLOC |
    1ull << GM_EVENT_BLOCK_OOM | 1ull << GM_EVENT_CONTEXT_RETAIN;

/* What gm_call_seen_below looks for: records a runtime hook would otherwise make itself. */
static const uint64_t types_of_life =
    1ull << GM_EVENT_ALLOC | 1ull << GM_EVENT_FREE | 1ull << GM_EVENT_ALLOC_FAILED |
    1ull << GM_EVENT_COPY | 1ull << GM_EVENT_SET | 1ull << GM_EVENT_GRAPH_ALLOC_NODE |
    1ull << GM_EVENT_GRAPH_FREE_NODE | 1ull << GM_EVENT_GRAPH_LAUNCH | 1ull << GM_EVENT_HINT |
    1ull << GM_EVENT_CONTEXT_END;

/* ---- calls that are not returned from -----------------------------------------------------------
 *
 * A handler or a callback may jump out of a call (longjmp, an exception), a coroutine may be given
 * up inside one. Its hook's end never runs. What tells is the next call: a hook that is open has
 * its frame above all that run inside of it.
 */

#define NEAR_ON_UNKNOWN_STACK (UINT64_C(1) << 20)

static bool is_on_own_stack(struct gm_thread *thread, uintptr_t frame)
{
    if (thread->stack_high == 0 && !gm_stack_of_thread(&thread->stack_low, &thread->stack_high))
        thread->stack_high = 1; /* cannot be told: no frame is on it */
    return frame - thread->stack_low < thread->stack_high - thread->stack_low;
}

static bool share_stack(struct gm_thread *thread, uintptr_t one, uintptr_t other)
{
    bool one_is_own = is_on_own_stack(thread, one), other_is_own = is_on_own_stack(thread, other);
    uintptr_t apart = one > other ? one - other : other - one;
    return one_is_own == other_is_own && (one_is_own || apart < NEAR_ON_UNKNOWN_STACK);
}

void gm_call_return(struct gm_thread *thread)
{
    struct gm_call_around around = thread->around;
    thread->around = (struct gm_call_around){0};
    thread->api = around.api;
    thread->outermost = around.outermost;
    __atomic_store_n(&thread->depth, around.depth, __ATOMIC_RELEASE);
}

uint32_t gm_call_nested(struct gm_thread *thread, uintptr_t frame, uint16_t api)
{
    int saved_errno = errno;
    if (thread->around.outermost) { /* is it over, with the thread back where it came from? */
        bool same = share_stack(thread, thread->outermost, frame);
        if (same ? frame >= thread->outermost
                 : share_stack(thread, thread->around.outermost, frame))
            gm_call_return(thread);
    }
    uint32_t depth = thread->depth;
    if (share_stack(thread, thread->outermost, frame)) {
        depth = frame < thread->outermost ? depth : 0;
    } else { /* of several stacks that were left, the one before is remembered */
        thread->around = (struct gm_call_around){thread->outermost, depth, thread->api};
        thread->outermost = frame;
        thread->api = api;
        depth |= GM_CALL_APART;
    }
    errno = saved_errno;
    return depth;
}

/* The recorder itself was left, by a handler that interrupted it: it may be entered again. */
static bool is_recorder_left(struct gm_thread *thread, uintptr_t frame)
{
    int saved_errno = errno;
    bool left = thread && thread->depth && !thread->around.outermost &&
                frame >= thread->outermost && share_stack(thread, thread->outermost, frame);
    errno = saved_errno;
    return left;
}

_Thread_local uint32_t gm_ignore_depth __attribute__((tls_model("initial-exec")));

void gm_ignore_tell(struct gm_thread *thread)
{
    bool ignoring = gm_ignore_depth != 0;
    if (thread->ignoring == ignoring)
        return;
    thread->ignoring = ignoring;
    gm_call_commit(thread, NULL, gm_what(GM_EVENT_IGNORE, GM_KIND_NONE, -1, 0, 0), 0, 0, ignoring);
}

/*
 * Whose lane it is from here on: once per thread, when it joins. The kernel knows its name without a
 * file or memory. A name that found no room is none; so is one that is given later.
 */
static void tell_of_owner(struct gm_thread *thread)
{
    char name[THREAD_NAME_MAX + 1] = "";
    int saved_errno = errno;
    uint32_t string = 0;
    if (syscall(SYS_prctl, PR_GET_NAME, name, 0, 0, 0) == 0 && name[0]) {
        gm_gate_close(&gm_tls); /* a handler that records would wait for the lock of the strings */
        string = gm_string_intern_mark(name, strnlen(name, THREAD_NAME_MAX));
        gm_gate_open(&gm_tls);
    }
    gm_call_commit(thread, NULL, gm_what(GM_EVENT_THREAD, GM_KIND_NONE, 0, 0, 0), thread->owner,
                   thread->owner_tid, string);
    errno = saved_errno;
}

struct gm_thread *gm_call_admit(void *frame)
{
    struct gm_tls *tls = &gm_tls;
    bool ready = gm_process_ready(tls);
    if (tls->gate == GM_GATE_BUSY) {
        if (ready && is_recorder_left(tls->thread, (uintptr_t)frame)) {
            __atomic_store_n(&tls->thread->committing, false, __ATOMIC_RELEASE);
            gm_stack_reset(tls->thread->stack);
            gm_gate_open(tls);
            return tls->thread;
        }
        gm_why(GM_WHY_CALL_IN_RECORDER, gm_registers_of_caller(frame).pc, NULL);
        if (ready)
            gm_count(GM_COUNT_REENTRANT, 1);
        else
            tls->missed++; /* this thread is about to join, and counts it then */
        return NULL;
    }
    /* A thread for which there was no lane when it joined tries again. */
    if (gm_process_join(tls)) {
        tls->thread->api = 0;
        tell_of_owner(tls->thread);
        gm_ignore_tell(tls->thread); /* a lane's former owner may have left it ignoring */
        return tls->thread;
    }
    gm_why(GM_WHY_CALL_NOT_JOINED, gm_registers_of_caller(frame).pc, NULL);
    return NULL;
}

void gm_call_clock(struct gm_call *call)
{
    if (call->thread)
        call->start = gm_ticks_before();
}

uint32_t gm_call_elapsed(const struct gm_call *call)
{
    if (!call->thread || !call->start)
        return 0;
    uint64_t elapsed = gm_ticks_after() - call->start;
    return elapsed > UINT32_MAX ? UINT32_MAX : (uint32_t)elapsed;
}

uint32_t gm_call_slow_elapsed(const struct gm_call *call)
{
    uint32_t elapsed = gm_call_elapsed_ns(call);
    if (elapsed >= GM_SLOW_CALL_NS)
        return elapsed;
    if (call->thread)
        call->thread->fast_calls = GM_FAST_CALLS;
    return 0;
}

uint32_t gm_call_elapsed_ns(const struct gm_call *call)
{
    if (!call->thread || !call->start)
        return 0;
    uint64_t elapsed = gm_clock_ticks_to_ns(gm_ticks_after() - call->start);
    return elapsed > UINT32_MAX ? UINT32_MAX : (uint32_t)elapsed;
}

/*
 * The ring is larger than the caches near the core, and the drainer reads what stands there, so a
 * line has to be fetched before it is written. A program that takes a lock after our hook, as
 * PyTorch's allocator does, waits there for all that was written: so the line is asked for some
 * records before its turn.
 */
#define RECORDS_AHEAD 16u

/* The slot of the next record, NULL when the record must be dropped. */
static inline struct gm_record *reserve_record(struct gm_thread *thread)
{
    if (gm_unlikely(thread->head == thread->limit)) {
        int saved_errno = errno;
        bool room = gm_thread_look(thread);
        errno = saved_errno;
        if (!room)
            return NULL;
    }
    return &thread->records[thread->head & thread->mask];
}

static inline void commit(struct gm_thread *thread)
{
    thread->head++;
    __atomic_store_n(&thread->lane->head, thread->head, __ATOMIC_RELEASE);
    gm_prefetch_for_writing(&thread->records[(thread->head + RECORDS_AHEAD) & thread->mask]);
}

/* A detail is committed by itself: a reader that finds none was cut off. */
static void put_detail(struct gm_thread *thread, const struct gm_record *detail, uint64_t time)
{
    struct gm_record *slot = reserve_record(thread);
    if (!slot)
        return;
    bool is_late = gm_process_ending != 0;
    if (is_late)
        gm_seal_open(thread);
    *slot = *detail;
    slot->type = GM_EVENT_DETAIL;
    slot->time = time;
    commit(thread);
    if (is_late)
        gm_seal_close(thread);
}

/*
 * Lets the caller commit to the lane and closes the gate; returns what the gate is to be set to
 * again, 0 if the caller may not. It may not if it forked since the call began: the lane is the
 * parent's and not mapped here. A time is taken only between here and leave.
 */
static inline uint64_t enter(struct gm_thread *thread)
{
    uint64_t gate = gm_tls.gate;
    __atomic_store_n(&thread->committing, true, __ATOMIC_RELAXED); /* see gm_process_forked */
    atomic_signal_fence(memory_order_seq_cst);
    if (gm_unlikely(!gm_process_admits(&gm_tls) || gm_tls.thread != thread)) {
        __atomic_store_n(&thread->committing, false, __ATOMIC_RELAXED);
        gm_why(GM_WHY_CALL_FORKED, 0, NULL);
        return 0;
    }
    gm_gate_close(&gm_tls);
    return gate;
}

static inline void leave(struct gm_thread *thread, uint64_t gate)
{
    __atomic_store_n(&thread->committing, false, __ATOMIC_RELEASE);
    atomic_signal_fence(memory_order_seq_cst);
    gm_tls.gate = gate;
}

/* The upper half of a record's last word is the lower half of `what`, but for what is filled in. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words of a record are put together");
_Static_assert(offsetof(struct gm_record, stack) == 32 && offsetof(struct gm_record, extra) == 36 &&
                   offsetof(struct gm_record, context) == 40 &&
                   offsetof(struct gm_record, api) == 42 &&
                   offsetof(struct gm_record, type) == 44 &&
                   offsetof(struct gm_record, kind) * 8 == 44 * 8 + GM_WHAT_KIND &&
                   offsetof(struct gm_record, device) * 8 == 44 * 8 + GM_WHAT_DEVICE &&
                   offsetof(struct gm_record, flags) * 8 == 44 * 8 + GM_WHAT_FLAGS,
               "words of a record are put together");

static inline void put_word(struct gm_record *slot, size_t offset, uint64_t word)
{
    memcpy((char *)slot + offset, &word, sizeof(word));
}

static inline __attribute__((always_inline)) bool
store(struct gm_thread *thread, enum gm_event type, void *frame, uint64_t time, uint64_t what,
      uint64_t address, uint64_t size, uint64_t aux, uint16_t context, bool is_late)
{
    const uint64_t bit = 1ull << type;
    uint32_t stack = bit & types_with_stack ? gm_stack_capture(thread->stack, frame) : 0;
    uint32_t lower = (uint32_t)what;
    if (!context)
        context = gm_context_current();
    if (gm_what_is_on_current_device(what)) {
        uint8_t device = (uint8_t)gm_context_current_device(thread->api);
        lower = (lower & ~(0xffu << GM_WHAT_DEVICE)) | (uint32_t)device << GM_WHAT_DEVICE;
    }
    if (is_late && gm_process_ending & GM_ENDING_EXITING)
        lower |= (uint32_t)GM_FLAG_LATE << GM_WHAT_FLAGS;
    thread->events += (bit & types_of_life) != 0;
    struct gm_record *slot = reserve_record(thread);
    if (gm_unlikely(!slot))
        return false;
    if (is_late)
        gm_seal_open(thread);
    slot->time = time;
    slot->address = address;
    slot->size = size;
    slot->aux = aux;
    put_word(slot, offsetof(struct gm_record, stack), stack | (what >> GM_WHAT_EXTRA) << 32);
    put_word(slot, offsetof(struct gm_record, context),
             context | (uint32_t)thread->api << 16 | (uint64_t)lower << 32);
    commit(thread);
    if (is_late)
        gm_seal_close(thread);
    return true;
}

/* Behind the end of the process, which is marked in the trace already. */
static __attribute__((noinline, cold)) bool put_late(struct gm_thread *thread, enum gm_event type,
                                                     void *frame, uint64_t time, uint64_t what,
                                                     uint64_t address, uint64_t size, uint64_t aux,
                                                     uint16_t context)
{
    return store(thread, type, frame, time, what, address, size, aux, context, true);
}

/* Takes the event's place in the ring. `context` 0: the current one. False: it was dropped. */
static inline __attribute__((always_inline)) bool put(struct gm_thread *thread, enum gm_event type,
                                                      void *frame, uint64_t time, uint64_t what,
                                                      uint64_t address, uint64_t size, uint64_t aux,
                                                      uint16_t context)
{
    if (gm_unlikely(gm_process_ending))
        return put_late(thread, type, frame, time, what, address, size, aux, context);
    return store(thread, type, frame, time, what, address, size, aux, context, false);
}

static inline uint64_t time_of(enum gm_event type)
{
    /* Earlier than anything the call does, or later. */
    return gm_event_is_in(type, GM_EVENTS_FREE_LIKE) ? gm_ticks_before() : gm_ticks_after();
}

void gm_call_commit(struct gm_thread *thread, void *frame, uint64_t what, uint64_t address,
                    uint64_t size, uint64_t aux)
{
    enum gm_event type = (uint8_t)what;
    uint64_t gate = enter(thread);
    if (gm_unlikely(!gate))
        return;
    put(thread, type, frame, time_of(type), what, address, size, aux, 0);
    leave(thread, gate);
}

void gm_call_commit_alloc(struct gm_thread *thread, void *frame, uint64_t what, uint64_t address,
                          uint64_t size)
{
    uint64_t gate = enter(thread);
    if (gm_unlikely(!gate))
        return;
    put(thread, GM_EVENT_ALLOC, frame, time_of(GM_EVENT_ALLOC), what, address, size, 0, 0);
    leave(thread, gate);
}

void gm_call_commit_free(struct gm_thread *thread, uint64_t what, uint64_t address)
{
    uint64_t gate = enter(thread);
    if (gm_unlikely(!gate))
        return;
    put(thread, GM_EVENT_FREE, NULL, time_of(GM_EVENT_FREE), what, address, 0, 0, 0);
    leave(thread, gate);
}

/* Alone a detail would be taken for that of the record before. */
static inline void put_detail_of(bool is_there, struct gm_thread *thread,
                                 const struct gm_record *detail, uint64_t time)
{
    if (gm_likely(is_there))
        put_detail(thread, detail, time);
    else
        gm_count(GM_COUNT_DROPPED, 1);
}

void gm_call_commit_block(struct gm_thread *thread, void *frame, uint64_t what, uint64_t address,
                          uint64_t size, uint64_t allocated, const struct gm_record *detail)
{
    uint64_t gate = enter(thread);
    if (gm_unlikely(!gate))
        return;
    uint64_t time;
    bool is_there;
    if ((uint8_t)what == GM_EVENT_BLOCK_FREE) {
        time = time_of(GM_EVENT_BLOCK_FREE);
        is_there = put(thread, GM_EVENT_BLOCK_FREE, NULL, time, what, address, size, allocated, 0);
    } else { /* BLOCK_OOM alike: put and time_of treat both the same */
        time = time_of(GM_EVENT_BLOCK_ALLOC);
        is_there =
            put(thread, GM_EVENT_BLOCK_ALLOC, frame, time, what, address, size, allocated, 0);
    }
    put_detail_of(is_there, thread, detail, time);
    leave(thread, gate);
}

void gm_call_record(struct gm_call *call, const struct gm_record *record,
                    const struct gm_record *detail)
{
    uint64_t what =
        gm_what(record->type, record->kind, record->device, record->flags, record->extra);
    uint64_t gate = call->thread ? enter(call->thread) : 0;
    if (!gate)
        return;
    /* Of a sample: when it was true, not when it is told. */
    uint64_t time = record->type == GM_EVENT_DEVICE_SAMPLE ? call->start : time_of(record->type);
    bool is_there = put(call->thread, record->type, call->frame, time, what, record->address,
                        record->size, record->aux, record->context);
    if (detail)
        put_detail_of(is_there, call->thread, detail, time);
    leave(call->thread, gate);
}
