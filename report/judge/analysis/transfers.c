/* See transfers.h. */
#include "judge/analysis/transfers.h"
#include "base/memory.h"
#include "base/order.h"
#include "replay/ledger/counters.h"
#include "replay/ledger/sites.h"
#include <stdbool.h>
#include <stdlib.h>

/* ---- what addresses are ---------------------------------------------------------------------- */

/* The driver takes address space for a device in pieces of at least this, aligned to it. */
#define PIECE ((uint64_t)2 << 20)

/* Adds device addresses, whole pieces at a time, so that a handful of ranges covers them all. They
 * stay when the memory goes: the driver keeps its address space to itself, so what was the device's
 * once is not the host's later. */
static void add_pieces(struct gm_transfers *transfers, uint64_t start, uint64_t end)
{
    struct gm_range range;
    start &= ~(PIECE - 1);
    end = end > UINT64_MAX - PIECE ? UINT64_MAX : (end + PIECE - 1) & ~(PIECE - 1);
    /* What only touches is joined as well. */
    while (
        gm_ranges_find(&transfers->device, start ? start - 1 : 0, gm_range_end(end, 1), &range)) {
        gm_ranges_remove(&transfers->device, range.start);
        start = range.start < start ? range.start : start;
        end = range.end > end ? range.end : end;
    }
    transfers->latest_device = (struct gm_range){start, end, 0};
    gm_ranges_add(&transfers->device, transfers->latest_device);
}

static inline void add_transfer_device(struct gm_transfers *transfers, uint64_t start, uint64_t end)
{
    const struct gm_range *latest = &transfers->latest_device; /* whole pieces */
    if (start < latest->start || end > latest->end)
        add_pieces(transfers, start, end);
}

void gm_transfers_learn(struct gm_transfers *transfers, const struct gm_life *life, bool is_new)
{
    uint64_t end = gm_range_end(life->address, life->size);
    struct gm_range other;
    switch (life->kind) {
    case GM_KIND_DEVICE:
    case GM_KIND_GRAPH:
    case GM_KIND_EXTERNAL:
        add_transfer_device(transfers, life->address, life->size ? end : life->address + 1);
        break;
    case GM_KIND_PINNED:
    case GM_KIND_REGISTERED:
    case GM_KIND_MANAGED:
        if (is_new)
            gm_map_remove(&transfers->reach, life->address);
        if (!gm_ranges_find(&transfers->host, life->address, end, &other))
            gm_ranges_add(&transfers->host, (struct gm_range){life->address, end, life->kind});
        break;
    default: /* arrays and physical memory have handles, no addresses */
        break;
    }
}

void gm_transfers_forget(struct gm_transfers *transfers, const struct gm_life *life)
{
    if (life->kind == GM_KIND_PINNED || life->kind == GM_KIND_REGISTERED ||
        life->kind == GM_KIND_MANAGED)
        gm_ranges_remove(&transfers->host, life->address);
}

static bool is_in(const struct gm_ranges *ranges, uint64_t address)
{
    struct gm_range range;
    return gm_ranges_find(ranges, address, gm_range_end(address, 1), &range);
}

/* ---- records --------------------------------------------------------------------------------- */

/* The way of a copy. With unified addressing the call may not tell; the addresses do. */
static unsigned direction_of(const struct gm_transfers *transfers, const struct gm_record *record)
{
    if (record->type == GM_EVENT_SET)
        return GM_DIRECTION_SET;
    if (record->kind != GM_COPY_UNKNOWN)
        return record->kind <= GM_COPY_PEER ? record->kind : GM_COPY_UNKNOWN;
    bool to_device = is_in(&transfers->device, record->address);
    bool from_device = is_in(&transfers->device, record->aux);
    if (to_device)
        return from_device ? GM_COPY_DEVICE_TO_DEVICE : GM_COPY_HOST_TO_DEVICE;
    return from_device ? GM_COPY_DEVICE_TO_HOST : GM_COPY_HOST_TO_HOST;
}

/* Remembers how far into its memory a copy went, in KiB so that it fits a map's value. */
static void note_reach(struct gm_transfers *transfers, const struct gm_range *memory,
                       uint64_t address, uint64_t size)
{
    uint64_t end = gm_range_end(address, size);
    uint64_t reach = (end < memory->end ? end : memory->end) - memory->start;
    uint32_t kib = reach >> 10 < GM_NONE - 1 ? (uint32_t)((reach + 1023) >> 10) : GM_NONE - 1;
    uint32_t known = gm_map_get(&transfers->reach, memory->start);
    if (kib && (known == GM_NONE || known < kib))
        gm_map_set(&transfers->reach, memory->start, kib);
}

