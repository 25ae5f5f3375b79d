/* See follow.h. */
#include "tools/top/follow.h"
#include "base/each.h"
#include "base/memory.h"
#include "input/trace/stream.h"
#include "input/trace/trace_open.h"
#include "replay/ledger/counters.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void forget_followed(struct gm_follow *follow)
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

static void start_following(struct gm_follow *follow)
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
    forget_followed(follow);
    gm_trace_close(follow->trace);
    free(follow->next);
}

/* ---- a look ---------------------------------------------------------------------------------- */

static void note_device(struct gm_follow *follow, const struct gm_record *record)
{
    uint8_t slot = gm_device_slot(record->device);
    struct gm_follow_device *device = &follow->devices[slot];
    if (record->type == GM_EVENT_DEVICE && record->size)
        device->total = record->size;
    if (record->type != GM_EVENT_DEVICE_SAMPLE || !record->size)
        return;
    uint64_t tracked = follow->replay->ledger.counters.device[slot].live;
    device->used = record->size;
    device->residual = record->size > tracked ? record->size - tracked : 0;
}

#define AT_ONCE 16384u /* events between two looks at the clock: about a millisecond */

uint64_t gm_follow_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Replays what has come, until this process has had `until_ns` of CPU (0: to its end). Returns whether
 * there may be more; `last` becomes the time of the latest record, if there was one. */
static bool replay_until(struct gm_follow *follow, struct gm_stream *stream, uint64_t until_ns,
                         uint64_t *last)
{
    struct gm_entry entry;
    uint64_t count = 0;
    while (gm_stream_next(stream, &entry)) {
        gm_replay_apply(follow->replay, &entry);
        gm_blocks_note(follow->blocks, &entry);
        if (entry.record->type == GM_EVENT_DEVICE || entry.record->type == GM_EVENT_DEVICE_SAMPLE)
            note_device(follow, entry.record);
        *last = entry.record->time;
        follow->events += !entry.carried;
        if (++count % AT_ONCE == 0 && until_ns && gm_follow_cpu_ns() >= until_ns)
            return true;
    }
    return false;
}

static void read_on(struct gm_follow *follow, uint64_t until_ns)
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
    uint64_t last = 0, before = follow->events;
    gm_replay_prefetch(follow->replay, stream);
    follow->is_behind = replay_until(follow, stream, until_ns, &last);
    if (trace->as_of_ns && !follow->is_behind)
        follow->as_of_ns = trace->as_of_ns;
    else if (follow->events > before)
        follow->as_of_ns = gm_clock_elapsed(&trace->clock, last); /* a division of 128 bits */
    gm_stream_positions(stream, follow->next, follow->lane_count);
    gm_stream_close(stream);
}

bool gm_follow_look(struct gm_follow *follow, uint64_t most_ns, char *error, size_t error_size)
{
    uint64_t begun = gm_follow_cpu_ns();
    struct gm_trace *trace = gm_trace_open_at_once(follow->path, follow->trace, error, error_size);
    if (!trace)
        return false;
    gm_trace_close(follow->trace);
    follow->trace = trace;
    if (trace->header.flags & GM_HEADER_FLIGHT)
        forget_followed(follow);
    bool is_first = !follow->replay;
    if (is_first)
        start_following(follow);
    bool is_limited = most_ns && !is_first && trace->ending == GM_ENDING_RUNNING;
    read_on(follow, is_limited ? begun + most_ns : 0);
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
                     &(struct gm_site){GM_SAME(life, stack, api, kind),
                                       .device = gm_kind_is_host(life->kind) ? -1 : life->device,
                                       .bytes = life->size, .count = 1});
    }
}
