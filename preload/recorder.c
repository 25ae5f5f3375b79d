/* See recorder.h. The fast path of every event is in this file; all that is slow is behind it. */
#include "recorder.h"
#include <string.h>
#include "hooks/effects.h"
#include "process.h"
#include "stack.h"
#include "thread.h"
#include "trace_file.h"

/* Event types that carry a stack. Frees do not: who held the memory is what a report answers. */
static const uint64_t types_with_stack =
    1ull << GM_EVENT_ALLOC | 1ull << GM_EVENT_ALLOC_FAILED | 1ull << GM_EVENT_COPY |
    1ull << GM_EVENT_SET | 1ull << GM_EVENT_CONTEXT | 1ull << GM_EVENT_CONTEXT_END |
    1ull << GM_EVENT_VMM_CREATE | 1ull << GM_EVENT_VMM_IMPORT | 1ull << GM_EVENT_VMM_RESERVE |
    1ull << GM_EVENT_VMM_MAP | 1ull << GM_EVENT_MULTICAST_CREATE | 1ull << GM_EVENT_POOL_CREATE |
    1ull << GM_EVENT_GRAPH_ALLOC_NODE | 1ull << GM_EVENT_GRAPH_LAUNCH |
    1ull << GM_EVENT_MODULE_LOAD | 1ull << GM_EVENT_GLOBAL | 1ull << GM_EVENT_BLOCK_ALLOC |
    1ull << GM_EVENT_BLOCK_OOM | 1ull << GM_EVENT_CONTEXT_RETAIN;

/* Types recorded before the call they belong to: their time must be earlier than anything the call
 * does. */
static const uint64_t types_before_call =
    1ull << GM_EVENT_FREE | 1ull << GM_EVENT_CONTEXT_RELEASE | 1ull << GM_EVENT_CONTEXT_END |
    1ull << GM_EVENT_VMM_RELEASE | 1ull << GM_EVENT_VMM_UNRESERVE | 1ull << GM_EVENT_VMM_UNMAP |
    1ull << GM_EVENT_MULTICAST_UNBIND | 1ull << GM_EVENT_POOL_DESTROY |
    1ull << GM_EVENT_MODULE_UNLOAD;

/* What gm_call_seen_below looks for: records a runtime hook would otherwise make itself. */
static const uint64_t types_of_life =
    1ull << GM_EVENT_ALLOC | 1ull << GM_EVENT_FREE | 1ull << GM_EVENT_ALLOC_FAILED |
    1ull << GM_EVENT_COPY | 1ull << GM_EVENT_SET | 1ull << GM_EVENT_GRAPH_ALLOC_NODE |
    1ull << GM_EVENT_GRAPH_FREE_NODE | 1ull << GM_EVENT_GRAPH_LAUNCH | 1ull << GM_EVENT_HINT |
    1ull << GM_EVENT_CONTEXT_END;

void gm_call_begin(struct gm_call *call, uint16_t api, void *frame)
{
    struct gm_tls *tls = &gm_tls;
    *call = (struct gm_call){.frame = frame, .api = api};
    if (gm_unlikely(tls->busy)) {
        if (gm_process_ready(tls))
            gm_count(GM_COUNT_REENTRANT, 1);
        else
            tls->missed++; /* this thread is about to join, and counts it then */
        return;
    }
    if (gm_unlikely(!gm_process_ready(tls)) && !gm_process_join(tls))
        return;
    struct gm_thread *thread = tls->thread;
    if (gm_unlikely(!thread)) { /* none could be claimed when the thread joined */
        gm_count(GM_COUNT_NO_LANE, 1);
        return;
    }
    call->outermost = thread->depth == 0;
    __atomic_store_n(&thread->depth, thread->depth + 1, __ATOMIC_RELAXED);
    if (call->outermost)
        thread->api = api;
    call->thread = thread;
    call->events_before = thread->events;
}

void gm_call_end(struct gm_call *call)
{
    /* Released for the lane's next owner, should this thread end without another call. */
    if (call->thread)
        __atomic_store_n(&call->thread->depth, call->thread->depth - 1, __ATOMIC_RELEASE);
}

