/*
 * Arenas: see arena.h. The holes live in a range set, which merges neighbours when memory comes
 * back.
 */
#include "arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE (2ull << 20)
#define PAGE 4096ull
/* Below this a freed span keeps its pages: a system call per small free would cost more than it
 * saves. */
#define DISCARD_FROM (64ull << 10)

static bool map_file(struct gpusim_arena *arena)
{
    /* Reserve more than needed, then map at the first boundary and give the rest back. */
    uint64_t span = arena->size + HUGE_PAGE;
    void *reserved =
        mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
        return false;

    uint64_t start = (uint64_t)(uintptr_t)reserved;
    uint64_t base = gpusim_align_up(start, HUGE_PAGE);
    void *mapped = mmap((void *)(uintptr_t)base, arena->size, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED | MAP_NORESERVE, arena->fd, 0);
    if (mapped == MAP_FAILED) {
        munmap(reserved, span);
        return false;
    }
    if (base > start)
        munmap(reserved, base - start);
    uint64_t end = base + gpusim_align_up(arena->size, PAGE);
    if (start + span > end)
        munmap((void *)(uintptr_t)end, start + span - end);
    arena->base = base;
    return true;
}

bool gpusim_arena_open_fd(struct gpusim_arena *arena, int fd, uint64_t size)
{
    struct gpusim_range *hole = calloc(1, sizeof(*hole));

    *arena = (struct gpusim_arena){.size = size, .free = size, .fd = fd};
    if (!hole || !map_file(arena)) {
        free(hole);
        close(fd);
        *arena = (struct gpusim_arena){.fd = -1};
        return false;
    }
    hole->start = arena->base;
    hole->size = size;
    gpusim_ranges_insert(&arena->holes, hole);
    return true;
}

bool gpusim_arena_open(struct gpusim_arena *arena, const char *name, uint64_t size)
{
    int fd = memfd_create(name, MFD_CLOEXEC);

    size = gpusim_align_up(size, HUGE_PAGE);
    if (fd < 0)
        return false;
    if (ftruncate(fd, (off_t)size) != 0) {
        close(fd);
        return false;
    }
    return gpusim_arena_open_fd(arena, fd, size);
}

void gpusim_arena_close(struct gpusim_arena *arena)
{
    while (arena->holes.root) {
        struct gpusim_range *hole = arena->holes.root;

        gpusim_ranges_remove(&arena->holes, hole);
        free(hole);
    }
    if (arena->base) {
        munmap((void *)(uintptr_t)arena->base, arena->size);
        close(arena->fd);
    }
    *arena = (struct gpusim_arena){.fd = -1};
}

static void add_hole(struct gpusim_arena *arena, uint64_t start, uint64_t size)
{
    struct gpusim_range *hole = calloc(1, sizeof(*hole));

    if (!hole)
        return; /* out of host memory: the span is lost to this process, nothing else breaks */
    hole->start = start;
    hole->size = size;
    gpusim_ranges_insert(&arena->holes, hole);
}

uint64_t gpusim_arena_take(struct gpusim_arena *arena, uint64_t size, uint64_t alignment)
{
    struct gpusim_range *hole = arena->from_top
                                    ? gpusim_ranges_fit_highest(&arena->holes, size, alignment)
                                    : gpusim_ranges_fit(&arena->holes, size, alignment);
    if (!hole)
        return 0;

    uint64_t start = hole->start, end = hole->start + hole->size;
    uint64_t address = arena->from_top ? gpusim_align_down(end - size, alignment)
                                       : gpusim_align_up(start, alignment);

    gpusim_ranges_remove(&arena->holes, hole);
    free(hole);
    if (address > start)
        add_hole(arena, start, address - start);
    if (end > address + size)
        add_hole(arena, address + size, end - address - size);
    arena->free -= size;
    return address;
}

void gpusim_arena_give(struct gpusim_arena *arena, uint64_t address, uint64_t size)
{
    uint64_t start = address, end = address + size;
    struct gpusim_range *below = address ? gpusim_ranges_floor(&arena->holes, address - 1) : NULL;
    struct gpusim_range *above = gpusim_ranges_ceiling(&arena->holes, address);

    if (size >= DISCARD_FROM)
        gpusim_arena_discard(address, size);
    if (below && below->start + below->size == start) {
        start = below->start;
        gpusim_ranges_remove(&arena->holes, below);
        free(below);
    }
    if (above && above->start == end) {
        end = above->start + above->size;
        gpusim_ranges_remove(&arena->holes, above);
        free(above);
    }
    add_hole(arena, start, end - start);
    arena->free += size;
}

void gpusim_arena_discard(uint64_t address, uint64_t size)
{
    uint64_t first = gpusim_align_up(address, PAGE);
    uint64_t last = gpusim_align_down(address + size, PAGE);

    if (last > first)
        madvise((void *)(uintptr_t)first, last - first, MADV_REMOVE);
}

bool gpusim_memory_file_number(int fd, const char *prefix, int *number)
{
    char link[64], target[128], expected[64];
    char *end;

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, target, sizeof(target) - 1);
    if (length < 0)
        return false;
    target[length] = '\0';
    snprintf(expected, sizeof(expected), "/memfd:%s", prefix);
    if (strncmp(target, expected, strlen(expected)) != 0)
        return false;
    *number = (int)strtol(target + strlen(expected), &end, 10);
    return end != target + strlen(expected);
}
