/* See block.h. */
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_initStaticCCtx: a context in our own memory */
#include "ring/block.h"
#include "ring/sink.h"
#include <sys/mman.h>
#include <zstd.h>

/*
 * After columnar encoding mostly times remain. They have no matches, only a skewed distribution of
 * bytes. So zstd searches in long steps, and codes by frequency what it finds no match for. Level 1
 * takes 6.4 ns per record and leaves 0.44 bytes of a loop's blocks, this level 2.2 ns and 0.49
 * bytes; of blocks with more variety, 16 ns and 2.5 bytes against 9 ns and 2.7 bytes.
 */
#define LEVEL (-50)

/* How many lanes can be packed at a time. Each packer takes up to 300 KiB of memory. */
#define PACKERS 4u

static struct packer {
    struct gm_lock lock;
    unsigned char *columns; /* GM_BLOCK_RAW_MAX */
    unsigned char *packed;  /* ZSTD_compressBound of that */
    size_t packed_size;
    ZSTD_CCtx *context;
} packers[PACKERS] = {
    {.lock = GM_LOCK(GM_RANK_PACKER)},
    {.lock = GM_LOCK(GM_RANK_PACKER_SECOND)},
    {.lock = GM_LOCK(GM_RANK_PACKER_THIRD)},
    {.lock = GM_LOCK(GM_RANK_PACKER_FOURTH)},
};

_Static_assert(PACKERS == 4, "each packer's lock has its rank");

static struct packer *packer_of(uint32_t lane)
{
    return &packers[gm_sink->merges_lanes ? 0 : lane % PACKERS];
}

struct gm_lock *gm_pack_lock(const struct gm_thread *thread)
{
    return &packer_of(thread->number)->lock;
}

static void *map_block(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

static bool prepare(struct packer *packer)
{
    if (packer->columns)
        return packer->context != NULL;
    size_t context_size = ZSTD_estimateCCtxSize(LEVEL);
    packer->packed_size = ZSTD_compressBound(GM_BLOCK_RAW_MAX);
    unsigned char *memory = map_block(context_size + GM_BLOCK_RAW_MAX + packer->packed_size);
    if (!memory)
        return false;
    packer->context = ZSTD_initStaticCCtx(memory, context_size); /* first: it must be aligned */
    packer->columns = memory + context_size;
    packer->packed = packer->columns + GM_BLOCK_RAW_MAX;
    if (!packer->context)
        return false;
    ZSTD_CCtx_setParameter(packer->context, ZSTD_c_compressionLevel, LEVEL);
    ZSTD_CCtx_setParameter(packer->context, ZSTD_c_literalCompressionMode, ZSTD_lcm_huffman);
    return true;
}

const unsigned char *gm_block_encode(const struct gm_run *run, const uint16_t *lanes,
                                     struct gm_block *block)
{
    struct packer *packer = packer_of(block->lane);
    if (!prepare(packer))
        return NULL;
    gm_columns_encode(run, packer->columns, block);
    if (lanes)
        gm_columns_add_lanes(lanes, packer->columns, block);
    size_t size = ZSTD_compress2(packer->context, packer->packed, packer->packed_size,
                                 packer->columns, block->raw_size);
    block->codec = ZSTD_isError(size) ? GM_CODEC_NONE : GM_CODEC_ZSTD;
    block->stored_size = block->codec == GM_CODEC_ZSTD ? (uint32_t)size : block->raw_size;
    return block->codec == GM_CODEC_ZSTD ? packer->packed : packer->columns;
}

/* The parent may have been packing, or mapping the workspaces, when it forked: begin afresh. */
void gm_blocks_forget(void)
{
    for (uint32_t i = 0; i < PACKERS; i++)
        packers[i] = (struct packer){.lock = GM_LOCK(packers[i].lock.rank)};
}

void gm_pack_lock_all(void)
{
    for (uint32_t i = 0; i < PACKERS; i++)
        gm_lock_take(&packers[i].lock);
}

void gm_pack_release_all(void)
{
    for (uint32_t i = PACKERS; i > 0; i--)
        gm_lock_release(&packers[i - 1].lock);
}
