/* See effects.h: physical memory and its mappings. */
#include "hooks/effects.h"

void gm_driver_vmm_create(struct gm_call *call, int result, uint64_t handle, uint64_t size,
                          const CUmemAllocationProp *properties)
{
    int device = properties ? gm_location_device(&properties->location) : -1;
    bool host = !properties || gm_location_is_host(&properties->location);
    struct gm_record record = {
        .type = result == 0 ? GM_EVENT_VMM_CREATE : GM_EVENT_ALLOC_FAILED,
        .kind = host ? GM_KIND_HOST_VMM : GM_KIND_VMM,
        .address = handle,
        .size = size,
        .extra = result == 0 ? gm_call_slow_ns(call) : (uint32_t)result,
        .device = (int8_t)device,
    };
    gm_call_record(call, &record, NULL);
}

void gm_driver_vmm_import(struct gm_call *call, int result, uint64_t handle)
{
    if (result == 0)
        gm_effect_life(call, result, GM_EVENT_VMM_IMPORT, handle, 0, 0);
    else
        gm_effect_alloc(call, result, GM_KIND_EXTERNAL, 0, 0, 0);
}

void gm_driver_vmm_map(struct gm_call *call, int result, uint64_t address, uint64_t size,
                       uint64_t offset, uint64_t handle)
{
    struct gm_record record = {.type = GM_EVENT_VMM_MAP,
                               .address = address,
                               .size = size,
                               .aux = handle,
                               .extra = gm_call_slow_ns(call),
                               .device = -1};
    struct gm_record detail = {.address = offset};
    if (result == 0)
        gm_call_record(call, &record, &detail);
}

/* The place is told too: it alone tells apart what is bound when one of several is unbound. */
void gm_driver_multicast_bind(struct gm_call *call, int result, uint64_t handle, int device,
                              uint64_t offset, uint64_t size, uint64_t memory)
{
    struct gm_record record = {.type = GM_EVENT_MULTICAST_BIND,
                               .address = handle,
                               .size = size,
                               .aux = memory,
                               .device = (int8_t)device};
    struct gm_record detail = {.address = offset};
    if (result == 0)
        gm_call_record(call, &record, &detail);
}
