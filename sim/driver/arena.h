/*
 * An arena: a span of addresses backed by a memory file, handed out first fit. Taking fails when no
 * hole is large enough, however much is free in total: fragmentation is real. Giving memory back
 * drops the contents of its whole pages, so that the process stays small. The driver lock protects
 * every use.
 */
#ifndef GPUMEM_SIM_ARENA_H
#define GPUMEM_SIM_ARENA_H

#include "range.h"

#include <stdbool.h>

#define GPUSIM_ARENA_ALIGNMENT                                                                     \
    512u /* every start and size; what cuMemAlloc promises at least is 256 */

struct gpusim_arena {
    uint64_t base; /* address; 0: not opened */
    bool from_top; /* hands out the highest addresses first, as drivers do on Linux */
    uint64_t size;
    uint64_t free; /* bytes in all holes */
    int fd;
    struct gpusim_ranges holes;
};

/* Maps a new memory file of that size at a 2 MiB boundary. False when the system refuses. */
bool gpusim_arena_open(struct gpusim_arena *arena, const char *name, uint64_t size);

/* The same over a file that exists, such as one imported: takes the descriptor over. */
bool gpusim_arena_open_fd(struct gpusim_arena *arena, int fd, uint64_t size);

/* Unmaps and closes. Addresses that were handed out become invalid. */
void gpusim_arena_close(struct gpusim_arena *arena);

/* The address of size bytes (a multiple of the arena's alignment), or 0. */
uint64_t gpusim_arena_take(struct gpusim_arena *arena, uint64_t size, uint64_t alignment);
void gpusim_arena_give(struct gpusim_arena *arena, uint64_t address, uint64_t size);

/* Drops the contents of the whole pages inside a span. */
void gpusim_arena_discard(uint64_t address, uint64_t size);

/* Whether a descriptor is a memory file named by this prefix and a number: the device. Descriptors
 * that cross processes carry what the importer must know in their names. */
bool gpusim_memory_file_number(int fd, const char *prefix, int *number);

static inline bool gpusim_arena_contains(const struct gpusim_arena *arena, uint64_t address)
{
    return arena->base && address - arena->base < arena->size;
}

#endif
