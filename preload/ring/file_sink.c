/* The sink of a trace that grows: each block is an extent behind all others. */
#include "ring/lane.h"
#include "ring/sink.h"
#include "writer/trace_file.h"

static bool begin_file_sink(void)
{
    return true;
}

static uint64_t all_committed(const struct gm_thread *thread)
{
    return __atomic_load_n(&thread->lane->head, __ATOMIC_ACQUIRE);
}

static uint32_t block_records(void)
{
    return GM_BLOCK_RECORDS_MAX;
}

static bool append_block(const struct gm_block *block, const void *bytes)
{
    gm_lock_take(&gm_file.lock);
    int error =
        gm_trace_write_extent(GM_EXTENT_BLOCK, 0, block, sizeof(*block), bytes, block->stored_size);
    gm_trace_update_clock();
    gm_lock_release(&gm_file.lock);
    return error == 0;
}

static void seal_nothing(void)
{
    /* Extents that are written once have checksums. */
}

const struct gm_sink gm_file_sink = {
    .refused = GM_COUNT_WRITE_FAILED,
    .begin = begin_file_sink,
    .ready = all_committed,
    .block_records = block_records,
    .write = append_block,
    .seal = seal_nothing,
};
