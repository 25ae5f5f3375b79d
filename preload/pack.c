/*
 * Packs a lane's records into a block: columns (columns.c), compressed.
 *
 * Guarantees: the block is complete in the file and covered by file_end before the lane's tail
 * moves, so a record stands in the ring, in a block, or (killed in between) in both. Only committed
 * records are packed, and the owner cannot overwrite them meanwhile, because tail has not passed
 * them. Blocks of a lane follow each other without gap or overlap, but for records the disk would
 * not take: those are counted and the gap tells how many. No malloc: workspaces are mapped once.
 * One packer at a time (gm_pack_lock): the drainer, or a thread whose own ring is full.
 */
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_initStaticCCtx: a context in our own memory */
#define XXH_INLINE_ALL
#include <string.h>
#include <sys/mman.h>
#include <xxhash.h>
#include <zstd.h>
#include "config.h"
#include "flight.h"
#include "pack.h"
#include "thread.h"
#include "trace_file.h"

#define LEVEL 1 /* beyond it the drainer's time grows faster than the trace shrinks */

struct gm_lock gm_pack_lock;

static struct {
    unsigned char *columns; /* GM_BLOCK_RAW_MAX */
    unsigned char *packed;  /* ZSTD_compressBound of that */
    size_t packed_size;
    ZSTD_CCtx *context;
} work;

static void *map_private(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static bool prepare(void)
{
    if (work.columns)
        return work.context != NULL;
    size_t context_size = ZSTD_estimateCCtxSize(LEVEL);
    work.packed_size = ZSTD_compressBound(GM_BLOCK_RAW_MAX);
    unsigned char *memory = map_private(context_size + GM_BLOCK_RAW_MAX + work.packed_size);
    if (!memory)
        return false;
    work.context = ZSTD_initStaticCCtx(memory, context_size); /* first: it must be aligned */
    work.columns = memory + context_size;
    work.packed = work.columns + GM_BLOCK_RAW_MAX;
    return work.context != NULL;
}

/* The lanes of carried records: one more column, behind the others. */
static void add_lanes(const uint16_t *lanes, struct gm_block *block)
{
    unsigned char *at = work.columns + block->raw_size;
    for (uint32_t n = 0; n < block->count; n++) {
        for (uint32_t rest = lanes[n];
             (*at++ = (unsigned char)(rest > 127 ? rest | 128 : rest)) > 127;)
            rest >>= 7;
    }
    block->lane_column_size = (uint32_t)(at - work.columns) - block->raw_size;
    block->raw_size += block->lane_column_size;
}

const unsigned char *gm_pack_records(const struct gm_run *run, const uint16_t *lanes,
                                     struct gm_block *block)
{
    if (!prepare())
        return NULL;
    gm_columns_encode(run, work.columns, block);
    if (lanes)
        add_lanes(lanes, block);
    size_t size = ZSTD_compressCCtx(work.context, work.packed, work.packed_size, work.columns,
                                    block->raw_size, LEVEL);
    block->codec = ZSTD_isError(size) ? GM_CODEC_NONE : GM_CODEC_ZSTD;
    block->stored_size = block->codec == GM_CODEC_ZSTD ? (uint32_t)size : block->raw_size;
    const unsigned char *bytes = block->codec == GM_CODEC_ZSTD ? work.packed : work.columns;
    block->checksum = XXH3_64bits(bytes, block->stored_size);
    return bytes;
}

static int write_block(const struct gm_block *block, const unsigned char *bytes)
{
    int error = 0;
    gm_lock_take(&gm_file.lock);
    if (!gm_config.flight)
        error = gm_trace_write_extent(GM_EXTENT_BLOCK, 0, block, sizeof(*block), bytes,
                                      block->stored_size);
    gm_trace_update_clock();
    gm_lock_release(&gm_file.lock);
    return error;
}

/* How far the lane is to be packed now. */
static uint64_t pack_end(const struct gm_thread *thread, uint64_t tail)
{
    uint64_t end = __atomic_load_n(&thread->lane->head, __ATOMIC_ACQUIRE);
    uint64_t most = GM_BLOCK_RECORDS_MAX;
    if (gm_config.flight) {
        end = gm_flight_fold(thread);
        most = gm_flight_block_records();
    }
    return end - tail < most ? end : tail + most;
}

void gm_pack(struct gm_thread *thread)
{
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
    const unsigned char *bytes = gm_pack_records(&run, NULL, &block);
    if (!bytes || write_block(&block, bytes) != 0)
        gm_count(GM_COUNT_WRITE_FAILED, run.count);
    else if (gm_config.flight && !gm_flight_write(&block, bytes))
        gm_count(GM_COUNT_FLIGHT_FULL, run.count);
    __atomic_store_n(&lane->tail, end, __ATOMIC_RELEASE);
}

/* The parent may have been packing, or mapping the workspaces, when it forked: begin afresh. */
void gm_pack_forget(void)
{
    gm_pack_lock = (struct gm_lock){0};
    memset(&work, 0, sizeof(work));
}
