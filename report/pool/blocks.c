/* See blocks.h. */
#include "pool/blocks.h"
#include "base/memory.h"
#include <stdlib.h>

static struct gm_block_totals *totals_of(struct gm_blocks *blocks, int device)
{
    return &blocks->device[device < 0 ? 0 : device + 1];
}

static void end_block(struct gm_blocks *blocks, uint32_t number)
{
    struct gm_pool_block *block = &blocks->slots[number];
    struct gm_block_totals *totals = totals_of(blocks, block->device);
    totals->live -= block->size;
    totals->requested -= block->requested;
    blocks->live -= block->size;
    totals->count--;
    gm_map_remove(&blocks->by_address, block->address);
    GM_RESERVE(blocks->late, blocks->late_capacity, blocks->late_count + 1);
    blocks->late[blocks->late_count++] = *block;
    block->alive = false;
    GM_RESERVE(blocks->unused, blocks->unused_capacity, blocks->unused_count + 1);
    blocks->unused[blocks->unused_count++] = number;
}

uint64_t gm_blocks_size(const struct gm_blocks *blocks, const struct gm_record *record)
{
    bool has_room = record->size <= GM_LIVE_MAX && blocks->live <= GM_LIVE_MAX - record->size;
    return has_room ? record->size : 0;
}

uint64_t gm_blocks_requested(const struct gm_blocks *blocks, const struct gm_entry *entry)
{
    uint64_t size = gm_blocks_size(blocks, entry->record);
    uint64_t requested = entry->detail ? entry->detail->size : 0;
    return requested < size ? requested : size;
}

static void begin_block(struct gm_blocks *blocks, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    uint32_t number = gm_map_get(&blocks->by_address, record->address);
    uint64_t size = gm_blocks_size(blocks, record);
    blocks->malformed += size != record->size;
    if (number != GM_NONE) {
        end_block(blocks, number); /* its end was not recorded */
        blocks->late_count = 0;    /* it came before this use */
    }
    if (blocks->unused_count) {
        number = blocks->unused[--blocks->unused_count];
    } else {
        number = blocks->used++;
        GM_RESERVE(blocks->slots, blocks->capacity, blocks->used);
    }
    blocks->slots[number] = (struct gm_pool_block){
        .address = record->address,
        .size = size,
        .requested = gm_blocks_requested(blocks, entry),
        .time = record->time,
        .birth = blocks->allocs++,
        .stack = record->stack,
        .api = record->api,
        .device = record->device < 0 ? -1 : record->device,
        .alive = true,
    };
    gm_map_set(&blocks->by_address, record->address, number);
    struct gm_block_totals *totals = totals_of(blocks, record->device);
    if (totals->peak.bytes - totals->live > totals->fall)
        totals->fall = totals->peak.bytes - totals->live;
    totals->allocs++;
    totals->count++;
    totals->live += size;
    blocks->live += size;
    totals->requested += blocks->slots[number].requested;
    if (totals->requested > totals->requested_peak)
        totals->requested_peak = totals->requested;
    if (totals->live > totals->peak.bytes)
        totals->peak = (struct gm_peak){totals->live, record->time, blocks->records};
}

static void note_reserved(struct gm_blocks *blocks, struct gm_block_totals *totals,
                          const struct gm_entry *entry)
{
    if (!entry->detail)
        return;
    totals->reserved = entry->detail->address;
    if (totals->reserved > totals->reserved_peak.bytes)
        totals->reserved_peak =
            (struct gm_peak){totals->reserved, entry->record->time, blocks->records};
}

void gm_blocks_note_block(struct gm_blocks *blocks, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    struct gm_block_totals *totals = totals_of(blocks, record->device);
    blocks->records++;
    note_reserved(blocks, totals, entry);
    if (record->type != GM_EVENT_BLOCK_FREE) {
        blocks->late_count = 0;
        blocks->last_use_time = record->time;
        blocks->last_use_record = blocks->records;
    }
    if (record->type == GM_EVENT_BLOCK_OOM) {
        totals->out_of_memory++;
    } else if (record->type == GM_EVENT_BLOCK_ALLOC) {
        begin_block(blocks, entry);
    } else {
        uint32_t number = gm_map_get(&blocks->by_address, record->address);
        totals->frees += number != GM_NONE;
        if (number != GM_NONE)
            end_block(blocks, number);
    }
    if (!totals->curve) {
        totals->curve = gm_allocate(1, sizeof(*totals->curve));
        totals->by_alloc = gm_allocate(1, sizeof(*totals->by_alloc));
    }
    gm_curve_set(totals->curve, record->time, totals->live, totals->reserved);
    if (record->type == GM_EVENT_BLOCK_ALLOC)
        gm_curve_set(totals->by_alloc, totals->allocs, totals->live, totals->reserved);
}

void gm_blocks_finish(struct gm_blocks *blocks)
{
    for (int i = 0; i < GM_DEVICES; i++)
        if (blocks->device[i].curve)
            gm_curve_finish(blocks->device[i].curve, blocks->last_use_time);
}

const struct gm_pool_block *gm_blocks_at(const struct gm_blocks *blocks, uint64_t address)
{
    uint32_t number = gm_map_get(&blocks->by_address, address);
    return number == GM_NONE ? NULL : &blocks->slots[number];
}

void gm_blocks_owners(const struct gm_blocks *blocks, int device, struct gm_sites *sites)
{
    if (!blocks->device[device < 0 ? 0 : device + 1].count)
        return;
    for (uint32_t i = 0; i < blocks->used; i++) {
        const struct gm_pool_block *block = &blocks->slots[i];
        if (block->alive && block->device == device)
            gm_sites_add(sites, &(struct gm_site){.stack = block->stack,
                                                  .api = block->api,
                                                  .kind = GM_KIND_DEVICE,
                                                  .device = block->device,
                                                  .bytes = block->size,
                                                  .count = 1});
    }
}

void gm_blocks_free(struct gm_blocks *blocks)
{
    for (int i = 0; i < GM_DEVICES; i++) {
        free(blocks->device[i].curve);
        free(blocks->device[i].by_alloc);
    }
    free(blocks->slots);
    free(blocks->unused);
    free(blocks->late);
    gm_map_free(&blocks->by_address);
}
