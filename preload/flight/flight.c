/* See flight.h. */
#include "flight/flight.h"
#include "base/config.h"
#include "base/count.h"
#include "flight/flight_log.h"
#include "flight/fold.h"
#include "flight/merge.h"
#include "ring/block.h"
#include "ring/lane.h"
#include "writer/trace_file.h"
#include <string.h>
#include <sys/mman.h>

#define RECORD_BYTES 64u /* more than a record takes in a block, whatever it holds */

/* How often a full ring is looked at before its records are folded ahead of earlier ones that other
 * threads are about to commit; gm_thread_look sleeps for a tenth of a millisecond in between. */
#define PATIENCE 1000u

/* Of the checkpoint being made; mapped once. */
static struct {
    struct gm_record *records; /* GM_BLOCK_RECORDS_MAX */
    uint16_t *lanes;
} chunk;

static uint64_t latest_end;     /* position behind the latest checkpoint */
static uint64_t latest_size;    /* bytes of it */
static uint32_t too_many;       /* entries for which there was no room; 0: never */
static uint64_t late_counted;   /* likewise */
static uint64_t missed_counted; /* what of the fold's count is in the header */

static bool begin_flight(void)
{
    size_t size = GM_BLOCK_RECORDS_MAX * (sizeof(chunk.records[0]) + sizeof(chunk.lanes[0]));
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    madvise(memory, size, MADV_DONTFORK);
    chunk.records = (struct gm_record *)memory;
    chunk.lanes = (uint16_t *)(chunk.records + GM_BLOCK_RECORDS_MAX);
    return gm_merge_prepare(NULL) && gm_log_create(gm_config.flight_size);
}

/* ---- folding --------------------------------------------------------------------------------- */

/* Notes what all lanes have committed. Returns the time before which no thread will commit anything
 * more. */
static uint64_t look_at_lanes(void)
{
    uint64_t safe_time = gm_merge_begin_look();
    for (uint32_t number = 0; number < gm_merge_lane_count; number++) {
        struct gm_merge_lane *lane = &gm_merge_lanes[number];
        const struct gm_thread *thread = gm_thread_at(number);
        gm_merge_look_at(number, &safe_time);
        lane->records = thread->records;
        lane->mask = thread->mask;
        lane->loaded = lane->head;
    }
    return safe_time;
}

/* Gives up on the threads that lane `waiting` waits for: the host must not wait for a thread that
 * cannot run. A record that such a thread commits later is folded out of order. */
static void lose_patience(uint32_t waiting)
{
    for (uint32_t lane = 0; lane < gm_merge_lane_count; lane++) {
        if (lane == waiting || !gm_merge_lanes[lane].awaited)
            continue;
        gm_merge_lanes[lane].given_up = true;
        gm_count(GM_COUNT_FLIGHT_LATE, 1);
    }
    gm_merge_lanes[waiting].waited = 0;
    gm_merge_fold_before(look_at_lanes());
}

static void count_troubles(void)
{
    gm_count(GM_COUNT_FLIGHT_MISSED, gm_fold_missed - missed_counted);
    missed_counted = gm_fold_missed;
    gm_count(GM_COUNT_FLIGHT_LATE, gm_fold_late - late_counted);
    late_counted = gm_fold_late;
}

uint64_t gm_flight_fold(void)
{
    uint64_t settled = look_at_lanes();
    gm_merge_fold_before(settled);
    count_troubles();
    return settled;
}

static uint64_t fold_committed(const struct gm_thread *thread)
{
    uint32_t lane = thread->number;
    uint64_t tail = thread->lane->tail;
    gm_merge_fold_before(look_at_lanes());
    bool is_full = gm_merge_lanes[lane].head - tail > thread->mask;
    if (!is_full || gm_merge_lanes[lane].next > tail)
        gm_merge_lanes[lane].waited = 0;
    else if (++gm_merge_lanes[lane].waited > PATIENCE)
        lose_patience(lane);
    count_troubles();
    return gm_merge_lanes[lane].next;
}

/* ---- checkpoints ----------------------------------------------------------------------------- */

struct checkpoint {
    struct gm_checkpoint *at; /* in the area */
    uint32_t chunk_count;
    bool failed;
};

static uint32_t block_records(void)
{
    uint64_t records = gm_log_capacity() / 8 / RECORD_BYTES;
    return records < GM_BLOCK_RECORDS_MAX ? (uint32_t)records : GM_BLOCK_RECORDS_MAX;
}

static bool append_extent(enum gm_extent_type type, const struct gm_block *block, const void *bytes,
                          uint64_t spare)
{
    char *to = gm_log_reserve(type, sizeof(*block) + block->stored_size, spare);
    if (!to)
        return false;
    memcpy(to, block, sizeof(*block));
    memcpy(to + sizeof(*block), bytes, block->stored_size);
    gm_log_complete(to);
    return true;
}

