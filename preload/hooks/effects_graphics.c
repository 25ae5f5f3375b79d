/*
 * See effects.h: memory of the graphics driver, lent while a resource is mapped.
 *
 * It is counted when the program takes the pointer of a mapped resource, once however often it
 * asks, and given back when the resource is unmapped. The end is recorded after the call, not
 * before it: one call can unmap many resources, and an address of the graphics driver is not given
 * to another thread's cuMemAlloc.
 */
#include "base/handles.h"
#include "hooks/effects.h"

GM_HANDLES(mapped, 1024); /* resource -> the pointer taken */

void gm_driver_graphics_pointer(struct gm_call *call, int result, CUgraphicsResource resource,
                                uint64_t address, uint64_t size)
{
    struct gm_record record = {
        .type = GM_EVENT_ALLOC,
        .kind = GM_KIND_EXTERNAL,
        .address = address,
        .size = size,
        .aux = GM_WORD(resource),
        .device = -1,
    };
    if (result != 0 || !address || gm_handles_get(&mapped, GM_WORD(resource)) == address)
        return;
    if (gm_handles_set(&mapped, GM_WORD(resource), address))
        gm_call_record(call, &record, NULL);
}

void gm_driver_graphics_unmap(struct gm_call *call, int result, unsigned count,
                              const CUgraphicsResource *resources)
{
    if (result != 0)
        return;
    for (unsigned i = 0; resources && i < count; i++) {
        struct gm_record record = {.type = GM_EVENT_FREE,
                                   .kind = GM_KIND_EXTERNAL,
                                   .address = gm_handles_take(&mapped, GM_WORD(resources[i])),
                                   .device = -1};
        if (record.address)
            gm_call_record(call, &record, NULL);
    }
}

void gm_graphics_forget(void)
{
    gm_handles_clear(&mapped);
}
