/* See flight.h. */
#include "flight/flight.h"
#include <linux/membarrier.h>
#include <string.h>
#include <sys/mman.h>
#define XXH_INLINE_ALL
#include "base/config.h"
#include "base/count.h"
#include "base/ticks.h"
#include "flight/flight_log.h"
#include "flight/fold.h"
#include "ring/block.h"
#include "ring/lane.h"
#include "writer/trace_file.h"
#include <xxhash.h>

#define RECORD_BYTES 64u /* more than a record takes in a block, whatever it holds */

/* How often a full ring is looked at before its records are folded ahead of earlier ones that other
 * threads are about to commit; gm_thread_look sleeps for a tenth of a millisecond in between. */
#define PATIENCE 1000u

static struct {
    uint64_t next;   /* first record that is not folded */
    uint64_t head;   /* what was committed at the latest look */
    uint64_t latest; /* time of the last of those */
    uint64_t time;   /* of its latest record folded: within a lane time does not go back */
    uint32_t waited; /* for others, with a full ring */
    bool awaited;    /* it may commit a record of before the latest look */
    bool given_up;   /* others have waited in vain for its next record */
} lanes[GM_LANES_MAX];

static uint32_t lane_count; /* at the latest look */

/* Of the checkpoint being made; mapped once. */
static struct {
    struct gm_record *records; /* GM_BLOCK_RECORDS_MAX */
    uint16_t *lanes;
} chunk;

static uint64_t latest_time;    /* of the records folded */
static uint64_t latest_end;     /* position behind the latest checkpoint */
static uint64_t latest_size;    /* bytes of it */
static uint32_t too_many;       /* entries for which there was no room; 0: never */
static uint64_t late_counted;   /* likewise */
static uint64_t missed_counted; /* what of the fold's count is in the header */

static bool begin(void)
{
    size_t size = GM_BLOCK_RECORDS_MAX * (sizeof(chunk.records[0]) + sizeof(chunk.lanes[0]));
    char *memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    madvise(memory, size, MADV_DONTFORK);
    chunk.records = (struct gm_record *)memory;
    chunk.lanes = (uint16_t *)(chunk.records + GM_BLOCK_RECORDS_MAX);
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    return gm_log_create(gm_config.flight_size);
}

/* ---- folding --------------------------------------------------------------------------------- */

static const struct gm_record *record_at(uint32_t lane, uint64_t sequence)
{
    const struct gm_thread *thread = gm_thread_at(lane);
    return &thread->records[sequence & thread->mask];
}

/* The time by which the lane's next record is ordered; UINT64_MAX: there is none before `cut`. */
static uint64_t next_time(uint32_t lane, uint64_t cut)
{
    if (lanes[lane].next == lanes[lane].head)
        return UINT64_MAX;
    uint64_t time = record_at(lane, lanes[lane].next)->time;
    if (time < lanes[lane].time)
        time = lanes[lane].time;
    return time < cut ? time : UINT64_MAX;
}

static void fold_next(uint32_t lane, uint64_t time)
{
    uint64_t next = lanes[lane].next;
    const struct gm_record *record = record_at(lane, next), *detail = NULL;
    if (next + 1 < lanes[lane].head && record_at(lane, next + 1)->type == GM_EVENT_DETAIL)
        detail = record_at(lane, next + 1);
    if (record->type != GM_EVENT_DETAIL) /* one that its record has been folded without */
        gm_fold(record, detail, lane);
    lanes[lane].next = next + 1 + (detail != NULL);
    lanes[lane].time = time;
    if (time > latest_time)
        latest_time = time;
}

/* Merges the lanes as a reader does: by time, then by number. */
static void fold_before(uint64_t cut)
{
    for (;;) {
        uint32_t first = 0;
        uint64_t time = UINT64_MAX, other = UINT64_MAX; /* earliest of all, and of the rest */
        for (uint32_t lane = 0; lane < lane_count; lane++) {
            uint64_t its = next_time(lane, cut);
            if (its < time) {
                other = time;
                time = its;
                first = lane;
            } else if (its < other) {
                other = its;
            }
        }
        if (time == UINT64_MAX)
            return;
        do { /* at equal times the lanes are looked at again */
            fold_next(first, time);
            time = next_time(first, cut);
        } while (time < other);
    }
}

/* Notes what the lane has committed. Lowers *safe_time to the lane's latest record if its owner may
 * still commit one behind that. */
static void look_at_lane(uint32_t lane, uint64_t *safe_time)
{
    const struct gm_thread *thread = gm_thread_at(lane);
    bool committing = __atomic_load_n(&thread->committing, __ATOMIC_ACQUIRE); /* before the head */
    uint64_t head = __atomic_load_n(&gm_thread_lane(thread)->head, __ATOMIC_ACQUIRE);
    if (head != lanes[lane].head) {
        /* Safe to read: packing never goes beyond the head seen earlier, so this slot cannot be
         * reused yet. */
        uint64_t time = record_at(lane, head - 1)->time;
        lanes[lane].latest = time > lanes[lane].latest ? time : lanes[lane].latest;
        lanes[lane].head = head;
        lanes[lane].given_up = false;
    }
    lanes[lane].awaited = committing && !lanes[lane].given_up;
    if (lanes[lane].awaited && lanes[lane].latest < *safe_time)
        *safe_time = lanes[lane].latest;
}

