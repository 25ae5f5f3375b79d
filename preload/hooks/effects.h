/*
 * What the calls of api.table do to memory, as records. The generated hooks call these; nothing
 * here calls CUDA, blocks, or changes what the hook returns.
 *
 * gm_before_*  runs before the real call and fills *begun with the record it committed
 * gm_driver_*  runs after a driver call, `result` being its CUresult
 * gm_runtime_* runs after a runtime call: records only what no driver hook below did
 */
#ifndef GPUMEM_PRELOAD_HOOKS_EFFECTS_H
#define GPUMEM_PRELOAD_HOOKS_EFFECTS_H

#include "hooks/cuda_abi.h"
#include "record/current.h"
#include "record/recorder.h"

#define GM_WORD(value) ((uint64_t)(uintptr_t)(value))

/* What an out-parameter holds: read only after success, and callers may pass NULL. */
#define OUT(pointer) OUT_OR(pointer, 0)
#define OUT_OR(pointer, otherwise)                                                                 \
    (result == 0 && (pointer) != NULL ? GM_WORD(*(pointer)) : (uint64_t)(otherwise))

/* ---- effects.c: lives of addresses ----------------------------------------------------------- */

/* These are inline because programs make them by the million: see gm_call_commit. */
GM_IN_HOOK void gm_effect_alloc(struct gm_call *call, int result, enum gm_kind kind,
                                uint64_t address, uint64_t size, uint8_t flags)
{
    if (!gm_call_active(call))
        return;
    if (gm_unlikely(result != 0))
        gm_call_commit(call->thread, call->frame,
                       gm_what(GM_EVENT_ALLOC_FAILED, kind, -1, flags, (uint32_t)result), 0, size,
                       0);
    else if (address != 0)
        gm_call_commit_alloc(call->thread, call->frame,
                             gm_what(GM_EVENT_ALLOC, kind, -1, flags, gm_call_slow_ns(call)),
                             address, size);
}

GM_IN_HOOK void gm_effect_free(struct gm_call *call, struct gm_record *begun, enum gm_kind kind,
                               uint64_t address)
{
    if (!gm_call_active(call) || address == 0)
        return;
    begun->type = GM_EVENT_FREE;
    begun->address = address;
    begun->device = -1;
    gm_call_commit_free(call->thread, gm_what(GM_EVENT_FREE, kind, -1, 0, 0), address);
}

/* Takes back what was begun if the call failed. */
GM_IN_HOOK void gm_after_begun(struct gm_call *call, int result, const struct gm_record *begun)
{
    if (gm_unlikely(result != 0) && begun->type != GM_EVENT_NONE)
        gm_call_commit(call->thread, call->frame,
                       gm_what(GM_EVENT_UNDO, begun->type, begun->device, 0, (uint32_t)result),
                       begun->address, 0, 0);
}

/*
 * A call that is no allocation was refused: on record if for lack of memory, and the first of the
 * process that finds the device failed. `device` -1: that of the current context.
 */
void gm_effect_refused(struct gm_call *call, int result, enum gm_purpose purpose, int device,
                       uint8_t flags);
/* The same in a hook that does nothing else: it opens no call before it knows the result. */
void gm_refused_alone(uint16_t api, int result, enum gm_purpose purpose, void *frame,
                      uint8_t flags);

#define gm_driver_refused(call, result, purpose, device)                                           \
    do {                                                                                           \
        if (gm_unlikely((result) != 0))                                                            \
            gm_effect_refused(call, result, purpose, device, 0);                                   \
    } while (0)
#define gm_runtime_refused(call, result, purpose, device)                                          \
    do {                                                                                           \
        if (gm_unlikely((result) != 0) && !gm_call_seen_below(call))                               \
            gm_effect_refused(call, result, purpose, device, GM_FLAG_RUNTIME);                     \
    } while (0)

void gm_effect_end(struct gm_call *call, struct gm_record *begun, enum gm_event type,
                   uint64_t address, uint64_t size, uint64_t aux, int device);
void gm_effect_life(struct gm_call *call, int result, enum gm_event type, uint64_t address,
                    uint64_t size, uint64_t aux);
