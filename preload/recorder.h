/*
 * What a hook does to be recorded. Every function here is safe in a guest: no malloc, no stdio, no
 * loader lock, errno preserved, and a no-op when this process is not (or cannot be) recorded.
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
#ifndef GPUMEM_PRELOAD_RECORDER_H
#define GPUMEM_PRELOAD_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <gpumem/trace.h>

struct gm_thread;

struct gm_call {
    struct gm_thread *thread; /* NULL: not recorded */
    void *frame;              /* __builtin_frame_address(0) of the hook */
    uint64_t start;           /* record clock at begin; 0 until asked for */
    uint32_t
        events_before; /* of the thread: lets a runtime hook see whether a driver hook recorded */
    uint16_t api;
    uint16_t context; /* of the record being made, if it names one itself */
    bool outermost;   /* no other hook of this thread encloses this one */
};

/*
 * Opens a call. The outermost open call of a thread names the API of all records made inside it.
 * The first call of a process that reaches this creates the trace.
 */
void gm_call_begin(struct gm_call *call, uint16_t api, void *frame);

/* Closes it. */
void gm_call_end(struct gm_call *call);

static inline bool gm_call_active(const struct gm_call *call)
{
    return call->thread != NULL;
}

/*
 * Whether a hook below this one (the driver under the runtime) recorded an event of a life (ALLOC,
 * ALLOC_FAILED, FREE, COPY, SET ...) since the call began.
 */
bool gm_call_seen_below(const struct gm_call *call);

/*
 * Commits one record. The caller fills type, kind, address, size, aux, extra, flags and device (-1:
 * that of the current context); time, api, context and, for types that carry one, the stack are
 * filled in here. `context` is taken from the record only if it is set. `detail`, if not NULL, is
 * committed right behind it as a DETAIL record. Waits for the drainer when the ring is full, unless
 * told to drop.
 */
static inline void gm_call_record(struct gm_call *call, const struct gm_record *record,
                                  const struct gm_record *detail);

/* The same with the fields in registers: a record built in memory and read back at once costs a
 * stall. */
void gm_call_commit(struct gm_call *call, uint64_t what, uint64_t address, uint64_t size,
                    uint64_t aux, const struct gm_record *detail);

#define GM_WHAT_KIND 8
#define GM_WHAT_DEVICE 16
#define GM_WHAT_FLAGS 24
#define GM_WHAT_EXTRA 32

static inline void gm_call_record(struct gm_call *call, const struct gm_record *record,
                                  const struct gm_record *detail)
{
    uint64_t what = record->type | (uint64_t)record->kind << GM_WHAT_KIND |
                    (uint64_t)(uint8_t)record->device << GM_WHAT_DEVICE |
                    (uint64_t)record->flags << GM_WHAT_FLAGS |
                    (uint64_t)record->extra << GM_WHAT_EXTRA;
    call->context = record->context;
    gm_call_commit(call, what, record->address, record->size, record->aux, detail);
}

/* Record-clock ticks since the call began, in ns (saturating), for the `extra` of copies. Needs
 * gm_call_clock() right before the real call. */
void gm_call_clock(struct gm_call *call);
uint32_t gm_call_elapsed_ns(const struct gm_call *call);

#endif
