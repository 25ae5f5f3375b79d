/* See pack.h. */
#include "ring/pack.h"
#include "base/assert.h"
#include "base/change.h"
#include "base/count.h"
#include "ring/sink.h"

/* How far the lane is to be packed now. */
static uint64_t pack_end(const struct gm_thread *thread, uint64_t tail)
{
    uint64_t end = gm_sink->ready(thread), most = gm_sink->block_records();
    return end - tail < most ? end : tail + most;
}

void gm_pack(struct gm_thread *thread)
{
    GM_ASSERT(gm_lane_is_valid(thread));
    struct gm_lane *lane = thread->lane;
    uint64_t tail = lane->tail, end = pack_end(thread, tail);
    struct gm_run run = {thread->records, thread->mask, tail, (uint32_t)(end - tail)};
    if (!run.count)
        return;
    struct gm_block block = {
        .lane = thread->number,
        .count = run.count,
        .first_sequence = tail,
        .first_time = gm_run_at(&run, 0)->time,
        .last_time = gm_run_at(&run, run.count - 1)->time,
    };
    const unsigned char *bytes = gm_block_encode(&run, NULL, &block);
    gm_change_begin();
    if (!bytes)
        gm_count(GM_COUNT_WRITE_FAILED, run.count);
    else if (!gm_sink->write(&block, bytes))
        gm_count(gm_sink->refused, run.count);
    __atomic_store_n(&lane->tail, end, __ATOMIC_RELEASE);
    gm_change_end();
    GM_ASSERT(gm_lane_is_valid(thread));
}
