/*
 * Memory of the simulated driver: the table of everything that has an address, and pools.
 */
#ifndef GPUMEM_SIM_MEMORY_H
#define GPUMEM_SIM_MEMORY_H

#include "driver.h"

enum gpusim_origin {
    GPUSIM_FROM_LINEAR,
    GPUSIM_FROM_MANAGED,
    GPUSIM_FROM_POOL,
    GPUSIM_FROM_GRAPH,
    GPUSIM_FROM_HOST_ALLOC,
    GPUSIM_FROM_HOST_REGISTER,
    GPUSIM_FROM_IPC,
    GPUSIM_FROM_POOL_IMPORT,
    GPUSIM_FROM_EXTERNAL,
    GPUSIM_FROM_MODULE,  /* a variable of a module: in no total */
    GPUSIM_FROM_MAPPING, /* a VMM mapping: only its physical memory counts */
};

struct gpusim_graph_memory;
struct gpusim_physical;

/* The advice about managed memory, for the whole allocation. */
struct gpusim_advice {
    bool read_mostly;
    CUmemLocation preferred, prefetched;
    bool has_preferred, has_prefetched;
    uint32_t accessed_by;
    bool accessed_by_host;
};

struct gpusim_allocation {
    struct gpusim_range range; /* address and bytes usable; first member */
    enum gpusim_origin origin;
    uint64_t counted; /* bytes in the totals */
    uint64_t id;
    struct gpusim_device *device;
    struct gpusim_context *context; /* freed with it; NULL: outlives contexts */
    unsigned int flags;
    unsigned int opens;               /* IPC: how often it was opened */
    uint64_t exporter, exporter_id;   /* IPC: the process and its number of the allocation */
    int sync_memops;                  /* CU_POINTER_ATTRIBUTE_SYNC_MEMOPS */
    struct gpusim_pool *pool;         /* pool memory and imported pool memory */
    struct gpusim_graph_memory *node; /* graph memory */
    struct gpusim_physical *physical; /* mappings */
    uint64_t physical_offset;
    uint32_t device_access; /* mappings: devices that may access, and whether the host may */
    bool host_access;
    uint64_t mapped_at, mapped_size; /* pages to unmap: IPC and external memory */
    struct gpusim_advice advice;     /* managed memory */
};

/* ---- the table (allocation.c) ---------------------------------------------------------------- */

/* A new entry of that origin; NULL when the host is out of memory. */
struct gpusim_allocation *gpusim_allocation_add(enum gpusim_origin origin, uint64_t address,
                                                uint64_t size, struct gpusim_device *device,
                                                struct gpusim_context *context);
/* Takes an entry out of the table and releases it; gives no memory back. */
void gpusim_allocation_drop(struct gpusim_allocation *allocation);
/* The allocation that contains the address, or that starts there; NULL when there is none. */
struct gpusim_allocation *gpusim_allocation_at(uint64_t address);
struct gpusim_allocation *gpusim_allocation_from(uint64_t address);
/* The first one that starts at the address or above. */
struct gpusim_allocation *gpusim_allocation_next(uint64_t address);
bool gpusim_allocation_overlaps(uint64_t address, uint64_t size);
/* Ends an allocation's life: counts the free and gives its memory back. */
void gpusim_allocation_free(struct gpusim_allocation *allocation, bool implicit);
/* Counts the birth of memory of a pool or of a graph's node. */
void gpusim_allocation_count(const struct gpusim_allocation *allocation);
/* Ends the lives of all memory that ends with a context. */
void gpusim_allocations_of_context_free(struct gpusim_context *context);
/* Whether size bytes from the address can be read and written. Device memory must be ours; other
 * addresses count as pageable host memory if the caller allows that. */
CUresult gpusim_check_access(uint64_t address, uint64_t size, bool pageable_allowed);

/* ---- linear memory (linear.c) ---------------------------------------------------------------- */

