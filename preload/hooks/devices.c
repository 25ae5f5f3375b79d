/*
 * What the hooks learn of devices, and on which device pools and streams are. No CUDA call is made
 * to find out; "unknown" is a legal answer.
 */
#include "base/handles.h"
#include "base/platform.h"
#include "hooks/effects.h"
#include "writer/tables.h"

/* Which note it is << 40 | kind of its memory << 32 | device + 1: when a handle is used again, its note differs. */
GM_HANDLES(pools, 1024);
static _Atomic uint64_t pool_notes;
/* Each value is the device + 1. */
GM_HANDLES(streams, 4096);

static _Atomic uint64_t current_pool[GM_DEVICES_MAX];
static _Atomic uint64_t told_memory, told_name; /* one bit per device */

/* One record per device and fact: programs ask again and again. */
static bool first_time(_Atomic uint64_t *told, int device)
{
    const uint64_t bit = gm_device_is_followed(device) ? 1ull << device : 0;
    return bit && !(atomic_fetch_or_explicit(told, bit, memory_order_relaxed) & bit);
}

void gm_driver_device_memory(struct gm_call *call, int result, int device, uint64_t bytes)
{
    struct gm_record record = {.type = GM_EVENT_DEVICE, .size = bytes, .device = (int8_t)device};
    if (result == 0 && bytes && first_time(&told_memory, device))
        gm_call_record(call, &record, NULL);
}

void gm_driver_device_name(struct gm_call *call, int result, int device, const char *name, int size)
{
    if (result != 0 || !name || size <= 0 || !first_time(&told_name, device))
        return;
    const int error = errno;
    size_t length = 0;
    while (length < (size_t)size && name[length])
        length++;
    struct gm_record record = {
        .type = GM_EVENT_DEVICE, .aux = gm_string_intern(name, length), .device = (int8_t)device};
    errno = error;
    gm_call_record(call, &record, NULL);
}

int gm_location_device(const CUmemLocation *location)
{
    switch (location ? location->type : 0) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return location->id;
    case CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN:
        return *(const unsigned char *)&location->id;
    default:
        return -1;
    }
}

bool gm_location_is_host(const CUmemLocation *location)
{
    return location->type == CU_MEM_LOCATION_TYPE_HOST ||
           location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
           location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

/* cuMemPoolCreate: "To create a memory pool for HOST memory ... CU_MEM_LOCATION_TYPE_HOST". Of a managed pool the
 * location is where its pages are preferred. */
enum gm_kind gm_pool_kind_of(const CUmemLocation *location, CUmemAllocationType type)
{
    if (type == CU_MEM_ALLOCATION_TYPE_MANAGED)
        return GM_KIND_MANAGED;
    return location && gm_location_is_host(location) ? GM_KIND_PINNED : GM_KIND_DEVICE;
}

/* ---- pools ----------------------------------------------------------------------------------- */

int gm_pool_device(uint64_t pool)
{
    return (int)(uint32_t)gm_handles_get(&pools, pool) - 1;
}

enum gm_kind gm_pool_kind(uint64_t pool)
{
    const uint64_t noted = pool ? gm_handles_get(&pools, pool) : 0;
    return noted ? (enum gm_kind)(noted >> 32 & 0xff) : GM_KIND_DEVICE;
}

void gm_pool_note(uint64_t pool, enum gm_kind kind, int device)
{
    const uint64_t number = atomic_fetch_add_explicit(&pool_notes, 1, memory_order_relaxed);
    gm_handles_set(&pools, pool, number << 40 | (uint64_t)kind << 32 | (uint32_t)(device + 1));
}

uint64_t gm_pool_noted(uint64_t pool)
{
    return gm_handles_get(&pools, pool);
}

void gm_pool_forget(uint64_t pool, uint64_t noted)
{
    gm_handles_take_if(&pools, pool, noted);
}

bool gm_pool_not_current(uint64_t pool, int device)
{
    return gm_device_is_followed(device) &&
           atomic_compare_exchange_strong(&current_pool[device], &pool, 0);
}

uint64_t gm_pool_of(int device)
{
    return gm_device_is_followed(device)
               ? atomic_load_explicit(&current_pool[device], memory_order_relaxed)
               : 0;
}

void gm_driver_pool_of_device(struct gm_call *call, int result, uint64_t pool, int device)
{
    (void)call;
    if (result == 0 && pool)
        gm_pool_note(pool, GM_KIND_DEVICE, device);
}

void gm_driver_pool_of_location(struct gm_call *call, int result, uint64_t pool,
                                const CUmemLocation *location, CUmemAllocationType type)
{
    (void)call;
    if (result == 0 && pool)
        gm_pool_note(pool, gm_pool_kind_of(location, type), gm_location_device(location));
}

void gm_driver_pool_current(struct gm_call *call, int result, uint64_t pool, int device)
{
    gm_driver_pool_of_device(call, result, pool, device);
    if (result == 0 && gm_device_is_followed(device))
        atomic_store_explicit(&current_pool[device], pool, memory_order_relaxed);
}

/* A location has a current pool for each type of memory; cuMemAllocAsync takes from the pinned one of its device. */
void gm_driver_pool_current_of_location(struct gm_call *call, int result, uint64_t pool,
                                        const CUmemLocation *location, CUmemAllocationType type)
{
    if (gm_pool_kind_of(location, type) == GM_KIND_DEVICE)
        gm_driver_pool_current(call, result, pool, gm_location_device(location));
    else
        gm_driver_pool_of_location(call, result, pool, location, type);
}

/* ---- streams --------------------------------------------------------------------------------- */

int gm_stream_device(uint64_t stream)
{
    return (int)gm_handles_get(&streams, stream) - 1;
}

void gm_driver_stream_create(struct gm_call *call, int result, uint64_t stream)
{
    int device = gm_context_current_device(call->api);
    if (result == 0 && stream && device >= 0)
        gm_handles_set(&streams, stream, (uint64_t)device + 1);
}

void gm_driver_green_stream_create(struct gm_call *call, int result, uint64_t stream,
                                   CUgreenCtx context)
{
    int device = gm_green_device(context);
    (void)call;
    if (result == 0 && stream && device >= 0)
        gm_handles_set(&streams, stream, (uint64_t)device + 1);
}

/* Its handle may soon be that of another stream. What it was is for gm_driver_stream_destroyed. */
void gm_before_stream_destroy(struct gm_call *call, struct gm_record *begun, uint64_t stream)
{
    (void)call;
    begun->size = gm_handles_take(&streams, stream);
    begun->aux = gm_capture_stream_gone(stream);
}

void gm_driver_stream_destroyed(struct gm_call *call, int result, uint64_t stream,
                                const struct gm_record *begun)
{
    (void)call;
    if (result == 0)
        return;
    if (begun->size)
        gm_handles_set(&streams, stream, begun->size);
    gm_capture_stream_stays(stream, begun->aux);
}

void gm_devices_forget(void)
{
    gm_handles_clear(&pools);
    gm_handles_clear(&streams);
    for (int device = 0; device < GM_DEVICES_MAX; device++)
        atomic_store_explicit(&current_pool[device], 0, memory_order_relaxed);
    atomic_store_explicit(&told_memory, 0, memory_order_relaxed);
    atomic_store_explicit(&told_name, 0, memory_order_relaxed);
}
