/*
 * The checksums of a trace, for its writer and its readers; docs/trace-format.md says what they
 * cover. All are XXH3 with 64 bits. A seal is never 0, which stands for "not sealed".
 */
#ifndef GPUMEM_CHECKSUM_H
#define GPUMEM_CHECKSUM_H

#define XXH_INLINE_ALL /* the header alone: no library is linked for one function */
#include <gpumem/trace.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <xxhash.h>

/* Checksum of the constant part of the header page. */
static inline uint64_t gm_header_checksum(const struct gm_trace_header *header)
{
    return XXH3_64bits(header, offsetof(struct gm_trace_header, checksum));
}

static inline uint64_t gm_seal_of(uint64_t hash)
{
    return hash ? hash : 1;
}

/* Seal of the whole header page except the seal itself. `page` is GM_TRACE_PAGE bytes. */
static inline uint64_t gm_header_seal(const void *page)
{
    const size_t at = offsetof(struct gm_trace_header, seal), behind = at + sizeof(uint64_t);
    uint64_t hash = XXH3_64bits(page, at);
    return gm_seal_of(
        XXH3_64bits_withSeed((const char *)page + behind, GM_TRACE_PAGE - behind, hash));
}

/* Checksum of an extent's own header, which is the seed for its payload. */
static inline uint64_t gm_extent_seed(const struct gm_extent *extent)
{
    return XXH3_64bits(extent, offsetof(struct gm_extent, checksum));
}

/* Checksum of an extent that lies in memory as in the file. */
static inline uint64_t gm_extent_checksum(const struct gm_extent *extent)
{
    return XXH3_64bits_withSeed(extent + 1, extent->used, gm_extent_seed(extent));
}

/* Seal of a table's extent. */
static inline uint64_t gm_table_seal(const struct gm_extent *extent)
{
    return gm_seal_of(XXH3_64bits(extent + 1, (size_t)extent->length - sizeof(*extent)));
}

/*
 * Slots of a ring that may have been written to: all records so far, and one that a thread began
 * and never committed. The slots after them are zero.
 */
static inline uint64_t gm_lane_slots(const struct gm_lane *lane)
{
    return lane->head < lane->capacity ? lane->head + 1 : lane->capacity;
}

/* A slot's part in the seal of its lane. The seal adds the parts up, so that one can be
 * replaced. */
static inline uint64_t gm_slot_part(const struct gm_record *slot, uint64_t number)
{
    return XXH3_64bits_withSeed(slot, sizeof(*slot), number);
}

static inline uint64_t gm_lane_parts(const struct gm_lane *lane)
{
    const struct gm_record *slots = (const struct gm_record *)(lane + 1);
    uint64_t sum = 0, count = gm_lane_slots(lane);
    for (uint64_t number = 0; number < count; number++)
        sum += gm_slot_part(&slots[number], number);
    return sum;
}

/* Seal of a lane whose slots' parts add up to `parts`. */
static inline uint64_t gm_lane_seal(const struct gm_lane *lane, uint64_t parts)
{
    return gm_seal_of(XXH3_64bits(lane, sizeof(*lane)) + parts);
}

/*
 * Seal of a flight trace's extent: everything before its area, and the part of the area outside
 * [start, end) that was ever written to. The extents in between have their own checksums.
 */
static inline uint64_t gm_flight_seal(const struct gm_flight *flight)
{
    const size_t head = GM_TRACE_PAGE - sizeof(struct gm_extent);
    const char *area = (const char *)flight + head;
    uint64_t hash = XXH3_64bits(flight, head), capacity = flight->capacity;
    uint64_t left = capacity - (flight->end - flight->start), at = flight->end % capacity;
    while (left) {
        uint64_t part = left < capacity - at ? left : capacity - at;
        if (at < flight->touched) {
            uint64_t written = flight->touched - at;
            hash = XXH3_64bits_withSeed(area + at, (size_t)(written < part ? written : part), hash);
        }
        left -= part;
        at = 0;
    }
    return gm_seal_of(hash);
}

#endif
