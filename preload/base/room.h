/*
 * A large table that only some processes want: mapped when the first one does, and then kept, also
 * by its children, as a static one would be. Static ones count in every process that is preloaded,
 * whether it calls CUDA or not: where memory is locked, or limited by its addresses.
 */
#ifndef GPUMEM_PRELOAD_BASE_ROOM_H
#define GPUMEM_PRELOAD_BASE_ROOM_H

#include "base/platform.h"
#include <sys/mman.h>

/*
 * Sees that `*table`, a pointer, leads to that many elements, at first zeros. Pages that nobody
 * touches take no memory. False: there are no addresses for it; nothing is changed. Any thread.
 */
#define GM_ROOM(table, count)                                                                      \
    gm_room_map((void *_Atomic *)(void *)(table), (count) * sizeof(**(table)))

static inline bool gm_room_map(void *_Atomic *table, size_t size)
{
    void *none = NULL;
    if (atomic_load_explicit(table, memory_order_acquire))
        return true;
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
    if (at == MAP_FAILED)
        return false;
    madvise(at, size, MADV_NOHUGEPAGE);
    if (!atomic_compare_exchange_strong(table, &none, at))
        munmap(at, size); /* another thread was faster */
    return true;
}

#endif