bool gm_call_seen_below(const struct gm_call *call)
{
    return call->thread && call->thread->events != call->events_before;
}

void gm_call_clock(struct gm_call *call)
{
    if (call->thread)
        call->start = gm_ticks_before();
}

uint32_t gm_call_elapsed_ns(const struct gm_call *call)
{
    if (!call->thread || !call->start)
        return 0;
    uint64_t elapsed = gm_trace_ticks_to_ns(gm_ticks_after() - call->start);
    return elapsed > UINT32_MAX ? UINT32_MAX : (uint32_t)elapsed;
}

/* The slot of the next record, NULL when the record must be dropped. */
static struct gm_record *reserve(struct gm_thread *thread)
{
    if (gm_unlikely(thread->head == thread->limit)) {
        int saved_errno = errno;
        bool room = gm_thread_make_room(thread);
        errno = saved_errno;
        if (!room)
            return NULL;
    }
    /* The drainer has read these lines on another CPU: fetch the ones to come before they are
     * needed. */
    __builtin_prefetch(&thread->records[(thread->head + 8) & thread->mask], 1);
    return &thread->records[thread->head & thread->mask];
}

static void commit(struct gm_thread *thread)
{
    thread->head++;
    __atomic_store_n(&thread->lane->head, thread->head, __ATOMIC_RELEASE);
    if (gm_unlikely(thread->head >= thread->half)) {
        int saved_errno = errno;
        thread->half = thread->head + (thread->mask + 1) / 2;
        gm_drain_wake();
        errno = saved_errno;
    }
}

/* What follows the record's own words; a detail is committed by itself: a reader that finds none
 * was cut off. */
static void put_detail(struct gm_thread *thread, const struct gm_record *detail, uint64_t time)
{
    struct gm_record *slot = reserve(thread);
    if (!slot)
        return;
    *slot = *detail;
    slot->type = GM_EVENT_DETAIL;
    slot->time = time;
    commit(thread);
}

void gm_call_commit(struct gm_call *call, uint64_t what, uint64_t address, uint64_t size,
                    uint64_t aux, const struct gm_record *detail)
{
    struct gm_thread *thread = call->thread;
    struct gm_tls *tls = &gm_tls;
    if (!thread)
        return;
    /* Forked inside the call: the lane is the parent's and not mapped here. */
    if (gm_unlikely(tls->thread != thread || !gm_process_ready(tls)))
        return;
    tls->busy = true;
    atomic_signal_fence(memory_order_seq_cst); /* busy is for signal handlers of this thread */
    uint64_t type = 1ull << (uint8_t)what;
    uint64_t time = type & types_before_call ? gm_ticks_before() : gm_ticks_after();
    if (gm_unlikely(type & 1ull << GM_EVENT_DEVICE_SAMPLE))
        time = call->start; /* when it was true, not when it was told */
    uint32_t stack = type & types_with_stack ? gm_stack_capture(thread->stack, call->frame) : 0;
    uint16_t context = call->context ? call->context : gm_context_current();
    int8_t device = (int8_t)(what >> GM_WHAT_DEVICE);
    if (device < 0)
        device = (int8_t)gm_context_current_device(thread->api);
    thread->events += (type & types_of_life) != 0;
    struct gm_record *slot = reserve(thread);
    if (slot) {
        slot->time = time;
        slot->address = address;
        slot->size = size;
        slot->aux = aux;
        slot->stack = stack;
        slot->extra = (uint32_t)(what >> GM_WHAT_EXTRA);
        slot->context = context;
        slot->api = thread->api;
        slot->type = (uint8_t)what;
        slot->kind = (uint8_t)(what >> GM_WHAT_KIND);
        slot->device = device;
        slot->flags = (uint8_t)((what >> GM_WHAT_FLAGS) |
                                (gm_unlikely(gm_process_exiting) ? GM_FLAG_LATE : 0));
        commit(thread);
        if (detail)
            put_detail(thread, detail, time);
    } else if (detail) {
        gm_count(GM_COUNT_DROPPED, 1); /* alone it would be taken for that of the record before */
    }
    atomic_signal_fence(memory_order_seq_cst);
    tls->busy = false;
}