/* Notes what all lanes have committed. Returns the time before which no thread will commit anything
 * more: a thread that may have taken a time already took it after that of its latest record, and any
 * other thread will take one that is later than this call. */
static uint64_t look_at_lanes(void)
{
    uint64_t safe_time = gm_ticks_before();
    (void)gm_ticks_after(); /* for its fence: nothing below is read before that time is taken */
    /* membarrier makes every thread's `committing` store visible, so any thread that took a time
     * before safe_time is seen; the threads need no fence of their own. */
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    lane_count = gm_thread_count();
    for (uint32_t lane = 0; lane < lane_count; lane++)
        look_at_lane(lane, &safe_time);
    return safe_time;
}

/* Gives up on the threads that lane `waiting` waits for: the host must not wait for a thread that
 * cannot run. A record that such a thread commits later is folded out of order. */
static void lose_patience(uint32_t waiting)
{
    for (uint32_t lane = 0; lane < lane_count; lane++) {
        if (lane == waiting || !lanes[lane].awaited)
            continue;
        lanes[lane].given_up = true;
        gm_count(GM_COUNT_FLIGHT_LATE, 1);
    }
    lanes[waiting].waited = 0;
    fold_before(look_at_lanes());
}

static uint64_t fold_committed(const struct gm_thread *thread)
{
    uint32_t lane = thread->number;
    uint64_t tail = thread->lane->tail;
    fold_before(look_at_lanes());
    bool is_full = lanes[lane].head - tail > thread->mask;
    if (!is_full || lanes[lane].next > tail)
        lanes[lane].waited = 0;
    else if (++lanes[lane].waited > PATIENCE)
        lose_patience(lane);
    gm_count(GM_COUNT_FLIGHT_MISSED, gm_fold_missed - missed_counted);
    missed_counted = gm_fold_missed;
    gm_count(GM_COUNT_FLIGHT_LATE, gm_fold_late - late_counted);
    late_counted = gm_fold_late;
    return lanes[lane].next;
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

static bool append(enum gm_extent_type type, const struct gm_block *block, const void *bytes,
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
    checkpoint->failed = !bytes || !append(GM_EXTENT_CARRIED, &block, bytes, 0);
    checkpoint->at->carried += run.count;
    checkpoint->at->blocks++;
    checkpoint->chunk_count = 0;
}

static void take(void *argument, const struct gm_record *record, uint32_t lane)
{
    struct checkpoint *checkpoint = argument;
    if (checkpoint->failed)
        return;
    chunk.records[checkpoint->chunk_count] = *record;
    chunk.lanes[checkpoint->chunk_count] = (uint16_t)lane;
    if (++checkpoint->chunk_count == block_records())
        flush(checkpoint);
}

static void fill(struct gm_checkpoint *checkpoint)
{
    uint64_t *first_sequence = (uint64_t *)(checkpoint + 1);
    *checkpoint = (struct gm_checkpoint){
        .time = latest_time,
        .lanes = lane_count,
        .before = gm_fold_totals,
        .lost_frees = gm_fold_lost_frees,
        .unknown_frees = gm_fold_unknown_frees,
    };
    for (uint32_t lane = 0; lane < lane_count; lane++)
        first_sequence[lane] = lanes[lane].next;
}

static void write_checkpoint(void)
{
    uint64_t before = gm_log_end();
    size_t size = sizeof(struct gm_checkpoint) + lane_count * sizeof(uint64_t);
    struct checkpoint checkpoint = {.at = gm_log_reserve(GM_EXTENT_CHECKPOINT, size, 0)};
    if (checkpoint.at) {
        const struct gm_extent *extent = (const struct gm_extent *)checkpoint.at - 1;
        uint64_t start = gm_log_end() - extent->length;
        fill(checkpoint.at);
        gm_fold_emit(take, &checkpoint);
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
    bool written = append(GM_EXTENT_BLOCK, block, bytes, spare_room());
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
    gm_log_forget();
    memset(lanes, 0, lane_count * sizeof(lanes[0]));
    memset(&chunk, 0, sizeof(chunk));
    latest_time = latest_end = latest_size = missed_counted = late_counted = 0;
    lane_count = too_many = 0;
}

const struct gm_sink gm_flight_sink = {
    .merges_lanes = true,
    .refused = GM_COUNT_FLIGHT_FULL,
    .begin = begin,
    .ready = fold_committed,
    .block_records = block_records,
    .write = write_block,
    .seal = gm_log_seal,
};
