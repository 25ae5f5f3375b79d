/* See snapshots.h. */
#include "judge/analysis/snapshots.h"
#include "base/each.h"
#include "base/memory.h"
#include "base/order.h"
#include "judge/pool/libraries.h"
#include <stdlib.h>

struct gm_site gm_site_of_life(const struct gm_life *life, unsigned class)
{
    return (struct gm_site){
        GM_SAME(life, stack, api, kind),
        .device = gm_kind_is_host(life->kind) ? -1 : life->device,
        .class = (uint8_t) class,
        .bytes = life->size,
        .count = 1,
    };
}

/* ---- allocations ----------------------------------------------------------------------------- */

/* The moments, and how far the replay has come. */
struct stops {
    struct gm_ledger *ledger;
    struct gm_moments *moments;
    size_t next_device;
    size_t next_pool;
};

static void take_snapshot(struct gm_snapshot *snapshot, const struct gm_ledger *ledger)
{
    const struct gm_lives *lives = &ledger->lives;
    for (uint32_t i = 0; i < lives->used; i++) {
        const struct gm_life *life = &lives->slots[i];
        bool wanted = snapshot->kind
                          ? life->kind == snapshot->kind
                          : life->kind != GM_KIND_NONE && !gm_kind_is_host(life->kind) &&
                                life->kind != GM_KIND_EXTERNAL && life->device == snapshot->device;
        if (wanted) {
            struct gm_site site = gm_site_of_life(life, 0);
            gm_sites_add(&snapshot->owners, &site);
        }
    }
    gm_sites_finish(&snapshot->owners);
    if (!snapshot->kind)
        snapshot->holes = gm_holes_find(lives, snapshot->device);
}

/* The snapshot of a peak while it is filled in. */
struct filling {
    struct gm_snapshot *snapshot;
    struct gm_range *places; /* of memory of kind `device` */
    size_t count;
    size_t capacity;
};

static void add_life(void *argument, const struct gm_life *life)
{
    struct filling *filling = argument;
    struct gm_site site = gm_site_of_life(life, 0);
    gm_sites_add(&filling->snapshot->owners, &site);
    if (filling->snapshot->kind || life->kind != GM_KIND_DEVICE || !life->size)
        return;
    GM_APPEND(filling->places, filling->capacity, filling->count,
              (struct gm_range){life->address, gm_range_end(life->address, life->size), 0});
}

void gm_snapshot_of_peak(struct gm_snapshot *snapshot, const struct gm_peak_lives *peaks,
                         const struct gm_ledger *ledger)
{
    struct filling filling = {.snapshot = snapshot};
    gm_peak_lives_visit(peaks, ledger, snapshot->kind, snapshot->device, add_life, &filling);
    gm_sites_finish(&snapshot->owners);
    snapshot->holes = gm_holes_between(filling.places, filling.count);
    free(filling.places);
}

static void set_stop(const struct stops *stops)
{
    const struct gm_moments *moments = stops->moments;
    stops->ledger->stop =
        stops->next_device < moments->device_count ? moments->devices[stops->next_device]->step : 0;
}

static void stopped(void *argument)
{
    struct stops *stops = argument;
    const struct gm_moments *moments = stops->moments;
    while (stops->next_device < moments->device_count &&
           moments->devices[stops->next_device]->step == stops->ledger->step)
        take_snapshot(moments->devices[stops->next_device++], stops->ledger);
    set_stop(stops);
}

GM_ORDER_POINTERS(by_step, struct gm_snapshot, GM_UP(step))

/* ---- pools ----------------------------------------------------------------------------------- */

static uint64_t rounding_of(const struct gm_pool_snapshot *snapshot,
                            const struct gm_block_order *order)
{
    uint64_t rounding = 0;
    for (size_t i = 0; i < order->count; i++)
        if (order->blocks[i].device == snapshot->device)
            rounding += gm_xla_rounding(order->blocks[i].size);
    return gm_xla_rounded(rounding, snapshot->in_use, snapshot->allocated, snapshot->reserved);
}

