/*
 * What a hook does to be recorded. Every function here is safe in a guest: no malloc, no stdio, no
 * loader lock, errno preserved, and a no-op when this process is not (or cannot be) recorded.
 *
 * What stands in every hook's way is inline here; the rest of the way of an event is in recorder.c.
 *
 *     CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size)
 *     {
 *         ... real = gm_real(GM_API_cuMemAlloc_v2, __builtin_return_address(0));
 *         struct gm_call call;
 *         gm_call_begin(&call, GM_API_cuMemAlloc_v2, __builtin_frame_address(0));
 *         CUresult result = real(address, size);
 *         if (gm_call_recorded(&call)) { fill a struct gm_record; gm_call_record(&call, &record); }
 *         gm_call_end(&call);
 *         return result;
 *     }
 */
#ifndef GPUMEM_PRELOAD_RECORD_RECORDER_H
#define GPUMEM_PRELOAD_RECORD_RECORDER_H

#include "ring/lane.h"
#include <gpumem/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gm_call {
    struct gm_thread *thread; /* NULL: not recorded */
    void *frame;              /* __builtin_frame_address(0) of the hook */
    uint64_t start;           /* record clock at begin; 0 until asked for */
    uint32_t
        events_before; /* of the thread: lets a runtime hook see whether a driver hook recorded */
    uint32_t depth;    /* open calls around this one; may hold GM_CALL_APART */
    uint16_t api;
};

/* Slow path for a thread that gm_process_admits turns down: joins it to the trace, or counts why it
 * cannot. NULL: not recorded. `frame` is that of the hook. */
struct gm_thread *gm_call_admit(void *frame);

/*
 * Slow path of the first call of a process or a thread: makes the trace, claims a lane. False when
 * this process or thread is not recorded. A port: process/process.c defines it, for a trace that
 * begins takes all that stands above this folder.
 */
bool gm_process_join(struct gm_tls *tls);

/*
 * Whether what the calling thread allocates is to be ignored: how often that was asked for and not
 * taken back. The lane is told of a change at once, or when the thread joins the trace.
 */
extern _Thread_local uint32_t gm_ignore_depth __attribute__((tls_model("initial-exec")));
void gm_ignore_tell(struct gm_thread *thread);

/*
 * How many open calls are around one that begins at `frame` while calls are open: none if they were
 * left without a return, for their hooks' frames lay below it on the same stack. On another stack
 * than theirs (a signal's, a coroutine's) this call is named by itself, with GM_CALL_APART in the
 * answer, until gm_call_return.
 */
uint32_t gm_call_nested(struct gm_thread *thread, uintptr_t frame, uint16_t api);
void gm_call_return(struct gm_thread *thread);

#define GM_CALL_APART (UINT32_C(1) << 31)

/* A hook that calls another's hook does so from a frame not far above. */
#define GM_CALL_NEAR UINT64_C(65536)

/*
 * Opens a call. The outermost open call of a thread names the API of all records made inside it.
 * The first call of a process that reaches this creates the trace.
 */
GM_IN_HOOK void gm_call_begin(struct gm_call *call, uint16_t api, void *frame)
{
    struct gm_thread *thread = gm_process_admits(&gm_tls) ? gm_tls.thread : gm_call_admit(frame);
    *call = (struct gm_call){.thread = thread, .frame = frame, .api = api};
    if (gm_unlikely(!thread))
        return;
    call->depth = thread->depth;
    if (call->depth != 0 && gm_unlikely(thread->outermost - (uintptr_t)frame - 1 >= GM_CALL_NEAR))
        call->depth = gm_call_nested(thread, (uintptr_t)frame, api);
    if (call->depth == 0) {
        thread->api = api;
        thread->outermost = (uintptr_t)frame;
    }
    __atomic_store_n(&thread->depth, (call->depth & ~GM_CALL_APART) + 1, __ATOMIC_RELAXED);
    call->events_before = thread->events;
}

/* Closes it. Released for the lane's next owner, should this thread end without another call. */
GM_IN_HOOK void gm_call_end(struct gm_call *call)
{
    if (gm_unlikely(call->thread == NULL))
        return;
    if (gm_unlikely(call->depth & GM_CALL_APART))
        gm_call_return(call->thread);
    else
        __atomic_store_n(&call->thread->depth, call->depth, __ATOMIC_RELEASE);
}

