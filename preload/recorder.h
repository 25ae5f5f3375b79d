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
    bool outermost; /* no other hook of this thread encloses this one */
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
 * filled in here. `detail`, if not NULL, is committed right behind it as a DETAIL record. Waits for
 * the drainer when the ring is full, unless told to drop.
 */
void gm_call_record(struct gm_call *call, struct gm_record *record, struct gm_record *detail);

/* Record-clock ticks since the call began, in ns (saturating), for the `extra` of copies. Needs
 * gm_call_clock() right before the real call. */
void gm_call_clock(struct gm_call *call);
uint32_t gm_call_elapsed_ns(const struct gm_call *call);

/* ---- contexts (context.c): what the hooks of the context family tell, per thread ----------------
 */

/* Number of a CUcontext, made at first sight (a CONTEXT record is committed then). device -1:
 * unknown. */
uint16_t gm_context_number(struct gm_call *call, void *context, int device, unsigned flags);
/* The calling thread's current context changed to `context` (NULL: none). */
void gm_context_set_current(struct gm_call *call, void *context);
void gm_context_push(struct gm_call *call, void *context);
void gm_context_pop(struct gm_call *call);
/* The thread chose a device at the runtime layer (cudaSetDevice): used while no context is known.
 */
void gm_context_set_runtime_device(struct gm_call *call, int device);
/* Device of a context number, -1 unknown. */
int gm_context_device(uint16_t number);
/* Device for an allocation of the calling thread now, -1 unknown. */
int gm_context_current_device(struct gm_call *call);

/* Device of a pool handle noted by the hooks (cuMemPoolCreate, cuDeviceGetDefaultMemPool ...), -1
 * unknown. */
int gm_pool_device(void *pool);
void gm_pool_note(void *pool, int device);

/* Streams in capture, noted by the hooks of cuStreamBeginCapture / EndCapture. */
void gm_capture_note(void *stream, bool capturing, void *graph);
bool gm_capture_active(void *stream, void **graph);

#endif
