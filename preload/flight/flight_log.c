/* See flight_log.h. */
#include "flight/flight_log.h"
#include "writer/trace_file.h"
#include <gpumem/checksum.h>
#include <string.h>

#define STARTS 16u

static struct {
    struct gm_flight *flight; /* mapped */
    char *area;
    uint64_t capacity;
    uint64_t end;            /* reserved up to here */
    bool is_sealed;          /* nothing was written since */
    uint64_t starts[STARTS]; /* complete checkpoints behind flight->start, in order */
    uint32_t start_count;
} area_log;

bool gm_log_create(uint64_t capacity)
{
    capacity &= ~(uint64_t)(GM_TRACE_PAGE - 1);
    struct gm_extent *extent =
        gm_trace_map_extents(GM_EXTENT_FLIGHT, 0, GM_TRACE_PAGE + capacity, 1);
    if (!extent)
        return false;
    area_log.flight = (struct gm_flight *)(extent + 1);
    area_log.area = (char *)extent + GM_TRACE_PAGE;
    area_log.capacity = area_log.flight->capacity = capacity;
    gm_trace_publish_extents(extent, 1, sizeof(area_log.flight->capacity));
    return true;
}

uint64_t gm_log_capacity(void)
{
    return area_log.capacity;
}

uint64_t gm_log_end(void)
{
    return area_log.end;
}

/* Lets the history begin later. */
static bool drop_oldest(void)
{
    if (area_log.start_count == 0)
        return false;
    __atomic_store_n(&area_log.flight->start, area_log.starts[0], __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST); /* before what stood there is overwritten */
    area_log.start_count--;
    area_log.is_sealed = false;
    memmove(area_log.starts, area_log.starts + 1,
            area_log.start_count * sizeof(area_log.starts[0]));
    return true;
}

static struct gm_extent *put_header(uint64_t position, enum gm_extent_type type, uint64_t length,
                                    size_t used)
{
    struct gm_extent *extent = (struct gm_extent *)(area_log.area + position % area_log.capacity);
    uint64_t behind = position % area_log.capacity + length;
    memset(extent, 0, sizeof(*extent));
    memset((char *)(extent + 1) + used, 0, length - sizeof(*extent) - used); /* was another's */
    extent->magic = GM_EXTENT_MAGIC;
    extent->type = (uint16_t)type;
    extent->used = (uint32_t)used;
    extent->length = length;
    if (area_log.flight->touched < behind)
        area_log.flight->touched = behind;
    area_log.is_sealed = false;
    return extent;
}

void gm_log_complete(void *payload)
{
    struct gm_extent *extent = (struct gm_extent *)payload - 1;
    extent->checksum = gm_extent_checksum(extent);
}

void *gm_log_reserve(enum gm_extent_type type, size_t size, uint64_t spare)
{
    uint64_t length =
        (sizeof(struct gm_extent) + size + GM_EXTENT_ALIGN - 1) & ~(uint64_t)(GM_EXTENT_ALIGN - 1);
    uint64_t left = area_log.capacity - area_log.end % area_log.capacity;
    uint64_t pad = length > left ? left : 0;
    if (length + spare > area_log.capacity)
        return NULL;
    while (area_log.end + pad + length + spare - area_log.flight->start > area_log.capacity)
        if (!drop_oldest())
            return NULL;
    if (pad)
        gm_log_complete(put_header(area_log.end, GM_EXTENT_PAD, pad, 0) + 1);
    struct gm_extent *extent = put_header(area_log.end + pad, type, length, size);
    area_log.end += pad + length;
    return extent + 1;
}

void gm_log_publish(void)
{
    __atomic_store_n(&area_log.flight->end, area_log.end, __ATOMIC_RELEASE);
    area_log.is_sealed = false;
}

void gm_log_seal(void)
{
    struct gm_flight *flight = area_log.flight;
    if (!flight || area_log.is_sealed)
        return;
    ((struct gm_extent *)flight - 1)->seal = gm_flight_seal(flight);
    area_log.is_sealed = true;
}

void gm_log_rewind(uint64_t position)
{
    area_log.end = position;
}

void gm_log_add_start(uint64_t position)
{
    if (area_log.start_count == STARTS)
        drop_oldest();
    area_log.starts[area_log.start_count++] = position;
}

void gm_log_forget(void)
{
    memset(&area_log, 0, sizeof(area_log));
}
