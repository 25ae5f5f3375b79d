/* See merge.h. */
#include "flight/merge.h"
#include "base/room.h"
#include "base/ticks.h"
#include "flight/fold.h"
#include <linux/membarrier.h>
#include <string.h>

struct gm_merge_lane *gm_merge_lanes;
uint32_t gm_merge_lane_count;
uint64_t gm_merge_latest_time;

static bool (*load_more)(uint32_t lane);

bool gm_merge_prepare(bool (*load)(uint32_t lane))
{
    if (!GM_ROOM(&gm_merge_lanes, GM_LANES_MAX) || !gm_fold_prepare())
        return false;
    load_more = load;
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    return true;
}

static const struct gm_record *record_at(const struct gm_merge_lane *lane, uint64_t sequence)
{
    return &lane->records[(sequence - lane->first) & lane->mask];
}

/* Whether the record is there, now that it is asked for. */
static bool has_record(uint32_t number, uint64_t sequence)
{
    const struct gm_merge_lane *lane = &gm_merge_lanes[number];
    while (gm_unlikely(sequence >= lane->loaded))
        if (sequence >= lane->head || !load_more || !load_more(number))
            return false;
    return true;
}

/* The time by which the lane's next record is ordered; UINT64_MAX: there is none before `cut`. */
static uint64_t next_time(uint32_t number, uint64_t cut)
{
    const struct gm_merge_lane *lane = &gm_merge_lanes[number];
    if (lane->next == lane->head || !has_record(number, lane->next))
        return UINT64_MAX;
    uint64_t time = record_at(lane, lane->next)->time;
    if (time < lane->time)
        time = lane->time;
    return time < cut ? time : UINT64_MAX;
}

static void fold_next(uint32_t number, uint64_t time)
{
    struct gm_merge_lane *lane = &gm_merge_lanes[number];
    uint64_t next = lane->next;
    struct gm_record record = *record_at(lane, next),
                     detail; /* to load more replaces what is there */
    bool has_detail = false;
    if (next + 1 < lane->head && has_record(number, next + 1)) {
        detail = *record_at(lane, next + 1);
        has_detail = detail.type == GM_EVENT_DETAIL;
    }
    if (record.type != GM_EVENT_DETAIL) /* one that its record has been folded without */
        gm_fold(&record, has_detail ? &detail : NULL, number);
    lane->next = next + 1 + has_detail;
    lane->time = time;
    if (time > gm_merge_latest_time)
        gm_merge_latest_time = time;
}

void gm_merge_fold_before(uint64_t cut)
{
    for (;;) {
        uint32_t first = 0;
        uint64_t time = UINT64_MAX, other = UINT64_MAX; /* earliest of all, and of the rest */
        for (uint32_t lane = 0; lane < gm_merge_lane_count; lane++) {
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

/* The time before which no thread will commit anything more: a thread that may have taken a time
 * already took it after that of its latest record, and any other thread will take one that is later
 * than this call. */
uint64_t gm_merge_begin_look(void)
{
    uint64_t now = gm_ticks_before();
    (void)gm_ticks_after(); /* for its fence: nothing below is read before that time is taken */
    /* membarrier makes every thread's `committing` store visible, so any thread that took a time
     * before `now` is seen; the threads need no fence of their own. */
    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0)
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    gm_merge_lane_count = gm_thread_count();
    return now;
}

void gm_merge_look_at(uint32_t number, uint64_t *safe_time)
{
    struct gm_merge_lane *lane = &gm_merge_lanes[number];
    const struct gm_thread *thread = gm_thread_at(number);
    bool committing = __atomic_load_n(&thread->committing, __ATOMIC_ACQUIRE); /* before the head */
    uint64_t head = __atomic_load_n(&gm_thread_lane(thread)->head, __ATOMIC_ACQUIRE);
    if (head != lane->head) {
        /* The owner may use a slot again once the tail has passed it, which moves only with the pack
         * lock: what is packed is not read here, and an earlier time is as safe. */
        if (head != __atomic_load_n(&gm_thread_lane(thread)->tail, __ATOMIC_RELAXED)) {
            uint64_t time = thread->records[(head - 1) & thread->mask].time;
            lane->latest = time > lane->latest ? time : lane->latest;
        }
        lane->head = head;
        lane->given_up = false;
    }
    lane->awaited = committing && !lane->given_up;
    if (lane->awaited && lane->latest < *safe_time)
        *safe_time = lane->latest;
}

void gm_merge_forget(void)
{
    if (gm_merge_lanes)
        memset(gm_merge_lanes, 0, gm_merge_lane_count * sizeof(gm_merge_lanes[0]));
    gm_merge_latest_time = 0;
    gm_merge_lane_count = 0;
    load_more = NULL;
}
