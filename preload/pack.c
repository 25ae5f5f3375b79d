/*
 * Packs a lane's records into a block: columns of differences, which zstd then finds easy.
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

static unsigned char *put_varint(unsigned char *at, uint64_t value)
{
    while (value >= 0x80) {
        *at++ = (unsigned char)(value | 0x80);
        value >>= 7;
    }
    *at++ = (unsigned char)value;
    return at;
}

static uint64_t zigzag(uint64_t difference)
{
    return (difference << 1) ^ (uint64_t)((int64_t)difference >> 63);
}

/* The n-th of the records to pack, and the column loops: one column at a time keeps each loop
 * trivial. */
struct run {
    const struct gm_record *ring;
    uint64_t mask;
    uint64_t first; /* sequence */
    uint32_t count;
};

static const struct gm_record *at(const struct run *run, uint32_t n)
{
    return &run->ring[(run->first + n) & run->mask];
}

#define COLUMN(name, expression)                                                                   \
    static unsigned char *put_##name(const struct run *run, unsigned char *to)                     \
    {                                                                                              \
        for (uint32_t n = 0; n < run->count; n++) {                                                \
            const struct gm_record *record = at(run, n);                                           \
            const struct gm_record *before = n ? at(run, n - 1) : &nothing;                        \
            (void)before;                                                                          \
            expression;                                                                            \
        }                                                                                          \
        return to;                                                                                 \
    }

static const struct gm_record nothing;

COLUMN(type, *to++ = record->type)
COLUMN(time, to = put_varint(to, n ? record->time - before->time : 0))
COLUMN(api, to = put_varint(to, record->api))
COLUMN(stack, to = put_varint(to, zigzag((uint64_t)record->stack - before->stack)))
COLUMN(address, to = put_varint(to, zigzag(record->address - before->address)))
COLUMN(size, to = put_varint(to, record->size))
COLUMN(aux, to = put_varint(to, zigzag(record->aux - before->aux)))
COLUMN(extra, to = put_varint(to, record->extra))
COLUMN(context, to = put_varint(to, record->context))
COLUMN(kind, *to++ = record->kind)
COLUMN(device, *to++ = (unsigned char)record->device)
COLUMN(flags, *to++ = record->flags)

typedef unsigned char *column_function(const struct run *run, unsigned char *to);

static column_function *const columns[GM_COLUMNS] = {
    [GM_COLUMN_TYPE] = put_type,       [GM_COLUMN_TIME] = put_time,
    [GM_COLUMN_API] = put_api,         [GM_COLUMN_STACK] = put_stack,
    [GM_COLUMN_ADDRESS] = put_address, [GM_COLUMN_SIZE] = put_size,
    [GM_COLUMN_AUX] = put_aux,         [GM_COLUMN_EXTRA] = put_extra,
    [GM_COLUMN_CONTEXT] = put_context, [GM_COLUMN_KIND] = put_kind,
    [GM_COLUMN_DEVICE] = put_device,   [GM_COLUMN_FLAGS] = put_flags,
};

static bool all_zero(const unsigned char *bytes, size_t size)
{
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

static void encode(const struct run *run, struct gm_block *block)
{
    unsigned char *to = work.columns;
    for (int column = 0; column < GM_COLUMNS; column++) {
        unsigned char *end = columns[column](run, to);
        if (all_zero(to, (size_t)(end - to)))
            end = to;
        block->column_size[column] = (uint32_t)(end - to);
        to = end;
    }
    block->raw_size = (uint32_t)(to - work.columns);
    for (uint32_t n = 0; n < run->count; n++)
        if (at(run, n)->type == GM_EVENT_ALLOC)
            block->allocated_bytes += at(run, n)->size;
}

static int write_block(struct gm_block *block)
{
    const unsigned char *bytes = work.columns;
    size_t size = ZSTD_compressCCtx(work.context, work.packed, work.packed_size, work.columns,
                                    block->raw_size, LEVEL);
    block->codec = ZSTD_isError(size) ? GM_CODEC_NONE : GM_CODEC_ZSTD;
    if (block->codec == GM_CODEC_ZSTD)
        bytes = work.packed;
    else
        size = block->raw_size;
    block->stored_size = (uint32_t)size;
    block->checksum = XXH3_64bits(bytes, size);
    gm_lock_take(&gm_file.lock);
    int error = gm_trace_write_extent(GM_EXTENT_BLOCK, 0, block, sizeof(*block), bytes, size);
    gm_trace_update_clock();
    gm_lock_release(&gm_file.lock);
    return error;
}

void gm_pack(struct gm_thread *thread)
{
    struct gm_lane *lane = thread->lane;
    uint64_t tail = lane->tail;
    uint64_t head = __atomic_load_n(&lane->head, __ATOMIC_ACQUIRE);
    if (head - tail > GM_BLOCK_RECORDS_MAX)
        head = tail + GM_BLOCK_RECORDS_MAX;
    struct run run = {thread->records, thread->mask, tail, (uint32_t)(head - tail)};
    if (!run.count)
        return;
    struct gm_block block = {
        .lane = thread->number,
        .count = run.count,
        .first_sequence = tail,
        .first_time = at(&run, 0)->time,
        .last_time = at(&run, run.count - 1)->time,
    };
    int error = -ENOMEM;
    if (prepare()) {
        encode(&run, &block);
        error = write_block(&block);
    }
    if (error)
        gm_count(GM_COUNT_WRITE_FAILED, run.count);
    __atomic_store_n(&lane->tail, head, __ATOMIC_RELEASE);
}

/* The parent may have been packing, or mapping the workspaces, when it forked: begin afresh. */
void gm_pack_forget(void)
{
    gm_pack_lock = (struct gm_lock){0};
    memset(&work, 0, sizeof(work));
}