/* Storage on a device in no table and no total: 0 when there is no room. */
uint64_t gpusim_linear_take(struct gpusim_device *device, uint64_t size);
void gpusim_linear_give(struct gpusim_device *device, uint64_t address, uint64_t size);
/* The arenas of managed and of pinned host memory. */
void gpusim_managed_give(uint64_t address, uint64_t size);
uint64_t gpusim_managed_take(uint64_t size);
void gpusim_host_give(uint64_t address, uint64_t size);
/* Whether cuMemFree and cuMemFreeAsync may end the allocation's life. */
bool gpusim_is_freeable(const struct gpusim_allocation *allocation);
/*
 * Ends the life that starts at the address, or returns why not. Failures are injected into calls
 * only, because the failure of a graph's node would show in no result.
 */
CUresult gpusim_free_address(CUdeviceptr pointer, bool by_call);
CUresult gpusim_noop_alloc(CUdeviceptr *pointer);

/* ---- pools (pool.c) -------------------------------------------------------------------------- */

struct gpusim_pool {
    struct gpusim_object base; /* no handle for a graph pool */
    struct gpusim_device *device;
    struct gpusim_arena arena; /* opened at the first use */
    uint64_t arena_size;
    uint32_t *granule_uses;     /* allocations in each 2 MiB granule */
    uint8_t *granule_committed; /* whether the granule is charged to the device */
    uint64_t reserved, reserved_high, used, used_high;
    uint64_t threshold;
    uint64_t live;    /* allocations */
    uint64_t maximum; /* bytes that may be reserved; 0: the device's capacity */
    int reuse[3];
    uint32_t peers; /* devices with access besides its own */
    bool is_default, imported, destroyed;
    CUmemAllocationHandleType handle_types;
    struct gpusim_pool *next;
};

/* The place of pools at a location and of a type of memory, or why there is none (pool_place.c). */
CUresult gpusim_pool_place(const CUmemLocation *location, CUmemAllocationType type,
                           struct gpusim_device **place);
CUmemLocation gpusim_pool_location(const struct gpusim_device *place);
void gpusim_pool_places_release(void);
/* Whether memory is a device's, the host's or managed. */
enum gpusim_place gpusim_allocation_place(const struct gpusim_allocation *allocation);
struct gpusim_pool *gpusim_pool_new(struct gpusim_device *device, uint64_t arena_size);
struct gpusim_pool *gpusim_default_pool(struct gpusim_device *device);
struct gpusim_pool *gpusim_graph_pool(struct gpusim_device *device);
/* An address range of the pool, without storage: 0 when it has no such hole. */
uint64_t gpusim_pool_take_address(struct gpusim_pool *pool, uint64_t size);
/* Storage for a range; false when the device does not have enough. */
bool gpusim_pool_commit(struct gpusim_pool *pool, uint64_t address, uint64_t size);
void gpusim_pool_uncommit(struct gpusim_pool *pool, uint64_t address, uint64_t size);
void gpusim_pool_free(struct gpusim_pool *pool, uint64_t address, uint64_t size);
void gpusim_pool_trim(struct gpusim_pool *pool, uint64_t keep);
void gpusim_pools_above_threshold_trim(struct gpusim_device *device);
/* A synchronisation calls this: pools keep no more than their thresholds. */
void gpusim_pools_release(struct gpusim_device *device);
/* A destroyed pool ends with its last allocation. */
void gpusim_pool_drop_if_unused(struct gpusim_pool *pool);

/* Maps part of a file and returns where the pages begin, so that they can be unmapped. 0 on
 * failure. */
uint64_t gpusim_map_external(int fd, uint64_t offset, uint64_t size, uint64_t *pages,
                             uint64_t *pages_size);
void gpusim_unmap_external(uint64_t address, uint64_t size);

/* Whether an address is memory of a device that only copies, sets and kernels write. */
bool gpusim_is_on_device(uint64_t address);

/* ---- others that free by address ------------------------------------------------------------- */

void gpusim_graph_memory_freed(struct gpusim_allocation *allocation);

#endif
