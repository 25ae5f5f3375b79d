/* See handles.h. Open addressing: a handle stands at most PROBES slots behind its place, in one of
 * the parts. */
#include "base/handles.h"
#include "base/count.h"
#include "base/lock.h"
#include <stddef.h>
#include <sys/mman.h>

enum { PROBES = 64 };

/* Keys of slots; no handle has these values. */
#define REMOVED 1u         /* to use again */
#define CLAIMED UINT64_MAX /* its value is being written or read */

static bool is_handle(uint64_t key)
{
    return key > REMOVED && key != CLAIMED;
}

static struct gm_lock lock = GM_LOCK(GM_RANK_ALONE);

static void take_lock(void)
{
    const int error = errno;
    gm_lock_take(&lock);
    errno = error;
}

static void release_lock(void)
{
    const int error = errno;
    gm_lock_release(&lock);
    errno = error;
}

void gm_handles_after_fork(void)
{
    gm_lock_forget(&lock);
}

static struct gm_handle *slot_at(const struct gm_handles *handles, uint64_t key, uint32_t probe)
{
    const uint64_t hash = key * 0x9e3779b97f4a7c15u;
    return &handles->slots[((uint32_t)(hash >> 32) + probe) & (handles->size - 1)];
}

static const struct gm_handles *next_part(const struct gm_handles *part)
{
    return atomic_load_explicit(part->more, memory_order_acquire);
}

static struct gm_handle *find_in_part(const struct gm_handles *part, uint64_t key)
{
    for (uint32_t probe = 0; probe < PROBES && probe < part->size; probe++) {
        struct gm_handle *slot = slot_at(part, key, probe);
        const uint64_t found = atomic_load_explicit(&slot->key, memory_order_acquire);
        if (found == key)
            return slot;
        if (found == 0)
            break;
    }
    return NULL;
}

static struct gm_handle *find_handle(const struct gm_handles *handles, uint64_t key)
{
    struct gm_handle *slot = NULL;
    for (; handles && !slot; handles = next_part(handles))
        slot = find_in_part(handles, key);
    return slot;
}

uint64_t gm_handles_get(const struct gm_handles *handles, uint64_t key)
{
    const struct gm_handle *slot = is_handle(key) ? find_handle(handles, key) : NULL;
    if (!slot)
        return 0;
    const uint64_t value = atomic_load_explicit(&slot->value, memory_order_acquire);
    /* The slot may have gone to another handle between the two looks. */
    return atomic_load_explicit(&slot->key, memory_order_relaxed) == key ? value : 0;
}

/* What is mapped for one more part. */
struct part {
    struct gm_handles handles;
    _Atomic(const struct gm_handles *) more;
    struct gm_handle slots[];
};

/* Maps a part behind the last one, unless another thread has; NULL: there cannot be one. */
static const struct gm_handles *grow_handles(const struct gm_handles *last)
{
    const uint32_t size = last->size * 16;
    const size_t bytes = sizeof(struct part) + size * sizeof(struct gm_handle);
    const struct gm_handles *none = NULL;
    if (size > GM_HANDLES_MAX)
        return NULL;
    struct part *part = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (part == MAP_FAILED)
        return NULL;
    part->handles = (struct gm_handles){part->slots, size, &part->more};
    if (atomic_compare_exchange_strong_explicit(last->more, &none, &part->handles,
                                                memory_order_release, memory_order_acquire))
        return &part->handles;
    munmap(part, bytes);
    return none;
}

/* Takes a slot whose key is still this one for itself, until it is given a key. */
static bool claim_slot(struct gm_handle *slot, uint64_t key)
{
    return atomic_compare_exchange_strong_explicit(&slot->key, &key, CLAIMED, memory_order_acquire,
                                                   memory_order_relaxed);
}

static struct gm_handle *claim_in(const struct gm_handles *part, uint64_t key)
{
    for (uint32_t probe = 0; probe < PROBES && probe < part->size; probe++) {
        struct gm_handle *slot = slot_at(part, key, probe);
        const uint64_t found = atomic_load_explicit(&slot->key, memory_order_relaxed);
        if (found <= REMOVED && claim_slot(slot, found))
            return slot;
    }
    return NULL;
}