static inline bool gm_call_active(const struct gm_call *call)
{
    return call->thread != NULL;
}

/*
 * Whether a hook below this one (the driver under the runtime) recorded an event of a life (ALLOC,
 * ALLOC_FAILED, FREE, COPY, SET ...) since the call began.
 */
static inline bool gm_call_seen_below(const struct gm_call *call)
{
    return call->thread && call->thread->events != call->events_before;
}

/* Grows with each such event of the calling thread; 0 while it has recorded nothing. */
static inline uint32_t gm_thread_events(void)
{
    return gm_tls.thread ? gm_tls.thread->events : 0;
}

/*
 * Commits one record. The caller fills type, kind, address, size, aux, extra, flags and device (-1:
 * that of the current context); time, api, context and, for types that carry one, the stack are
 * filled in here. `context` is taken from the record only if it is set. `detail`, if not NULL, is
 * committed right behind it as a DETAIL record. Waits for the drainer when the ring is full, unless
 * told to drop.
 */
void gm_call_record(struct gm_call *call, const struct gm_record *record,
                    const struct gm_record *detail);

/*
 * The same for events that come in numbers: with the fields in registers, because a record built in
 * memory and read back at once costs a stall. gm_what makes `what`. The first is for any type; the
 * others know theirs, which `what` names too.
 */
void gm_call_commit(struct gm_thread *thread, void *frame, uint64_t what, uint64_t address,
                    uint64_t size, uint64_t aux);
void gm_call_commit_alloc(struct gm_thread *thread, void *frame, uint64_t what, uint64_t address,
                          uint64_t size);
void gm_call_commit_free(struct gm_thread *thread, uint64_t what, uint64_t address);
/* BLOCK_ALLOC, BLOCK_FREE or BLOCK_OOM, with its DETAIL. */
void gm_call_commit_block(struct gm_thread *thread, void *frame, uint64_t what, uint64_t address,
                          uint64_t size, uint64_t allocated, const struct gm_record *detail);

/*
 * What an event is, in one word, laid out as the record has it: type, kind, device (-1: that of the
 * current context) and flags, a byte each, are the upper half of the record's last word; then `extra`.
 *
 *     bit   0     8     16      24     32
 *           type  kind  device  flags  extra
 */
#define GM_WHAT_KIND 8
#define GM_WHAT_DEVICE 16
#define GM_WHAT_FLAGS 24
#define GM_WHAT_EXTRA 32

static inline uint64_t gm_what(enum gm_event type, enum gm_kind kind, int8_t device, uint8_t flags,
                               uint32_t extra)
{
    return (uint64_t)type | (uint64_t)kind << GM_WHAT_KIND |
           (uint64_t)(uint8_t)device << GM_WHAT_DEVICE | (uint64_t)flags << GM_WHAT_FLAGS |
           (uint64_t)extra << GM_WHAT_EXTRA;
}

/* Whether it is on the device of the current context. */
static inline bool gm_what_is_on_current_device(uint64_t what)
{
    return (int8_t)(what >> GM_WHAT_DEVICE) < 0;
}

/* Record-clock ticks since the call began, in ns (saturating), for the `extra` of copies. Needs
 * gm_call_clock() right before the real call. */
void gm_call_clock(struct gm_call *call);
uint32_t gm_call_elapsed_ns(const struct gm_call *call);

/*
 * The same for calls that are either slow or not worth a look at the clock: those that take memory from a device. While a
 * thread's calls are slow each is timed; after a fast one the next GM_FAST_CALLS are not. gm_call_slow_ns is the `extra`: 0
 * for a call below GM_SLOW_CALL_NS, or not timed.
 */
#define GM_FAST_CALLS 63u
uint32_t gm_call_slow_elapsed(const struct gm_call *call);

GM_IN_HOOK void gm_call_clock_slow(struct gm_call *call)
{
    if (gm_unlikely(!call->thread))
        return;
    if (gm_likely(call->thread->fast_calls))
        call->thread->fast_calls--;
    else
        gm_call_clock(call);
}

GM_IN_HOOK uint32_t gm_call_slow_ns(const struct gm_call *call)
{
    return gm_likely(!call->start) ? 0 : gm_call_slow_elapsed(call);
}

/* The same in units of the record clock, for the `extra` of launches. */
uint32_t gm_call_elapsed(const struct gm_call *call);

#endif
