/*
 * Which streams are capturing, told by the calls that begin, spread and end a capture. Nothing is
 * asked of CUDA: a query during a capture can invalidate it.
 *
 * A capture spreads as CUDA's does: an event recorded on a capturing stream carries it, a stream
 * that waits for that event joins. Work captured before its graph exists is recorded under a token;
 * the end of the capture ties the token to the graph. What does not fit into the tables is recorded
 * as if it were not captured.
 */
#include "base/handles.h"
#include "base/platform.h"
#include "hooks/effects.h"

/* Both hold the graph that work becomes part of, or its token. */
GM_HANDLES(streams, 512);
GM_HANDLES(events, 2048);

/* No graph handle has these bits: they are user-space addresses. */
#define TOKEN (1ull << 63)
#define AGAIN (1ull << 62) /* the graph has the nodes already: the token leads to none */

static _Atomic uint32_t captures; /* under way: without one, nothing here is looked at */
static _Atomic uint64_t last_token;

/* Results of cuStreamEndCapture that leave the capture as it was. */
enum {
    CUDA_ERROR_STREAM_CAPTURE_UNMATCHED = 903,    /* begun on another stream */
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908, /* begun by another thread */
};

uint64_t gm_stream_key(CUstream stream, bool per_thread)
{
    enum { LEGACY = 1, PER_THREAD = 2 }; /* CU_STREAM_LEGACY, CU_STREAM_PER_THREAD */
    const uint64_t handle = GM_WORD(stream);
    if (handle == PER_THREAD || (handle == 0 && per_thread))
        return GM_WORD(&gm_context_self); /* another stream in each thread */
    return handle != 0 ? handle : LEGACY;
}

static bool captures_nothing(void)
{
    return gm_likely(atomic_load_explicit(&captures, memory_order_acquire) == 0);
}

uint64_t gm_capture_of(uint64_t stream)
{
    return captures_nothing() ? 0 : gm_handles_get(&streams, stream);
}

uint8_t gm_async_flags(uint64_t stream)
{
    return (uint8_t)(GM_FLAG_ASYNC | (gm_capture_of(stream) ? GM_FLAG_CAPTURED : 0));
}

static uint64_t new_token(void)
{
    return (atomic_fetch_add_explicit(&last_token, 1, memory_order_relaxed) + 1) | TOKEN;
}

static void begin_capture(uint64_t stream, uint64_t into)
{
    if (gm_handles_set(&streams, stream, into))
        atomic_fetch_add_explicit(&captures, 1, memory_order_acq_rel);
}

void gm_driver_capture_begin(struct gm_call *call, int result, uint64_t stream, CUgraph graph)
{
    (void)call;
    if (result == 0)
        begin_capture(stream, graph ? GM_WORD(graph) : new_token());
}

void gm_driver_capture_again(struct gm_call *call, int result, uint64_t stream)
{
    (void)call;
    if (result == 0)
        begin_capture(stream, new_token() | AGAIN);
}

static void end_capture(uint64_t graph)
{
    gm_handles_drop(&streams, graph);
    gm_handles_drop(&events, graph);
    atomic_fetch_sub_explicit(&captures, 1, memory_order_acq_rel);
}

void gm_driver_capture_end(struct gm_call *call, int result, uint64_t stream, uint64_t graph)
{
    const uint64_t captured = gm_capture_of(stream);
    if (!captured || result == CUDA_ERROR_STREAM_CAPTURE_UNMATCHED ||
        result == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
        return;
    end_capture(captured);
    if (!(captured & TOKEN))
        return;
    if (graph && !(captured & AGAIN))
        gm_effect_life(call, result, GM_EVENT_GRAPH_CHILD, graph, 0, captured);
    gm_effect_life(call, 0, GM_EVENT_GRAPH_DESTROY, captured, 0, 0);
}

/* The event carries the capture of the stream, or none any more. CU_EVENT_RECORD_EXTERNAL: "Event is captured in the
 * graph as an external event node when performing stream capture"; it carries no capture. */
void gm_driver_capture_fork(struct gm_call *call, int result, CUevent event, uint64_t stream,
                            unsigned flags)
{
    enum { CU_EVENT_RECORD_EXTERNAL = 1 };
    (void)call;
    if (result != 0 || captures_nothing() || flags & CU_EVENT_RECORD_EXTERNAL)
        return;
    const uint64_t graph = gm_handles_get(&streams, stream);
    if (graph)
        gm_handles_set(&events, GM_WORD(event), graph);
    else
        gm_handles_take(&events, GM_WORD(event));
}

/* CU_EVENT_WAIT_EXTERNAL likewise: such a wait joins nothing. */
void gm_driver_capture_join(struct gm_call *call, int result, uint64_t stream, CUevent event,
                            unsigned flags)
{
    enum { CU_EVENT_WAIT_EXTERNAL = 1 };
    (void)call;
    if (result != 0 || captures_nothing() || flags & CU_EVENT_WAIT_EXTERNAL)
        return;
    const uint64_t graph = gm_handles_get(&events, GM_WORD(event));
    if (graph)
        gm_handles_set(&streams, stream, graph);
}

/* Its handle may soon be that of another stream. */
uint64_t gm_capture_stream_gone(uint64_t stream)
{
    return captures_nothing() ? 0 : gm_handles_take(&streams, stream);
}

void gm_capture_stream_stays(uint64_t stream, uint64_t captured)
{
    if (captured && !captures_nothing())
        gm_handles_set(&streams, stream, captured);
}

/* An event that has its handle after this carries nothing until it is recorded. */
void gm_before_event_destroy(struct gm_call *call, struct gm_record *begun, CUevent event)
{
    (void)call;
    if (!captures_nothing())
        begun->aux = gm_handles_take(&events, GM_WORD(event));
}

void gm_driver_event_destroyed(struct gm_call *call, int result, CUevent event,
                               const struct gm_record *begun)
{
    (void)call;
    if (result != 0 && begun->aux && !captures_nothing())
        gm_handles_set(&events, GM_WORD(event), begun->aux);
}

void gm_captures_forget(void)
{
    gm_handles_clear(&streams);
    gm_handles_clear(&events);
    atomic_store_explicit(&captures, 0, memory_order_relaxed);
}
