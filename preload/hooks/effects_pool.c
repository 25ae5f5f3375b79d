/* See effects.h: stream-ordered memory and its pools. */
#include "hooks/effects.h"

void gm_driver_alloc_async(struct gm_call *call, int result, uint64_t address, uint64_t size,
                           CUmemoryPool pool, uint64_t stream)
{
    const uint64_t graph = gm_capture_of(stream);
    const enum gm_kind kind = gm_pool_kind(GM_WORD(pool));
    int device = pool ? gm_pool_device(GM_WORD(pool)) : -1;
    if (device < 0 && (!pool || kind == GM_KIND_MANAGED)) /* which may be of no device */
        device = gm_stream_device(stream);
    if (device < 0)
        device = gm_context_current_device(call->api);
    struct gm_record record = {
        .type = result != 0 ? GM_EVENT_ALLOC_FAILED
                : graph     ? GM_EVENT_GRAPH_ALLOC_NODE
                            : GM_EVENT_ALLOC,
        .kind = (uint8_t)(graph ? gm_graph_kind(kind) : kind),
        .address = address,
        .size = size,
        .aux = graph  ? graph
               : pool ? GM_WORD(pool)
                      : gm_pool_of(device),
        .extra = (uint32_t)result,
        .flags = GM_FLAG_ASYNC | (graph ? GM_FLAG_CAPTURED : GM_FLAG_POOL),
        .device = (int8_t)device,
    };
    if (result != 0 || address != 0)
        gm_call_record(call, &record, NULL);
}

/* On a capturing stream nothing is freed now: see gm_driver_free_captured. */
void gm_before_free_async(struct gm_call *call, struct gm_record *begun, uint64_t address,
                          uint64_t stream)
{
    struct gm_record record = {.type = GM_EVENT_FREE,
                               .kind = GM_KIND_DEVICE,
                               .address = address,
                               .flags = GM_FLAG_ASYNC,
                               .device = -1};
    if (!gm_call_active(call) || address == 0 || gm_capture_of(stream))
        return;
    *begun = record;
    gm_call_record(call, &record, NULL);
}

/* A node that will free: known to be one only after the call. */
void gm_driver_free_captured(struct gm_call *call, int result, uint64_t address, uint64_t stream)
{
    struct gm_record record = {.type = GM_EVENT_GRAPH_FREE_NODE,
                               .address = address,
                               .aux = gm_capture_of(stream),
                               .flags = GM_FLAG_ASYNC | GM_FLAG_CAPTURED,
                               .device = -1};
    if (result == 0 && address != 0 && record.aux != 0)
        gm_call_record(call, &record, NULL);
}

void gm_driver_pool_create(struct gm_call *call, int result, uint64_t pool,
                           const CUmemPoolProps *properties)
{
    if (result != 0 || !pool)
        return;
    int device = properties ? gm_location_device(&properties->location) : -1;
    enum gm_kind kind =
        properties ? gm_pool_kind_of(&properties->location, properties->allocType) : GM_KIND_DEVICE;
    struct gm_record record = {
        .type = GM_EVENT_POOL_CREATE, .address = pool, .device = (int8_t)device};
    gm_pool_note(pool, kind, device);
    gm_call_record(call, &record, NULL);
}

void gm_driver_pool_import(struct gm_call *call, int result, uint64_t pool)
{
    gm_driver_pool_create(call, result, pool, NULL);
}

/* What is noted of the pool stays until the driver has destroyed it: a default pool's destruction is refused, and
 * another thread may take from that pool meanwhile. */
void gm_before_pool_destroy(struct gm_call *call, struct gm_record *begun, CUmemoryPool pool)
{
    int device = gm_pool_device(GM_WORD(pool));
    gm_effect_end(call, begun, GM_EVENT_POOL_DESTROY, GM_WORD(pool), 0, 0, device);
    begun->aux = gm_pool_noted(GM_WORD(pool)); /* for gm_driver_pool_destroyed alone */
    begun->size = gm_pool_not_current(GM_WORD(pool), device);
}

/* Where it succeeds, the handle may already be that of another pool. */
void gm_driver_pool_destroyed(struct gm_call *call, int result, CUmemoryPool pool,
                              const struct gm_record *begun)
{
    if (result == 0)
        gm_pool_forget(GM_WORD(pool), begun->aux);
    else if (begun->size)
        gm_driver_pool_current(call, 0, GM_WORD(pool), begun->device);
}

/* CUmemPool_attribute: 1 to 3 (reuse rules) are ints, 4 to 8 (threshold, high-water marks) are 64
 * bits wide; of later ones only their name is told. */
static uint64_t attribute_value(int attribute, const void *value)
{
    if (attribute >= 1 && attribute <= 3)
        return (uint64_t)(unsigned)*(const int *)value;
    return attribute >= 4 && attribute <= 8 ? *(const uint64_t *)value : 0;
}

void gm_driver_pool_set(struct gm_call *call, int result, CUmemoryPool pool, int attribute,
                        const void *value)
{
    if (result != 0 || !value)
        return;
    struct gm_record record = {
        .type = GM_EVENT_POOL_SET,
        .address = GM_WORD(pool),
        .aux = attribute_value(attribute, value),
        .extra = (uint32_t)attribute,
        .device = (int8_t)gm_pool_device(GM_WORD(pool)),
    };
    gm_call_record(call, &record, NULL);
}