struct gm_array_shape {
    uint64_t extent[3];
    uint64_t element; /* bytes; 0: unknown */
    unsigned flags;   /* CUDA_ARRAY3D_ */
    unsigned levels;
};
void gm_effect_array(struct gm_call *call, int result, uint64_t handle,
                     const struct gm_array_shape *shape, uint8_t record_flags);
void gm_effect_copy(struct gm_call *call, int result, enum gm_copy direction, uint64_t to,
                    uint64_t from, uint64_t size, uint8_t flags);
void gm_effect_set(struct gm_call *call, int result, uint64_t address, uint64_t size,
                   uint8_t flags);
uint64_t gm_array_element(int format, unsigned channels);

#define gm_driver_alloc(call, result, kind, address, size)                                         \
    gm_effect_alloc(call, result, kind, GM_WORD(address), size, 0)
#define gm_driver_external(call, result, address, size)                                            \
    gm_effect_alloc(call, result, GM_KIND_EXTERNAL, GM_WORD(address), size, 0)
/* Of a pool: outlives its context. */
#define gm_driver_pool_external(call, result, address, size)                                       \
    gm_effect_alloc(call, result, GM_KIND_EXTERNAL, GM_WORD(address), size, GM_FLAG_POOL)
#define gm_before_free(call, begun, kind, address)                                                 \
    gm_effect_free(call, begun, kind, GM_WORD(address))
#define gm_before_end(call, begun, type, address, size)                                            \
    gm_effect_end(call, begun, type, GM_WORD(address), size, 0, -1)
#define gm_before_multicast_unbind(call, begun, handle, device, offset, size)                      \
    gm_effect_end(call, begun, GM_EVENT_MULTICAST_UNBIND, handle, size, offset, device)
#define gm_driver_life(call, result, type, address, size, aux)                                     \
    gm_effect_life(call, result, type, GM_WORD(address), size, GM_WORD(aux))
#define gm_driver_set(call, result, address, size, flags)                                          \
    gm_effect_set(call, result, GM_WORD(address), size, flags)
#define gm_driver_copy(call, result, direction, to, from, size, flags)                             \
    gm_effect_copy(call, result, direction, GM_WORD(to), GM_WORD(from), size, flags)
#define gm_driver_global(call, result, address, size, module)                                      \
    gm_effect_life(call, result, GM_EVENT_GLOBAL, address, size, GM_WORD(module))

/* effects_vmm.c: notes whether the memory of an array is to be mapped as a whole. */
void gm_array_created(int result, uint64_t array, unsigned flags);

/* Descriptors of both generations have the same fields. A caller may pass none, and be refused. */
#define gm_driver_array(call, result, handle, shape)                                               \
    do {                                                                                           \
        struct gm_array_shape of_array = {.levels = 1};                                            \
        if (shape)                                                                                 \
            of_array = (struct gm_array_shape){                                                    \
                .extent = {(shape)->Width, (shape)->Height, 0},                                    \
                .element = gm_array_element((shape)->Format, (shape)->NumChannels),                \
                .levels = 1};                                                                      \
        gm_effect_array(call, result, handle, &of_array, 0);                                       \
    } while (0)
/* levels 0: not a mipmapped array. */
#define gm_driver_array_3d(call, result, handle, shape, levels_)                                   \
    do {                                                                                           \
        struct gm_array_shape of_array = {.levels = 1};                                            \
        if (shape)                                                                                 \
            of_array = (struct gm_array_shape){                                                    \
                .extent = {(shape)->Width, (shape)->Height, (shape)->Depth},                       \
                .element = gm_array_element((shape)->Format, (shape)->NumChannels),                \
                .flags = (shape)->Flags,                                                           \
                .levels = (levels_) ? (levels_) : 1};                                              \
        gm_array_created(result, handle, of_array.flags);                                          \
        gm_effect_array(call, result, handle, &of_array, (levels_) ? GM_FLAG_MIPMAPPED : 0);       \
    } while (0)

void gm_driver_external_mipmap(struct gm_call *call, int result, uint64_t handle,
                               const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *description);

