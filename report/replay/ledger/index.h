/* Numbers of the elements of an array, found by their address: each element begins with the 64-bit
 * address, or handle, that it is known by, and at most one that is in the index has the same.
 *
 * A slot holds 32 bits of the address's hash instead of the address: half the memory of a map, and
 * a slot can be moved without the element being looked at. See map.h for all other tables. */
#ifndef GPUMEM_REPORT_LEDGER_INDEX_H
#define GPUMEM_REPORT_LEDGER_INDEX_H

#include "base/map.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct gm_index_slot {
    uint32_t hash;
    uint32_t number; /* GM_NONE: empty */
};

/* All zero: empty. */
struct gm_index {
    struct gm_index_slot *slots;
    size_t capacity; /* a power of two, or 0 */
    size_t count;
    uint64_t secret; /* see secret.h */
};

/* The array as it is now: elements of `stride` bytes. */
struct gm_indexed {
    const void *elements;
    size_t stride;
};

static inline uint32_t gm_index_hash(const struct gm_index *index, uint64_t address)
{
    address = (address ^ index->secret) * (index->secret | 1);
    address ^= address >> 32;
    return (uint32_t)(address * 0x9e3779b97f4a7c15ull >> 32);
}

/* The slot of an address, or the empty one where it belongs, marked with its hash. The index must
 * have slots. */
static inline struct gm_index_slot *gm_index_find(const struct gm_index *index, uint64_t address,
                                                  struct gm_indexed of)
{
    uint32_t hash = gm_index_hash(index, address);
    size_t mask = index->capacity - 1, at = hash & mask;
    for (; index->slots[at].number != GM_NONE; at = (at + 1) & mask) {
        uint64_t other;
        if (index->slots[at].hash != hash)
            continue;
        memcpy(&other, (const char *)of.elements + index->slots[at].number * of.stride,
               sizeof(other));
        if (other == address)
            return &index->slots[at];
    }
    index->slots[at].hash = hash;
    return &index->slots[at];
}

/* The slot of the element at an address, NULL if there is none. */
static inline struct gm_index_slot *gm_index_get(const struct gm_index *index, uint64_t address,
                                                 struct gm_indexed of)
{
    struct gm_index_slot *slot = index->count ? gm_index_find(index, address, of) : NULL;
    return slot && slot->number != GM_NONE ? slot : NULL;
}

/* False: the limits of the trace (see limit.h) allow it no more room. */
bool gm_index_grow(struct gm_index *index);

/* The slot of an address that is to be filled, which is empty if the address is new. NULL: there is
 * no room for it; nothing more is read then. */
static inline struct gm_index_slot *gm_index_place(struct gm_index *index, uint64_t address,
                                                   struct gm_indexed of)
{
    /* Stay below 3/8 full: a mispredicted branch on the next slot costs more than the load. */
    if (__builtin_expect(index->count * 8 >= index->capacity * 3, 0) && !gm_index_grow(index))
        return gm_index_get(index, address, of);
    return gm_index_find(index, address, of);
}

static inline void gm_index_fill(struct gm_index *index, struct gm_index_slot *slot,
                                 uint32_t number)
{
    index->count += slot->number == GM_NONE;
    slot->number = number;
}

/* Makes a filled slot empty. Other numbers may move to other slots. */
static inline void gm_index_empty(struct gm_index *index, struct gm_index_slot *slot)
{
    struct gm_index_slot *slots = index->slots;
    size_t mask = index->capacity - 1, hole = (size_t)(slot - slots);
    index->count--;
    /* What stands behind the hole moves into it, unless that is before its home. */
    for (size_t at = (hole + 1) & mask; slots[at].number != GM_NONE; at = (at + 1) & mask) {
        if (((at - slots[at].hash) & mask) >= ((at - hole) & mask)) {
            slots[hole] = slots[at];
            hole = at;
        }
    }
    slots[hole].number = GM_NONE;
}

/* An address is looked up soon: brings its slot near. */
static inline void gm_index_prefetch(const struct gm_index *index, uint64_t address)
{
    if (index->count)
        __builtin_prefetch(&index->slots[gm_index_hash(index, address) & (index->capacity - 1)], 1);
}

/* Whether each number is found by its address. Of checked builds (base/assert.h), as are all named so. */
bool gm_index_is_valid(const struct gm_index *index, struct gm_indexed of);

void gm_index_free(struct gm_index *index);

#endif