void gm_pool_snapshot_take(struct gm_pool_snapshot *snapshot, const struct gm_replay *replay,
                           const struct gm_block_order *order, struct gm_libraries *libraries)
{
    for (size_t i = 0; i < order->count; i++) {
        const struct gm_pool_block *block = &order->blocks[i];
        if (block->device == snapshot->device)
            gm_sites_add(&snapshot->owners, &(struct gm_site){.stack = block->stack,
                                                              .api = block->api,
                                                              .kind = GM_KIND_DEVICE,
                                                              .device = block->device,
                                                              .bytes = block->size,
                                                              .count = 1});
    }
    gm_sites_finish(&snapshot->owners);
    snapshot->allocated = snapshot->owners.bytes;
    snapshot->rounding = rounding_of(snapshot, order);
    if (snapshot->is_peak)
        snapshot->shapes = gm_shapes_of(order, snapshot->device);
    snapshot->segments = gm_segments_find(replay, order, libraries, snapshot->device);
}

static void take_pools(struct stops *stops, const struct gm_replay *replay,
                       const struct gm_blocks *blocks, struct gm_libraries *libraries)
{
    const struct gm_moments *moments = stops->moments;
    struct gm_block_order order = gm_block_order_of(blocks);
    while (stops->next_pool < moments->pool_count &&
           moments->pools[stops->next_pool]->record == blocks->records) {
        struct gm_pool_snapshot *snapshot = moments->pools[stops->next_pool++];
        snapshot->reserved = blocks->device[snapshot->device + 1].reserved;
        snapshot->in_use = blocks->device[snapshot->device + 1].in_use;
        gm_pool_snapshot_take(snapshot, replay, &order, libraries);
    }
    gm_block_order_free(&order);
}

GM_ORDER_POINTERS(by_record, struct gm_pool_snapshot, GM_UP(record))

/* ---- the replay ------------------------------------------------------------------------------ */

static void run_to_stops(struct gm_trace *trace, struct stops *stops)
{
    const struct gm_moments *moments = stops->moments;
    struct gm_stream *stream = gm_stream_open(trace);
    struct gm_replay *replay = gm_allocate(1, sizeof(*replay));
    struct gm_blocks *blocks = gm_allocate(1, sizeof(*blocks));
    struct gm_libraries *libraries = gm_libraries_new(trace);
    struct gm_entry entry;
    gm_replay_begin(replay);
    replay->checkpoint = trace->checkpoint;
    stops->ledger = &replay->ledger;
    replay->ledger.stopped = stopped;
    replay->ledger.stop_argument = stops;
    set_stop(stops);
    while ((stops->next_device < moments->device_count || stops->next_pool < moments->pool_count) &&
           gm_stream_next(stream, &entry)) {
        gm_replay_apply(replay, &entry);
        if (stops->next_pool == moments->pool_count)
            continue;
        gm_blocks_note(blocks, &entry);
        if (moments->pools[stops->next_pool]->record == blocks->records)
            take_pools(stops, replay, blocks, libraries);
    }
    gm_replay_finish(replay);
    gm_libraries_free(libraries);
    gm_blocks_free(blocks);
    gm_replay_end(replay);
    free(blocks);
    free(replay);
    gm_stream_close(stream);
}

void gm_snapshots_take(struct gm_trace *trace, struct gm_moments *moments)
{
    struct stops stops = {.moments = moments};
    if (moments->device_count)
        qsort(moments->devices, moments->device_count, sizeof(struct gm_snapshot *), by_step);
    if (moments->pool_count)
        qsort(moments->pools, moments->pool_count, sizeof(struct gm_pool_snapshot *), by_record);
    if (moments->device_count || moments->pool_count)
        run_to_stops(trace, &stops);
}
