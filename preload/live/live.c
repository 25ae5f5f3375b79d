/* See live.h. */
#include "live/live.h"
#include "base/config.h"
#include "base/process_state.h"
#include "base/room.h"
#include "base/ticks.h"
#include "flight/flight.h"
#include "flight/fold_lives.h"
#include "flight/merge.h"
#include "live/stored.h"
#include "ring/block.h"
#include "ring/sink.h"
#include "writer/trace_file.h"
#include <string.h>
#include <sys/mman.h>

/* Looks, until a thread is given up that stays between the time of a record and its commit: the
 * first hundred yield, the others sleep for a tenth of a millisecond. */
#define PATIENCE 600u
#define YIELDS 100u

static struct gm_lock live_lock = GM_LOCK(GM_RANK_LIVE);

static bool is_prepared;
static uint64_t lost; /* records that were not there to be folded */

struct room {
    struct gm_record *records;
    uint32_t capacity;
};

/* Of a lane in a trace that grows. Slot 0 of either room is for the record that is kept. */
static struct source {
    struct room used; /* what gm_merge_lane.records is in */
    struct room ring; /* what waited in the ring at the latest look */
    uint64_t ring_first;
    uint64_t ring_end; /* ring_first: there is nothing */
} * sources;           /* GM_LANES_MAX, once prepared */

static uint32_t sources_used; /* one past the largest */

static bool resize(struct room *room, uint32_t records)
{
    if (records <= room->capacity)
        return true;
    size_t size = ((size_t)records * sizeof(struct gm_record) + GM_TRACE_PAGE - 1) &
                  ~(size_t)(GM_TRACE_PAGE - 1);
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return false;
    madvise(at, size, MADV_DONTFORK);
    if (room->records)
        munmap(room->records, room->capacity * sizeof(struct gm_record));
    room->records = at;
    room->capacity = (uint32_t)(size / sizeof(struct gm_record));
    return true;
}

static void give_back_room(struct room *room)
{
    if (room->records)
        munmap(room->records, room->capacity * sizeof(struct gm_record));
    *room = (struct room){0};
}

/* ---- more of a lane -------------------------------------------------------------------------- */

/* Passes over records that are not there. Not while one before them waits to be folded. */
static bool skip_to(struct gm_merge_lane *lane, uint64_t sequence)
{
    if (lane->next < lane->loaded)
        return false;
    lost += sequence - lane->loaded;
    lane->next = lane->loaded = sequence;
    return true;
}

/* The room has records from `first` on in its slots from 1 on. */
static void use_source(struct gm_merge_lane *lane, struct source *source, struct room room,
                       uint64_t first, uint64_t end)
{
    if (lane->next <
        lane->loaded) /* the one before `loaded`: it stands there already, or in slot 0 */
        room.records[lane->loaded - first] =
            lane->records[(lane->loaded - 1 - lane->first) & lane->mask];
    source->used = room;
    lane->records = room.records;
    lane->first = first - 1;
    lane->mask = UINT64_MAX;
    lane->loaded = end;
}

static bool use_ring(struct gm_merge_lane *lane, struct source *source)
{
    struct room former = source->used;
    use_source(lane, source, source->ring, source->ring_first, source->ring_end);
    source->ring = former;
    source->ring_end = source->ring_first;
    return true;
}

static bool use_block(uint32_t number, struct gm_merge_lane *lane, struct source *source)
{
    const struct gm_stored *block = gm_stored_next(number);
    uint64_t first = block->first;
    uint32_t count = block->count;
    struct room room = {0};
    bool read =
        count != UINT32_MAX && resize(&room, count + 1) && gm_stored_read(number, room.records + 1);
    gm_stored_pass(number);
    if (!read) {
        give_back_room(&room);
        return skip_to(lane, first + count);
    }
    struct room former = source->used;
    use_source(lane, source, room, first, first + count);
    give_back_room(&former);
    return true;
}

static bool load_table(uint32_t number)
{
    struct gm_merge_lane *lane = &gm_merge_lanes[number];
    struct source *source = &sources[number];
    const struct gm_stored *block;
    while ((block = gm_stored_next(number)) && block->first + block->count <= lane->loaded)
        gm_stored_pass(number);
    bool has_ring = source->ring_end > lane->loaded;
    if (has_ring && lane->loaded >= source->ring_first)
        return use_ring(lane, source);
    if (block && block->first <= lane->loaded)
        return use_block(number, lane, source);
    uint64_t next = lane->head;
    if (has_ring)
        next = source->ring_first;
    if (block && block->first < next)
        next = block->first;
    return skip_to(lane, next);
}

/* ---- a look at all --------------------------------------------------------------------------- */

