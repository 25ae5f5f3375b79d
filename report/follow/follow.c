/* See follow.h. */
#include "follow/follow.h"
#include "base/memory.h"
#include "ledger/counters.h"
#include "trace/stream.h"
#include "trace/trace_open.h"
#include <stdlib.h>
#include <string.h>

static void forget(struct gm_follow *follow)
{
    if (follow->replay) {
        gm_replay_end(follow->replay);
        gm_blocks_free(follow->blocks);
    }
    free(follow->replay);
    free(follow->blocks);
    follow->replay = NULL;
    follow->blocks = NULL;
    follow->events = 0;
    memset(follow->devices, 0, sizeof(follow->devices));
    if (follow->lane_count)
        memset(follow->next, 0, follow->lane_count * sizeof(*follow->next));
}

static void start(struct gm_follow *follow)
{
    follow->replay = gm_allocate(1, sizeof(*follow->replay));
    follow->blocks = gm_allocate(1, sizeof(*follow->blocks));
    gm_replay_begin(follow->replay);
    follow->replay->checkpoint = follow->trace->checkpoint;
}

void gm_follow_begin(struct gm_follow *follow, const char *path)
{
    *follow = (struct gm_follow){.path = path};
}

void gm_follow_end(struct gm_follow *follow)
{
    forget(follow);
    gm_trace_close(follow->trace);
    free(follow->next);
}

/* ---- a look ---------------------------------------------------------------------------------- */

static void note_device(struct gm_follow *follow, const struct gm_record *record)
{
    int slot = record->device < 0 ? 0 : record->device + 1;
    struct gm_follow_device *device = &follow->devices[slot];
    if (record->type == GM_EVENT_DEVICE && record->size)
        device->total = record->size;
    if (record->type != GM_EVENT_DEVICE_SAMPLE || !record->size)
        return;
    uint64_t tracked = follow->replay->ledger.counters.device[slot].live;
    device->used = record->size;
    device->residual = record->size > tracked ? record->size - tracked : 0;
}

static void read_on(struct gm_follow *follow)
{
    struct gm_trace *trace = follow->trace;
    while (follow->lane_count < trace->lane_count) {
        follow->next = gm_resize(follow->next, trace->lane_count, sizeof(*follow->next));
        follow->next[follow->lane_count++] = 0;
    }
    for (size_t lane = 0; lane < trace->lane_count; lane++)
        if (follow->next[lane] > trace->lanes[lane].first)
            trace->lanes[lane].first = follow->next[lane];
    struct gm_stream *stream = gm_stream_open(trace);
    struct gm_entry entry;
    uint64_t last = 0, before = follow->events;
    gm_replay_prefetch(follow->replay, stream);
    while (gm_stream_next(stream, &entry)) {
        gm_replay_apply(follow->replay, &entry);
        gm_blocks_note(follow->blocks, &entry);
        if (entry.record->type == GM_EVENT_DEVICE || entry.record->type == GM_EVENT_DEVICE_SAMPLE)
            note_device(follow, entry.record);
        last = entry.record->time;
        follow->events++;
    }
    if (trace->as_of_ns)
        follow->as_of_ns = trace->as_of_ns;
    else if (follow->events > before)
        follow->as_of_ns = gm_clock_elapsed(&trace->clock, last); /* a division of 128 bits */
    gm_stream_positions(stream, follow->next, follow->lane_count);
    gm_stream_close(stream);
}

bool gm_follow_look(struct gm_follow *follow, char *error, size_t error_size)
{
    struct gm_trace *trace = gm_trace_open_at_once(follow->path, follow->trace, error, error_size);
    if (!trace)
        return false;
    gm_trace_close(follow->trace);
    follow->trace = trace;
    if (trace->header.flags & GM_HEADER_FLIGHT)
        forget(follow);
    if (!follow->replay)
        start(follow);
    read_on(follow);
    return true;
}

/* ---- what lives ------------------------------------------------------------------------------ */

void gm_follow_sites(const struct gm_follow *follow, bool blocks, struct gm_sites *sites)
{
    const struct gm_lives *lives = &follow->replay->ledger.lives;
    if (blocks) {
        for (int device = -1; device < GM_DEVICES - 1; device++)
            if (follow->blocks->device[device + 1].count)
                gm_blocks_owners(follow->blocks, device, sites);
        return;
    }
    for (uint32_t i = 0; i < lives->used; i++) {
        const struct gm_life *life = &lives->slots[i];
        if (life->kind == GM_KIND_NONE)
            continue;
        gm_sites_add(sites,
                     &(struct gm_site){.stack = life->stack,
                                       .api = life->api,
                                       .kind = life->kind,
                                       .device = gm_kind_is_host(life->kind) ? -1 : life->device,
                                       .bytes = life->size,
                                       .count = 1});
    }
}
