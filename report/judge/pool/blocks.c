/* See blocks.h. */
#include "judge/pool/blocks.h"
#include "base/memory.h"
#include <stdlib.h>

/* Not made part of its caller, which would work out anew where its totals are for each of them. */
#define APART __attribute__((noinline))

static struct gm_block_totals *totals_of(struct gm_blocks *blocks, int device)
{
    return &blocks->device[gm_device_slot(device)];
}

static struct gm_indexed indexed(const struct gm_blocks *blocks)
{
    return (struct gm_indexed){blocks->slots, sizeof(*blocks->slots)};
}

/* `slot`: of its address in the index. */
static struct gm_pool_block *end_pool_block(struct gm_blocks *blocks, struct gm_index_slot *slot)
{
    uint32_t number = slot->number;
    struct gm_pool_block *block = &blocks->slots[number];
    struct gm_block_totals *totals = totals_of(blocks, block->device);
    totals->live -= block->size;
    totals->rounding -= gm_xla_rounding(block->size);
    totals->requested -= block->requested;
    blocks->live -= block->size;
    totals->count--;
    gm_index_empty(&blocks->by_address, slot);
    block->alive = false;
    GM_APPEND(blocks->unused, blocks->unused_capacity, blocks->unused_count, number);
    blocks->late_count++;
    return block;
}

uint64_t gm_blocks_size(const struct gm_blocks *blocks, const struct gm_record *record)
{
    return record->size <= GM_LIVE_MAX - blocks->live ? record->size : 0;
}

uint64_t gm_blocks_requested(const struct gm_blocks *blocks, const struct gm_entry *entry)
{
    uint64_t size = gm_blocks_size(blocks, entry->record);
    uint64_t requested =
        entry->detail && entry->record->kind != GM_BLOCK_OF_XLA ? entry->detail->size : 0;
    return requested < size ? requested : size;
}

static void draw_blocks(struct gm_block_totals *totals, uint64_t time)
{
    if (!totals->curve) {
        totals->curve = gm_allocate(1, sizeof(*totals->curve));
        totals->by_alloc = gm_allocate(1, sizeof(*totals->by_alloc));
    }
    gm_curve_set(totals->curve, time, totals->live, totals->reserved);
}