static void flush(struct checkpoint *checkpoint)
{
    struct gm_run run = {chunk.records, GM_BLOCK_RECORDS_MAX - 1, 0, checkpoint->chunk_count};
    if (!run.count || checkpoint->failed)
        return;
    struct gm_block block = {
        .count = run.count,
        .first_sequence = checkpoint->at->carried,
        .first_time = chunk.records[0].time,
        .last_time = chunk.records[run.count - 1].time,
    };
    const unsigned char *bytes = gm_block_encode(&run, chunk.lanes, &block);
    checkpoint->failed = !bytes || !append_extent(GM_EXTENT_CARRIED, &block, bytes, 0);
    checkpoint->at->carried += run.count;
    checkpoint->at->blocks++;
    checkpoint->chunk_count = 0;
}

static void take_carried(void *argument, const struct gm_record *record, uint32_t lane)
{
    struct checkpoint *checkpoint = argument;
    if (checkpoint->failed)
        return;
    chunk.records[checkpoint->chunk_count] = *record;
    chunk.lanes[checkpoint->chunk_count] = (uint16_t)lane;
    if (++checkpoint->chunk_count == block_records())
        flush(checkpoint);
}

static void fill_checkpoint(struct gm_checkpoint *checkpoint)
{
    uint64_t *first_sequence = (uint64_t *)(checkpoint + 1);
    *checkpoint = (struct gm_checkpoint){
        .time = gm_merge_latest_time,
        .lanes = gm_merge_lane_count,
        .before = gm_fold_totals,
        .lost_frees = gm_fold_lost_frees,
        .unknown_frees = gm_fold_unknown_frees,
    };
    for (uint32_t lane = 0; lane < gm_merge_lane_count; lane++)
        first_sequence[lane] = gm_merge_lanes[lane].next;
}

static void write_checkpoint(void)
{
    uint64_t before = gm_log_end();
    size_t size = sizeof(struct gm_checkpoint) + gm_merge_lane_count * sizeof(uint64_t);
    struct checkpoint checkpoint = {.at = gm_log_reserve(GM_EXTENT_CHECKPOINT, size, 0)};
    if (checkpoint.at) {
        const struct gm_extent *extent = (const struct gm_extent *)checkpoint.at - 1;
        uint64_t start = gm_log_end() - extent->length;
        fill_checkpoint(checkpoint.at);
        gm_fold_emit(take_carried, &checkpoint);
        flush(&checkpoint);
        if (!checkpoint.failed) {
            gm_log_complete(checkpoint.at);
            gm_log_publish();
            gm_log_add_start(start);
            latest_end = gm_log_end();
            latest_size = latest_end - start;
            too_many = 0;
            return;
        }
    }
    gm_log_rewind(before);
    too_many = gm_carry_count();
}

/* Whether it is time for a checkpoint: four in the area, fewer the more is alive, so that there is
 * room for the next before the latest must go. */
static bool is_due(void)
{
    uint64_t capacity = gm_log_capacity(), interval = capacity / 4;
    uint64_t room = latest_size * 2 < capacity ? (capacity - latest_size * 2) / 3 : 0;
    if (interval > room)
        interval = room;
    return gm_log_end() - latest_end >= interval;
}

/* After one that found no room, only when less is alive. */
static bool is_hopeful(void)
{
    return too_many == 0 || gm_carry_count() < too_many - too_many / 8;
}

/* What blocks leave free: a checkpoint like the latest always finds room, so that the recorder
 * finds its way back once less is alive. */
static uint64_t spare_room(void)
{
    uint64_t least = gm_log_capacity() / 8;
    return latest_size > least ? latest_size : least;
}

/* Takes a block. Where a checkpoint is due it comes behind the block and covers that too: the block's
 * records are folded. */
static bool write_block(const struct gm_block *block, const void *bytes)
{
    gm_lock_take(&gm_file.lock);
    gm_trace_update_clock();
    gm_lock_release(&gm_file.lock);
    bool written = append_extent(GM_EXTENT_BLOCK, block, bytes, spare_room());
    if (written)
        gm_log_publish();
    if ((written && !is_due()) || !is_hopeful())
        return written;
    write_checkpoint();
    bool checkpoint_covers_block = too_many == 0;
    return written || checkpoint_covers_block;
}

void gm_flight_forget(void)
{
    gm_fold_forget();
    gm_merge_forget();
    gm_log_forget();
    memset(&chunk, 0, sizeof(chunk));
    latest_end = latest_size = missed_counted = late_counted = 0;
    too_many = 0;
}

const struct gm_sink gm_flight_sink = {
    .merges_lanes = true,
    .refused = GM_COUNT_FLIGHT_FULL,
    .begin = begin_flight,
    .ready = fold_committed,
    .block_records = block_records,
    .write = write_block,
    .seal = gm_log_seal,
};