/* ---- copies by descriptor -------------------------------------------------------------------- */

enum gm_copy gm_copy_direction(int to, int from);

#define GM_COPY_SIDE(copy, side)                                                                   \
    ((copy)->side##MemoryType == CU_MEMORYTYPE_HOST    ? GM_WORD((copy)->side##Host)               \
     : (copy)->side##MemoryType == CU_MEMORYTYPE_ARRAY ? GM_WORD((copy)->side##Array)              \
                                                       : (uint64_t)(copy)->side##Device)
#define GM_COPY_SHAPED(call, result, copy, direction, depth, flags)                                \
    do {                                                                                           \
        if (copy)                                                                                  \
            gm_effect_copy(call, result, direction, GM_COPY_SIDE(copy, dst),                       \
                           GM_COPY_SIDE(copy, src),                                                \
                           (uint64_t)(copy)->WidthInBytes *(copy)->Height *(depth), flags);        \
    } while (0)
#define gm_driver_copy_2d(call, result, copy, flags)                                               \
    GM_COPY_SHAPED(call, result, copy,                                                             \
                   gm_copy_direction((copy)->dstMemoryType, (copy)->srcMemoryType), 1, flags)
#define gm_driver_copy_3d(call, result, copy, flags)                                               \
    GM_COPY_SHAPED(call, result, copy,                                                             \
                   gm_copy_direction((copy)->dstMemoryType, (copy)->srcMemoryType), (copy)->Depth, \
                   flags)
#define gm_driver_copy_peer(call, result, copy, flags)                                             \
    GM_COPY_SHAPED(call, result, copy, GM_COPY_PEER, (copy)->Depth, flags)

/* One record for a batch: the sum of its bytes, the addresses of its first element. */
void gm_driver_copy_batch(struct gm_call *call, int result, const CUdeviceptr *to,
                          const CUdeviceptr *from, const size_t *sizes, size_t count,
                          uint8_t flags);
void gm_driver_copy_3d_batch(struct gm_call *call, int result,
                             const CUDA_MEMCPY3D_BATCH_OP *operations, size_t count, uint8_t flags);
void gm_driver_copy_fabric_batch(struct gm_call *call, int result,
                                 const CUDA_FABRIC_COPY_BATCH_OP *operations, size_t count,
                                 uint8_t flags);
void gm_driver_hint(struct gm_call *call, int result, CUdeviceptr address, uint64_t size,
                    uint32_t advice);
void gm_driver_hint_batch(struct gm_call *call, int result, const CUdeviceptr *addresses,
                          const size_t *sizes, size_t count);
void gm_driver_host_call(struct gm_call *call, int result, uint64_t value, int which);
void gm_effect_export(struct gm_call *call, int result, uint64_t address, uint64_t size);

#define gm_driver_export(call, result, handle, size)                                               \
    gm_effect_export(call, result, GM_WORD(handle), size)

/* ---- effects_vmm.c: virtual memory management ------------------------------------------------ */

void gm_driver_vmm_create(struct gm_call *call, int result, uint64_t handle, uint64_t size,
                          const CUmemAllocationProp *properties);
void gm_driver_vmm_import(struct gm_call *call, int result, uint64_t handle, const void *shareable,
                          CUmemAllocationHandleType type);
/* shareable.c: the memory of this process that a shareable handle stands for, 0 unknown; and that
 * the driver gave a handle to memory that is new. */
void gm_driver_vmm_export(struct gm_call *call, int result, const void *shareable, uint64_t handle,
                          CUmemAllocationHandleType type);
uint64_t gm_shareable_handle(const void *shareable, CUmemAllocationHandleType type);
void gm_shareable_handle_new(uint64_t handle);
void gm_shareable_forget(void);
void gm_driver_vmm_map(struct gm_call *call, int result, uint64_t address, uint64_t size,
                       uint64_t offset, uint64_t handle);
/* Tiles of sparse arrays; the end of an array unmaps its own. */
void gm_driver_map_tiles(struct gm_call *call, int result, const CUarrayMapInfo *tiles,
                         unsigned count);
/* device -1: the one of the memory, which older ABIs do not name. */
void gm_driver_multicast_bind(struct gm_call *call, int result, uint64_t handle, int device,
                              uint64_t offset, uint64_t size, uint64_t memory);

/*
 * A logical endpoint is a multicast object to the trace: it has no memory and keeps what is bound
 * to it. Its numbers begin at 0, so they are told apart from handles, which are addresses.
 */
static inline uint64_t gm_endpoint_handle(CUlogicalEndpointId id)
{
    return (uint64_t)id | 1ull << 62;
}

/* ---- effects_pool.c: stream-ordered memory and its pools ------------------------------------- */

/* Streams are named by gm_stream_key. */
void gm_driver_alloc_async(struct gm_call *call, int result, uint64_t address, uint64_t size,
                           CUmemoryPool pool, uint64_t stream);
void gm_before_free_async(struct gm_call *call, struct gm_record *begun, uint64_t address,
                          uint64_t stream);
void gm_driver_free_captured(struct gm_call *call, int result, uint64_t address, uint64_t stream);
void gm_driver_pool_create(struct gm_call *call, int result, uint64_t pool,
                           const CUmemPoolProps *properties);
void gm_driver_pool_import(struct gm_call *call, int result, uint64_t pool);
void gm_before_pool_destroy(struct gm_call *call, struct gm_record *begun, CUmemoryPool pool);
void gm_driver_pool_destroyed(struct gm_call *call, int result, CUmemoryPool pool,
                              const struct gm_record *begun);
void gm_driver_pool_set(struct gm_call *call, int result, CUmemoryPool pool, int attribute,
                        const void *value);

/* ---- effects_graph.c ------------------------------------------------------------------------- */

enum gm_kind gm_graph_kind(enum gm_kind of_pool);
void gm_driver_graph_alloc_node(struct gm_call *call, int result, CUgraph graph,
                                const CUDA_MEM_ALLOC_NODE_PARAMS *parameters);
void gm_driver_graph_node(struct gm_call *call, int result, CUgraph graph,
                          const CUgraphNodeParams *parameters);
void gm_driver_graph_instantiate(struct gm_call *call, int result, uint64_t executable,
                                 CUgraph graph, uint64_t flags);
void gm_driver_graph_launch(struct gm_call *call, int result, CUgraphExec executable);
void gm_driver_graph_trim(struct gm_call *call, int result, int device);

/* ---- effects_graphics.c ---------------------------------------------------------------------- */

void gm_driver_graphics_pointer(struct gm_call *call, int result, CUgraphicsResource resource,
                                uint64_t address, uint64_t size);
void gm_driver_graphics_unmap(struct gm_call *call, int result, unsigned count,
                              const CUgraphicsResource *resources);

/* ---- capture.c: which streams are capturing -------------------------------------------------- */

/* One number per stream, whichever way the program names it; per_thread: the default stream is the
 * thread's own. */
uint64_t gm_stream_key(CUstream stream, bool per_thread);

/* Flags of work put on a stream. */
uint8_t gm_async_flags(uint64_t stream);

void gm_driver_capture_begin(struct gm_call *call, int result, uint64_t stream, CUgraph graph);
/* The same work again, into a graph that has its nodes already. */
void gm_driver_capture_again(struct gm_call *call, int result, uint64_t stream);
void gm_driver_capture_end(struct gm_call *call, int result, uint64_t stream, uint64_t graph);
void gm_driver_capture_fork(struct gm_call *call, int result, CUevent event, uint64_t stream,
                            unsigned flags);
void gm_driver_capture_join(struct gm_call *call, int result, uint64_t stream, CUevent event,
                            unsigned flags);
void gm_before_event_destroy(struct gm_call *call, struct gm_record *begun, CUevent event);
void gm_driver_event_destroyed(struct gm_call *call, int result, CUevent event,
                               const struct gm_record *begun);
/* What its work became part of; the other is given that if the stream lives on. */
uint64_t gm_capture_stream_gone(uint64_t stream);
void gm_capture_stream_stays(uint64_t stream, uint64_t captured);
/* The graph that work on `stream` becomes part of (its token while the capture lasts), 0 if none.
 */
uint64_t gm_capture_of(uint64_t stream);

/* ---- devices.c: facts of devices; the devices of pools and of streams ----------------------- */

void gm_driver_device_memory(struct gm_call *call, int result, int device, uint64_t bytes);
void gm_driver_device_name(struct gm_call *call, int result, int device, const char *name,
                           int size);
void gm_driver_pool_of_device(struct gm_call *call, int result, uint64_t pool, int device);
void gm_driver_pool_of_location(struct gm_call *call, int result, uint64_t pool,
                                const CUmemLocation *location, CUmemAllocationType type);
/* The pool became, or was found to be, the current one of the device. */
void gm_driver_pool_current(struct gm_call *call, int result, uint64_t pool, int device);
void gm_driver_pool_current_of_location(struct gm_call *call, int result, uint64_t pool,
                                        const CUmemLocation *location, CUmemAllocationType type);
void gm_driver_stream_create(struct gm_call *call, int result, uint64_t stream);
void gm_driver_green_stream_create(struct gm_call *call, int result, uint64_t stream,
                                   CUgreenCtx context);
void gm_before_stream_destroy(struct gm_call *call, struct gm_record *begun, uint64_t stream);
void gm_driver_stream_destroyed(struct gm_call *call, int result, uint64_t stream,
                                const struct gm_record *begun);

/* Device of a location, -1 if it is none. */
int gm_location_device(const CUmemLocation *location);
bool gm_location_is_host(const CUmemLocation *location);
/* Device of a pool or a stream as the hooks learnt it, -1 unknown. */
int gm_pool_device(uint64_t pool);
int gm_stream_device(uint64_t stream);
/* Kind of the memory of a pool: DEVICE, PINNED or MANAGED; DEVICE also if the pool is not known. */
enum gm_kind gm_pool_kind(uint64_t pool);
enum gm_kind gm_pool_kind_of(const CUmemLocation *location, CUmemAllocationType type);
void gm_pool_note(uint64_t pool, enum gm_kind kind, int device);
/* What is noted of a pool, 0 if nothing is; and forgets it, unless something else was noted since. */
uint64_t gm_pool_noted(uint64_t pool);
void gm_pool_forget(uint64_t pool, uint64_t noted);
/* The device's default pool takes the place of this one. Tells whether this one was the device's current pool. */
bool gm_pool_not_current(uint64_t pool, int device);
/* The pool that cuMemAllocAsync takes from on this device, 0 unknown. */
uint64_t gm_pool_of(int device);

/* ---- context.c ------------------------------------------------------------------------------- */

void gm_driver_context_create(struct gm_call *call, int result, uint64_t context, int device);
void gm_before_context_end(struct gm_call *call, struct gm_record *begun, CUcontext context);
void gm_driver_context_gone(struct gm_call *call, int result, CUcontext context,
                            const struct gm_record *begun);
void gm_driver_context_attach(struct gm_call *call, int result, uint64_t context);
void gm_before_context_detach(struct gm_call *call, struct gm_record *begun, CUcontext context);
void gm_driver_context_detached(struct gm_call *call, int result, CUcontext context,
                                const struct gm_record *begun);
void gm_driver_primary_retain(struct gm_call *call, int result, uint64_t context, int device);
void gm_before_primary_end(struct gm_call *call, struct gm_record *begun, enum gm_event type,
                           int device);
void gm_driver_green_create(struct gm_call *call, int result, uint64_t green, int device);
void gm_driver_green_convert(struct gm_call *call, int result, uint64_t context, CUgreenCtx green);
void gm_before_green_destroy(struct gm_call *call, struct gm_record *begun, CUgreenCtx green);
void gm_driver_green_destroyed(struct gm_call *call, int result, CUgreenCtx green,
                               const struct gm_record *begun);
int gm_green_device(CUgreenCtx green); /* -1 unknown */
void gm_driver_context_set(struct gm_call *call, int result, CUcontext context);
void gm_driver_context_push(struct gm_call *call, int result, CUcontext context);
void gm_driver_context_pop(struct gm_call *call, int result);
/* The driver said which context is current, or on which device it is. */
void gm_driver_context_seen(struct gm_call *call, int result, uint64_t context);
void gm_driver_context_device(struct gm_call *call, int result, uint64_t device, CUcontext context);

/* Number of a context, given at first sight, when a CONTEXT record tells the reader of it;
 * GM_CONTEXT_UNTOLD when all are given. device -1: unknown. */
uint16_t gm_context_number(struct gm_call *call, uint64_t context, int device, uint8_t flags);

/* Contexts that came to their end: from then on a handle may mean another one. */
extern _Atomic uint32_t gm_context_ends;

/* Whether gm_driver_context_seen would change nothing; `context` 0: there is none, or an error. */
static inline bool gm_context_is_known(uint64_t context)
{
    const struct gm_context_self *self = &gm_context_self;
    return context != 0 && context == self->seen && self->seen_number == gm_context_current() &&
           self->seen_ends == atomic_load_explicit(&gm_context_ends, memory_order_relaxed);
}

/* Whether gm_driver_context_device would change nothing for the current context. */
static inline bool gm_context_device_is_known(void)
{
    return gm_context_device(gm_context_current()) >= 0;
}

/* After a fork nothing of this holds any more: a child cannot use its parent's contexts. */
void gm_contexts_forget(void);
void gm_captures_forget(void);
void gm_devices_forget(void);
void gm_graphics_forget(void);
void gm_deferred_arrays_forget(void);

/* ---- effects_runtime.c: what no driver hook saw ---------------------------------------------- */

void gm_runtime_life(struct gm_call *call, int result, enum gm_kind kind, uint64_t address,
                     uint64_t size, uint8_t flags);
void gm_runtime_end(struct gm_call *call, int result, enum gm_kind kind, uint64_t address);
void gm_runtime_move(struct gm_call *call, int result, enum gm_copy direction, uint64_t to,
                     uint64_t from, uint64_t size, uint8_t flags);
void gm_runtime_fill(struct gm_call *call, int result, uint64_t address, uint64_t size,
                     uint8_t flags);
void gm_runtime_pitched_3d(struct gm_call *call, int result, const struct cudaPitchedPtr *pitched,
                           struct cudaExtent extent);
/* levels 0: not a mipmapped array. */
void gm_runtime_array(struct gm_call *call, int result, uint64_t handle,
                      const struct cudaChannelFormatDesc *format, struct cudaExtent extent,
                      unsigned flags, unsigned levels);
void gm_runtime_copy_3d(struct gm_call *call, int result, const struct cudaMemcpy3DParms *copy,
                        uint8_t flags);
void gm_runtime_copy_3d_peer(struct gm_call *call, int result,
                             const struct cudaMemcpy3DPeerParms *copy, uint8_t flags);
void gm_runtime_device_reset(struct gm_call *call, int result);
void gm_runtime_set_device(struct gm_call *call, int result, int device);
enum gm_copy gm_runtime_direction(int kind);

#define gm_runtime_alloc(call, result, kind, address, size)                                        \
    gm_runtime_life(call, result, kind, GM_WORD(address), size, 0)
#define gm_runtime_alloc_async(call, result, address, size)                                        \
    gm_runtime_life(call, result, GM_KIND_DEVICE, GM_WORD(address), size,                          \
                    GM_FLAG_ASYNC | GM_FLAG_POOL)
#define gm_runtime_free(call, result, kind, address)                                               \
    gm_runtime_end(call, result, kind, GM_WORD(address))
#define gm_runtime_copy(call, result, kind, to, from, size, flags)                                 \
    gm_runtime_move(call, result, gm_runtime_direction((int)(kind)), GM_WORD(to), GM_WORD(from),   \
                    size, flags)
#define gm_runtime_copy_peer(call, result, to, from, size, flags)                                  \
    gm_runtime_move(call, result, GM_COPY_PEER, GM_WORD(to), GM_WORD(from), size, flags)
#define gm_runtime_set(call, result, address, size, flags)                                         \
    gm_runtime_fill(call, result, GM_WORD(address), size, flags)

#endif