uint64_t gm_transfers_reach(const struct gm_transfers *transfers, uint64_t address)
{
    uint32_t kib = gm_map_get(&transfers->reach, address);
    return kib == GM_NONE ? 0 : (uint64_t)kib << 10;
}

/* Whether the host's side is memory that the device cannot reach; notes its use if it can. */
static bool is_pageable(struct gm_transfers *transfers, const struct gm_record *record,
                        unsigned direction)
{
    struct gm_range memory;
    uint64_t address = direction == GM_COPY_HOST_TO_DEVICE ? record->aux : record->address;
    if (direction != GM_COPY_HOST_TO_DEVICE && direction != GM_COPY_DEVICE_TO_HOST)
        return false;
    if (!gm_ranges_find(&transfers->host, address, gm_range_end(address, 1), &memory))
        return true;
    note_reach(transfers, &memory, address, record->size);
    return false;
}

static void add_transfer(struct gm_transfer *sum, const struct gm_record *record, bool pageable)
{
    sum->bytes = gm_add_saturated(sum->bytes, record->size);
    sum->count++;
    sum->nanoseconds = gm_add_saturated(sum->nanoseconds, record->extra);
    sum->tiny += record->size <= GM_TINY_COPY;
    sum->unknown += record->type == GM_EVENT_COPY && record->flags & GM_FLAG_UNKNOWN_VALUE;
    if (pageable) {
        sum->pageable_bytes = gm_add_saturated(sum->pageable_bytes, record->size);
        sum->pageable_count++;
    }
}

static struct gm_transfer_site *transfer_site(struct gm_transfers *transfers,
                                              const struct gm_record *record, unsigned direction)
{
    uint64_t key = gm_place_key(record->stack, record->api, 0, 0, direction);
    uint32_t number = gm_map_get(&transfers->by_site, key);
    if (number == GM_NONE) {
        number = (uint32_t)transfers->site_count;
        GM_APPEND(transfers->sites, transfers->site_capacity, transfers->site_count,
                  (struct gm_transfer_site){
                      .stack = record->stack,
                      .order = number,
                      .api = record->api,
                      .direction = (uint8_t)direction,
                  });
        gm_map_set(&transfers->by_site, key, number);
    }
    return &transfers->sites[number];
}

/* Whether a site fills the same memory over and over, as a loop does. */
static bool note_target(struct gm_transfer_site *site, uint64_t address)
{
    for (size_t i = 0; i < GM_RECENT_TARGETS; i++)
        if (site->recent[i] == address)
            return true;
    site->recent[site->next_recent++ % GM_RECENT_TARGETS] = address;
    return false;
}

/* Since this place's last copy memory grew by a part of what is copied, as when a model is loaded and
 * each tensor cast on its way: the copy's own memory is used again, but the data stay. */
static bool was_kept(struct gm_transfer_site *site, uint64_t size, uint64_t live)
{
    bool kept = live > site->live && live - site->live >= size / GM_KEPT_SHARE;
    site->live = live;
    return kept;
}

bool gm_transfers_note(struct gm_transfers *transfers, const struct gm_record *record,
                       uint64_t live)
{
    if (record->type == GM_EVENT_VMM_MAP)
        add_transfer_device(transfers, record->address,
                            gm_range_end(record->address, record->size));
    if (record->type != GM_EVENT_COPY && record->type != GM_EVENT_SET)
        return false;
    unsigned direction = direction_of(transfers, record);
    bool pageable = is_pageable(transfers, record, direction);
    struct gm_transfer_site *site = transfer_site(transfers, record, direction);
    add_transfer(&transfers->total[direction], record, pageable);
    add_transfer(&site->sum, record, pageable);
    if (direction == GM_COPY_DEVICE_TO_HOST) {
        site->staged_again +=
            pageable && record->size >= GM_SLOW_COPY && note_target(site, record->address);
        return site->sum.count > 1;
    }
    if (direction != GM_COPY_HOST_TO_DEVICE || !record->address)
        return false;
    bool kept = was_kept(site, record->size, live), again = note_target(site, record->address);
    site->staged_again += again && !kept && pageable && record->size >= GM_SLOW_COPY;
    return again;
}

GM_ORDER(most_first_transfer, struct gm_transfer_site, GM_DOWN(sum.bytes) GM_UP(order))

void gm_transfers_finish(struct gm_transfers *transfers)
{
    if (transfers->site_count)
        qsort(transfers->sites, transfers->site_count, sizeof(*transfers->sites),
              most_first_transfer);
}

void gm_transfers_free(struct gm_transfers *transfers)
{
    free(transfers->sites);
    gm_map_free(&transfers->by_site);
    gm_map_free(&transfers->reach);
    gm_ranges_free(&transfers->host);
    gm_ranges_free(&transfers->device);
}
