/*
 * Which streams are capturing, told by the calls that begin, spread and end a capture. Nothing is
 * asked of CUDA: a query during a capture can invalidate it.
 *
 * A capture spreads like in CUDA: an event recorded on a capturing stream carries it, a stream that
 * waits for that event joins. Work captured before its graph exists is recorded under a token; the
 * end of the capture ties the token to the graph. Fixed tables; what does not fit is recorded as if
 * it were not captured.
 */
#include "effects.h"
#include "platform.h"

#define STREAMS_MAX 128u
#define EVENTS_MAX 512u
#define TOKEN_BIT (1ull << 63) /* no graph handle has it: they are user-space addresses */

struct member {
    const void *handle;
    uint64_t graph; /* handle or token */
};

static struct member streams[STREAMS_MAX];
static struct member events[EVENTS_MAX];
static _Atomic uint32_t captures; /* under way: without one, nothing here is looked at */
static uint64_t last_token;
static struct gm_lock lock;

static struct member *find(struct member *members, uint32_t count, const void *handle)
{
    for (uint32_t i = 0; i < count; i++)
        if (members[i].graph && members[i].handle == handle)
            return &members[i];
    return NULL;
}

static void join(struct member *members, uint32_t count, const void *handle, uint64_t graph)
{
    struct member *member = find(members, count, handle);
    for (uint32_t i = 0; !member && i < count; i++)
        if (!members[i].graph)
            member = &members[i];
    if (member)
        *member = (struct member){handle, graph};
}

static void leave(struct member *members, uint32_t count, uint64_t graph)
{
    for (uint32_t i = 0; i < count; i++)
        if (members[i].graph == graph)
            members[i].graph = 0;
}

uint64_t gm_capture_of(CUstream stream)
{
    if (gm_likely(atomic_load_explicit(&captures, memory_order_acquire) == 0))
        return 0;
    gm_lock_take(&lock);
    const struct member *member = find(streams, STREAMS_MAX, stream);
    uint64_t graph = member ? member->graph : 0;
    gm_lock_release(&lock);
    return graph;
}

void gm_driver_capture_begin(struct gm_call *call, int result, CUstream stream, CUgraph graph)
{
    (void)call;
    if (result != 0)
        return;
    gm_lock_take(&lock);
    join(streams, STREAMS_MAX, stream, graph ? GM_WORD(graph) : (++last_token | TOKEN_BIT));
    gm_lock_release(&lock);
    atomic_fetch_add_explicit(&captures, 1, memory_order_acq_rel);
}

/* A capture that went wrong is over as well, unless the wrong thread tried to end it. */
#define CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD 908

void gm_driver_capture_end(struct gm_call *call, int result, CUstream stream, uint64_t graph)
{
    uint64_t ended = result == CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD ? 0 : gm_capture_of(stream);
    if (!ended)
        return;
    gm_lock_take(&lock);
    leave(streams, STREAMS_MAX, ended);
    leave(events, EVENTS_MAX, ended);
    gm_lock_release(&lock);
    atomic_fetch_sub_explicit(&captures, 1, memory_order_acq_rel);
    if (graph && (ended & TOKEN_BIT))
        gm_effect_life(call, result, GM_EVENT_GRAPH_CHILD, graph, 0, ended);
}

/* cuEventRecord: the event carries the capture of the stream, or none any more. */
void gm_driver_capture_fork(struct gm_call *call, int result, CUevent event, CUstream stream)
{
    (void)call;
    if (result != 0 || gm_likely(atomic_load_explicit(&captures, memory_order_acquire) == 0))
        return;
    gm_lock_take(&lock);
    const struct member *member = find(streams, STREAMS_MAX, stream);
    struct member *carrier = find(events, EVENTS_MAX, event);
    if (member)
        join(events, EVENTS_MAX, event, member->graph);
    else if (carrier)
        carrier->graph = 0;
    gm_lock_release(&lock);
}

void gm_driver_capture_join(struct gm_call *call, int result, CUstream stream, CUevent event)
{
    (void)call;
    if (result != 0 || gm_likely(atomic_load_explicit(&captures, memory_order_acquire) == 0))
        return;
    gm_lock_take(&lock);
    const struct member *carrier = find(events, EVENTS_MAX, event);
    if (carrier)
        join(streams, STREAMS_MAX, stream, carrier->graph);
    gm_lock_release(&lock);
}
