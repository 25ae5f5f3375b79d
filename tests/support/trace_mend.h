/* Corrects all checksums and seals of a trace, whatever it holds, so that tests with changed traces
 * get past them. */
#ifndef GM_TESTS_TRACE_MEND_H
#define GM_TESTS_TRACE_MEND_H

#include <gpumem/checksum.h>
#include <stdbool.h>

static inline uint64_t mended_lane(const struct gm_extent *extent, size_t size)
{
    const struct gm_lane *lane = (const struct gm_lane *)(extent + 1);
    if (size < sizeof(*lane) || lane->capacity > (size - sizeof(*lane)) / sizeof(struct gm_record))
        return 0;
    return gm_lane_seal(lane, gm_lane_parts(lane));
}

static inline uint64_t mended_flight(const struct gm_extent *extent, size_t size)
{
    const struct gm_flight *flight = (const struct gm_flight *)(extent + 1);
    size_t head = GM_TRACE_PAGE - sizeof(*extent);
    if (size < head || flight->capacity == 0 || flight->capacity > size - head ||
        flight->start > flight->end || flight->end - flight->start > flight->capacity ||
        flight->touched > flight->capacity)
        return 0;
    return gm_flight_seal(flight);
}

/* `size`: bytes of payload that exist. */
static inline void mend_extent(struct gm_extent *extent, size_t size, bool sealed)
{
    const uint32_t tables = 1u << GM_EXTENT_NODES | 1u << GM_EXTENT_STRINGS |
                            1u << GM_EXTENT_MODULES | 1u << GM_EXTENT_FRAMES;
    if (extent->used > size)
        return;
    extent->checksum = gm_extent_checksum(extent);
    extent->seal = 0;
    if (!sealed || extent->length != size + sizeof(*extent))
        return;
    if (extent->type == GM_EXTENT_LANE)
        extent->seal = mended_lane(extent, size);
    else if (extent->type == GM_EXTENT_FLIGHT)
        extent->seal = mended_flight(extent, size);
    else if (extent->type < 32 && tables >> extent->type & 1)
        extent->seal = gm_table_seal(extent);
}

static inline void mend_trace(unsigned char *bytes, size_t size)
{
    struct gm_trace_header *header = (struct gm_trace_header *)bytes;
    if (size < GM_TRACE_PAGE)
        return;
    bool sealed = header->end != GM_END_NONE;
    for (size_t at = GM_TRACE_PAGE; at + sizeof(struct gm_extent) <= size; at += GM_EXTENT_ALIGN) {
        struct gm_extent *extent = (struct gm_extent *)(bytes + at);
        uint64_t left = size - at;
        if (extent->magic == GM_EXTENT_MAGIC && extent->length >= sizeof(*extent))
            mend_extent(extent,
                        (size_t)(extent->length < left ? extent->length : left) - sizeof(*extent),
                        sealed);
    }
    header->checksum = gm_header_checksum(header);
    header->seal = sealed ? gm_header_seal(bytes) : 0;
}

#endif