/* Copies what waits in the ring, behind what was seen of it before. Caller holds the pack lock. */
static void copy_ring(const struct gm_thread *thread, struct gm_merge_lane *lane,
                      struct source *source)
{
    uint64_t tail = thread->lane->tail, first = tail > lane->loaded ? tail : lane->loaded;
    source->ring_first = source->ring_end = first;
    if (first >= lane->head || !resize(&source->ring, (uint32_t)(lane->head - first) + 1))
        return;
    for (uint64_t n = first; n < lane->head; n++)
        source->ring.records[n - first + 1] = thread->records[n & thread->mask];
    source->ring_end = lane->head;
}

static uint64_t look_at_lanes(void)
{
    uint64_t settled = gm_merge_begin_look();
    if (gm_merge_lane_count > sources_used)
        sources_used = gm_merge_lane_count;
    for (uint32_t number = 0; number < gm_merge_lane_count; number++) {
        struct gm_thread *thread = gm_thread_at(number);
        if (gm_config.drop_on_full)
            gm_lock_take(gm_pack_lock(thread));
        gm_merge_look_at(number, &settled);
        copy_ring(thread, &gm_merge_lanes[number], &sources[number]);
        if (gm_config.drop_on_full)
            gm_lock_release(gm_pack_lock(thread));
    }
    if (!gm_stored_find(__atomic_load_n(&gm_file.header->file_end, __ATOMIC_ACQUIRE)))
        lost++;
    return settled;
}

static void rest_until_next(void)
{
    for (uint32_t number = 0; number < gm_merge_lane_count; number++) {
        give_back_room(&sources[number].ring);
        sources[number].ring_end = sources[number].ring_first;
        if (gm_merge_lanes[number].next >= gm_merge_lanes[number].loaded)
            give_back_room(&sources[number].used);
    }
    gm_stored_rest();
}

static uint64_t fold_all(void)
{
    if (gm_sink->merges_lanes)
        return gm_flight_fold();
    if (!is_prepared)
        is_prepared = GM_ROOM(&sources, GM_LANES_MAX) && gm_merge_prepare(load_table);
    if (!is_prepared)
        return 0;
    uint64_t settled = look_at_lanes();
    gm_merge_fold_before(settled);
    return settled;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* While records are folded, none are packed: else threads that record without rest could make more of
 * them meanwhile than are folded, and each question would take longer than the one before. Where a
 * full ring drops what comes, one lane after the other is held for a moment instead. */
static void lock_all(void)
{
    gm_lock_take(&live_lock);
    if (!gm_config.drop_on_full || gm_sink->merges_lanes)
        gm_pack_lock_all();
}

static void unlock_all(void)
{
    if (!gm_config.drop_on_full || gm_sink->merges_lanes)
        gm_pack_release_all();
    gm_lock_release(&live_lock);
}

static void stand_aside(unsigned times_before)
{
    const struct timespec shortly = {.tv_nsec = 100000};
    if (times_before < YIELDS)
        syscall(SYS_sched_yield);
    else
        syscall(SYS_nanosleep, &shortly, NULL);
}

/* Whether something was not seen by which memory is made or ended. As the report's table of what
 * makes a trace incomplete (report/judge/verdict/completeness.c) has it. */
static bool is_inexact(void)
{
    static const enum gm_counter counters[] = {
        GM_COUNT_DROPPED,      GM_COUNT_REENTRANT,     GM_COUNT_NO_LANE,
        GM_COUNT_WRITE_FAILED, GM_COUNT_FLIGHT_MISSED, GM_COUNT_FLIGHT_LATE,
        GM_COUNT_LANE_LIMIT,   GM_COUNT_CONTEXT_LIMIT, GM_COUNT_CONTEXT_DEPTH,
        GM_COUNT_HANDLE_LIMIT, GM_COUNT_DEVICE_LIMIT,  GM_COUNT_NEWER_ABI_VITAL,
    };
    bool inexact = lost || gm_fold_missed || gm_fold_lost_frees || gm_fold_unknown_frees;
    for (size_t i = 0; i < sizeof(counters) / sizeof(counters[0]); i++)
        inexact |= __atomic_load_n(&gm_file.header->counters[counters[i]], __ATOMIC_RELAXED) != 0;
    return inexact;
}

enum gm_live_state gm_live_begin(void)
{
    uint64_t asked = gm_ticks_before();
    bool settled = false;
    for (unsigned tries = 0; !settled && tries < PATIENCE; tries++) {
        if (tries > 0) {
            unlock_all();
            stand_aside(tries);
        }
        lock_all();
        settled = fold_all() >= asked;
    }
    if (!gm_sink->merges_lanes)
        rest_until_next();
    if (!settled)
        return GM_LIVE_UNSETTLED;
    return is_inexact() ? GM_LIVE_INEXACT : GM_LIVE_KNOWN;
}

void gm_live_end(void)
{
    unlock_all();
}

void gm_live_forget(void)
{
    gm_lock_forget(&live_lock);
    gm_stored_forget();
    if (sources)
        memset(sources, 0, sources_used * sizeof(sources[0]));
    sources_used = 0;
    is_prepared = false;
    lost = 0;
}
