/*
 * Storage of memory pools. A pool reserves addresses for everything that it may hold and charges
 * the device for the 2 MiB granules that allocations touch. A granule without allocations stays
 * charged until a trim or a synchronisation finds the pool above its release threshold, or another
 * allocation needs the room.
 */
#include "memory.h"
#include "stream.h"

#include <stdio.h>
#include <stdlib.h>

struct gpusim_pool *gpusim_pool_new(struct gpusim_device *device, uint64_t arena_size)
{
    struct gpusim_pool *pool = gpusim_object_new(sizeof(*pool), GPUSIM_TYPE_POOL, NULL);

    if (!pool)
        return NULL;
    pool->device = device;
    pool->arena_size = gpusim_align_up(arena_size, GPUSIM_GRANULARITY);
    pool->arena.fd = -1;
    for (int i = 0; i < 3; i++)
        pool->reuse[i] = 1;
    pool->next = device->pools;
    device->pools = pool;
    return pool;
}

struct gpusim_pool *gpusim_default_pool(struct gpusim_device *device)
{
    if (!device->default_pool) {
        device->default_pool = gpusim_pool_new(device, device->capacity);
        if (device->default_pool)
            device->default_pool->is_default = true;
    }
    return device->default_pool;
}

struct gpusim_pool *gpusim_graph_pool(struct gpusim_device *device)
{
    /* Nodes keep their addresses while they have no storage, so there are more addresses. */
    const uint64_t address_factor = 8;

    if (!device->graph_pool) {
        device->graph_pool = gpusim_pool_new(device, device->capacity * address_factor);
        if (device->graph_pool)
            device->graph_pool->threshold = UINT64_MAX;
    }
    return device->graph_pool;
}

static bool open_arena(struct gpusim_pool *pool)
{
    uint64_t granules = pool->arena_size / GPUSIM_GRANULARITY;

    if (!pool->arena.base) {
        char name[32]; /* the number gives an importer the device */

        snprintf(name, sizeof(name), "gpusim-pool-%d", pool->device->ordinal);
        if (!gpusim_arena_open(&pool->arena, name, pool->arena_size))
            return false;
    }
    if (!pool->granule_uses)
        pool->granule_uses = calloc(granules, sizeof(*pool->granule_uses));
    if (!pool->granule_committed)
        pool->granule_committed = calloc(granules, sizeof(*pool->granule_committed));
    return pool->granule_uses && pool->granule_committed;
}

static uint64_t first_granule(const struct gpusim_pool *pool, uint64_t address)
{
    return (address - pool->arena.base) / GPUSIM_GRANULARITY;
}

static uint64_t last_granule(const struct gpusim_pool *pool, uint64_t address, uint64_t size)
{
    return (address - pool->arena.base + size - 1) / GPUSIM_GRANULARITY;
}

static void release_granule(struct gpusim_pool *pool, uint64_t granule)
{
    pool->granule_committed[granule] = 0;
    pool->reserved -= GPUSIM_GRANULARITY;
    gpusim_device_refund(pool->device, GPUSIM_GRANULARITY);
    gpusim_arena_discard(pool->arena.base + granule * GPUSIM_GRANULARITY, GPUSIM_GRANULARITY);
}

uint64_t gpusim_pool_take_address(struct gpusim_pool *pool, uint64_t size)
{
    if (size > pool->arena_size || !open_arena(pool))
        return 0;
    return gpusim_arena_take(&pool->arena, gpusim_align_up(size, GPUSIM_ARENA_ALIGNMENT),
                             GPUSIM_ARENA_ALIGNMENT);
}

static bool commit_granule(struct gpusim_pool *pool, uint64_t granule)
{
    uint64_t limit = pool->maximum ? pool->maximum : UINT64_MAX;

    if (pool->granule_committed[granule])
        return true;
    if (pool->reserved + GPUSIM_GRANULARITY > limit)
        gpusim_pool_trim(pool, 0);
    if (pool->reserved + GPUSIM_GRANULARITY > limit ||
        !gpusim_device_charge(pool->device, GPUSIM_GRANULARITY))
        return false;
    pool->granule_committed[granule] = 1;
    pool->reserved += GPUSIM_GRANULARITY;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    return true;
}

bool gpusim_pool_commit(struct gpusim_pool *pool, uint64_t address, uint64_t size)
{
    uint64_t first = first_granule(pool, address), last = last_granule(pool, address, size);

    /* All are marked as used first, so that charging one cannot trim another. */
    for (uint64_t granule = first; granule <= last; granule++)
        pool->granule_uses[granule]++;
    for (uint64_t granule = first; granule <= last; granule++) {
        if (!commit_granule(pool, granule)) {
            for (granule = first; granule <= last; granule++)
                pool->granule_uses[granule]--;
            return false;
        }
    }
    pool->used += gpusim_align_up(size, GPUSIM_ARENA_ALIGNMENT);
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    pool->live++;
    return true;
}

void gpusim_pool_uncommit(struct gpusim_pool *pool, uint64_t address, uint64_t size)
{
    uint64_t first = first_granule(pool, address), last = last_granule(pool, address, size);

    for (uint64_t granule = first; granule <= last; granule++)
        pool->granule_uses[granule]--;
    pool->used -= gpusim_align_up(size, GPUSIM_ARENA_ALIGNMENT);
    pool->live--;
}

void gpusim_pool_free(struct gpusim_pool *pool, uint64_t address, uint64_t size)
{
    gpusim_pool_uncommit(pool, address, size);
    gpusim_arena_give(&pool->arena, address, gpusim_align_up(size, GPUSIM_ARENA_ALIGNMENT));
    gpusim_pool_drop_if_unused(pool);
}

void gpusim_pool_trim(struct gpusim_pool *pool, uint64_t keep)
{
    if (!pool->granule_committed || pool->imported)
        return;
    for (uint64_t granule = pool->arena_size / GPUSIM_GRANULARITY;
         granule-- > 0 && pool->reserved > keep;) {
        if (pool->granule_committed[granule] && !pool->granule_uses[granule])
            release_granule(pool, granule);
    }
}

void gpusim_pools_above_threshold_trim(struct gpusim_device *device)
{
    for (struct gpusim_pool *pool = device->pools; pool; pool = pool->next) {
        if (pool->reserved > pool->threshold)
            gpusim_pool_trim(pool, pool->threshold);
    }
}

void gpusim_pools_release(struct gpusim_device *device)
{
    gpusim_waits++;
    gpusim_pools_above_threshold_trim(device);
    gpusim_pool_places_release();
}

void gpusim_pool_drop_if_unused(struct gpusim_pool *pool)
{
    struct gpusim_pool **link = &pool->device->pools;

    if (!pool->destroyed || pool->live)
        return;
    gpusim_pool_trim(pool, 0);
    while (*link != pool)
        link = &(*link)->next;
    *link = pool->next;
    gpusim_arena_close(&pool->arena);
    free(pool->granule_uses);
    free(pool->granule_committed);
    gpusim_object_delete(pool);
}