/* A slot for `key`, which has none; NULL when there is no room. */
static struct gm_handle *claim_room(const struct gm_handles *handles, uint64_t key)
{
    struct gm_handle *room = NULL;
    while (!room && handles) {
        const struct gm_handles *next = next_part(handles);
        room = claim_in(handles, key);
        handles = next || room ? next : grow_handles(handles);
    }
    if (!room)
        gm_count(GM_COUNT_HANDLE_LIMIT, 1);
    return room;
}

/* Of a slot that was claimed, or whose key this is. Returns what is noted then. */
static uint64_t fill_slot(struct gm_handle *slot, uint64_t key, uint64_t value)
{
    if (!slot)
        return 0;
    atomic_store_explicit(&slot->value, value, memory_order_release);
    atomic_store_explicit(&slot->key, key, memory_order_release);
    return value;
}

static uint64_t put_handle(const struct gm_handles *handles, uint64_t key, uint64_t value,
                           bool replace)
{
    if (!is_handle(key))
        return 0;
    take_lock();
    struct gm_handle *slot = find_handle(handles, key);
    if (slot && !replace)
        value = atomic_load_explicit(&slot->value, memory_order_relaxed);
    else
        value = fill_slot(slot ? slot : claim_room(handles, key), key, value);
    release_lock();
    return value;
}

bool gm_handles_set(const struct gm_handles *handles, uint64_t key, uint64_t value)
{
    return put_handle(handles, key, value, true) != 0;
}

uint64_t gm_handles_add(const struct gm_handles *handles, uint64_t key, uint64_t value)
{
    return put_handle(handles, key, value, false);
}

/* Forgets `key` if `value`, or 0 for any, is noted for it, and returns what is. */
static uint64_t take_handle(const struct gm_handles *handles, uint64_t key, uint64_t value)
{
    uint64_t noted = 0;
    if (!is_handle(key) || !find_handle(handles, key)) /* of most handles nothing is noted */
        return 0;
    take_lock();
    struct gm_handle *slot = find_handle(handles, key);
    if (slot) {
        noted = atomic_load_explicit(&slot->value, memory_order_relaxed);
        if (value == 0 || value == noted)
            atomic_store_explicit(&slot->key, REMOVED, memory_order_release);
    }
    release_lock();
    return noted;
}

uint64_t gm_handles_take(const struct gm_handles *handles, uint64_t key)
{
    return take_handle(handles, key, 0);
}

void gm_handles_take_if(const struct gm_handles *handles, uint64_t key, uint64_t value)
{
    if (value != 0)
        take_handle(handles, key, value);
}

/* ---- without a lock --------------------------------------------------------------------------- */

bool gm_handles_begin(const struct gm_handles *handles, uint64_t key, uint64_t value)
{
    if (!is_handle(key))
        return false;
    struct gm_handle *slot = find_handle(handles, key); /* its end was not seen */
    if (!slot || !claim_slot(slot, key))
        slot = claim_room(handles, key);
    return fill_slot(slot, key, value) != 0;
}

uint64_t gm_handles_end(const struct gm_handles *handles, uint64_t key)
{
    struct gm_handle *slot = is_handle(key) ? find_handle(handles, key) : NULL;
    if (!slot || !claim_slot(slot, key))
        return 0;
    const uint64_t value = atomic_load_explicit(&slot->value, memory_order_relaxed);
    atomic_store_explicit(&slot->key, REMOVED, memory_order_release);
    return value;
}

/* ---- many at once ------------------------------------------------------------------------------- */

static void drop_in(const struct gm_handles *part, uint64_t value)
{
    for (uint32_t i = 0; i < part->size; i++) {
        struct gm_handle *slot = &part->slots[i];
        if (atomic_load_explicit(&slot->key, memory_order_relaxed) > REMOVED &&
            atomic_load_explicit(&slot->value, memory_order_relaxed) == value)
            atomic_store_explicit(&slot->key, REMOVED, memory_order_release);
    }
}

void gm_handles_drop(const struct gm_handles *handles, uint64_t value)
{
    take_lock();
    for (; handles; handles = next_part(handles))
        drop_in(handles, value);
    release_lock();
}

/* Writes only where something is: the tables are mostly pages that were never touched. */
void gm_handles_clear(const struct gm_handles *handles)
{
    for (; handles; handles = next_part(handles))
        for (uint32_t i = 0; i < handles->size; i++)
            if (atomic_load_explicit(&handles->slots[i].key, memory_order_relaxed) != 0)
                atomic_store_explicit(&handles->slots[i].key, 0, memory_order_relaxed);
}