static APART struct gm_block_change begin_pool_block(struct gm_blocks *blocks,
                                                     struct gm_block_totals *totals,
                                                     const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    struct gm_block_change change = {0};
    struct gm_index_slot *slot =
        gm_index_place(&blocks->by_address, record->address, indexed(blocks));
    uint64_t size = gm_blocks_size(blocks, record);
    uint32_t number;
    blocks->malformed += size != record->size;
    if (slot && slot->number != GM_NONE) {
        blocks->replaced = *end_pool_block(blocks, slot); /* its end was not recorded */
        blocks->late_count = 0;                           /* it came before this use */
        change.ended = &blocks->replaced;
        slot = gm_index_place(&blocks->by_address, record->address, indexed(blocks));
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
    if (slot)
        gm_index_fill(&blocks->by_address, slot, number);
    if (totals->peak.bytes - totals->live > totals->fall)
        totals->fall = totals->peak.bytes - totals->live;
    totals->allocs++;
    totals->allocated += size;
    totals->count++;
    totals->live += size;
    totals->rounding += gm_xla_rounding(size);
    blocks->live += size;
    totals->requested += blocks->slots[number].requested;
    if (totals->requested > totals->requested_peak)
        totals->requested_peak = totals->requested;
    if (totals->live > totals->peak.bytes)
        totals->peak = (struct gm_peak){totals->live, record->time, blocks->records};
    draw_blocks(totals, record->time);
    gm_curve_set(totals->by_alloc, totals->allocs, totals->live, totals->reserved);
    change.begun = &blocks->slots[number];
    return change;
}

static APART struct gm_block_change
free_block(struct gm_blocks *blocks, struct gm_block_totals *totals, const struct gm_record *record)
{
    struct gm_index_slot *slot =
        gm_index_get(&blocks->by_address, record->address, indexed(blocks));
    struct gm_block_change change = {0};
    if (slot) {
        totals->frees++;
        change.ended = end_pool_block(blocks, slot);
    }
    draw_blocks(totals, record->time);
    return change;
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

static void note_in_use_peak(struct gm_block_totals *totals, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    uint64_t told = entry->detail ? entry->detail->aux : 0;
    struct gm_in_use_peak *peak = &totals->in_use_peak;
    peak->was_cut |= entry->carried;
    if (told <= peak->bytes)
        return;
    uint32_t most = entry->detail->extra;
    *peak = (struct gm_in_use_peak){
        .bytes = told,
        .arrays = totals->live < told ? totals->live : told,
        .time = record->time,
        .stack = peak->was_cut && !peak->bytes ? 0 : record->stack,
        .api = record->api,
        .was_cut = peak->was_cut,
        .executable = entry->detail->size,
        .is_compiling = most == GM_BLOCK_MOST_COMPILING,
        .temporaries =
            most > GM_BLOCK_MOST_COMPILING ? (uint64_t)(most - 1) * GM_BLOCK_TEMPORARIES_UNIT : 0,
    };
}

static void note_told(struct gm_block_totals *totals, const struct gm_record *record)
{
    if (!totals->told)
        totals->told = gm_allocate(GM_IN_USE_TOLD, sizeof(*totals->told));
    totals->told_count += totals->told_count < GM_IN_USE_TOLD;
    totals->told[totals->told_count - 1] = (struct gm_in_use_told){
        .time = record->time,
        .in_use = record->aux,
        .allocated = totals->live,
        .rounding = gm_xla_rounded(totals->rounding, record->aux, totals->live, totals->reserved),
    };
}

const char *gm_blocks_owner(const struct gm_block_totals *totals)
{
    switch (totals->owners) {
    case 1u << GM_BLOCK_OF_XLA:
        return "XLA";
    case 1u << GM_BLOCK_OF_PYTORCH | 1u << GM_BLOCK_OF_XLA:
        return "PyTorch and XLA";
    default:
        return "PyTorch";
    }
}

struct gm_block_change gm_blocks_note_block(struct gm_blocks *blocks, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    struct gm_block_totals *totals = totals_of(blocks, record->device);
    blocks->records++;
    totals->owners |= 1u << (record->kind == GM_BLOCK_OF_XLA);
    note_reserved(blocks, totals, entry);
    if (record->type == GM_EVENT_BLOCK_FREE) {
        if (!record->address && record->kind == GM_BLOCK_OF_XLA)
            note_told(totals, record);
        return free_block(blocks, totals, record);
    }
    if (record->kind == GM_BLOCK_OF_XLA)
        totals->in_use = record->aux;
    blocks->late_count = 0;
    blocks->last_use_time = record->time;
    blocks->last_use_record = blocks->records;
    if (record->type == GM_EVENT_BLOCK_ALLOC) {
        struct gm_block_change change = begin_pool_block(blocks, totals, entry);
        if (record->kind == GM_BLOCK_OF_XLA)
            note_in_use_peak(totals, entry);
        return change;
    }
    totals->out_of_memory++;
    draw_blocks(totals, record->time);
    return (struct gm_block_change){0};
}

void gm_blocks_finish(struct gm_blocks *blocks)
{
    for (int i = 0; i < GM_DEVICES; i++)
        if (blocks->device[i].curve)
            gm_curve_finish(blocks->device[i].curve, blocks->last_use_time);
}

const struct gm_pool_block *gm_blocks_at(const struct gm_blocks *blocks, uint64_t address)
{
    const struct gm_index_slot *slot = gm_index_get(&blocks->by_address, address, indexed(blocks));
    return slot ? &blocks->slots[slot->number] : NULL;
}

void gm_blocks_owners(const struct gm_blocks *blocks, int device, struct gm_sites *sites)
{
    if (!blocks->device[gm_device_slot(device)].count)
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
        free(blocks->device[i].told);
    }
    free(blocks->slots);
    free(blocks->unused);
    gm_index_free(&blocks->by_address);
}
