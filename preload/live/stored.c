/* See stored.h. */
#define ZSTD_STATIC_LINKING_ONLY /* ZSTD_initStaticDCtx: a context in our own memory */
#include "live/stored.h"
#include "base/room.h"
#include "writer/columns_read.h"
#include "writer/trace_file.h"
#include <gpumem/checksum.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>

#define STORED_MAX (GM_BLOCK_RAW_MAX + GM_TRACE_PAGE) /* bytes of a block with its extent */

static struct {
    struct gm_stored *blocks; /* [0] is none */
    uint32_t count;           /* [0] included */
    uint32_t capacity;
    uint32_t waiting; /* that are not passed */
    uint64_t looked;  /* up to here the file was looked through */
} noted;

static struct {
    uint32_t first;
    uint32_t last;
} * lanes;                  /* GM_LANES_MAX, once something was looked for */
static uint32_t lanes_used; /* one past the largest */

/* To read with; mapped while it is needed. */
static struct {
    unsigned char *stored;  /* STORED_MAX */
    unsigned char *columns; /* GM_BLOCK_RAW_MAX */
    ZSTD_DCtx *context;
    size_t size;
} room;

static void *map_stored(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                    -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, size, MADV_DONTFORK);
    return at;
}

static bool read_at(uint64_t offset, void *to, size_t size)
{
    gm_lock_take(&gm_file.lock);
    bool read = gm_trace_read(offset, to, size) == 0;
    gm_lock_release(&gm_file.lock);
    return read;
}

static bool grow_stored(void)
{
    uint32_t capacity = noted.capacity ? noted.capacity * 2 : 1024;
    struct gm_stored *blocks = map_stored(capacity * sizeof(*blocks));
    if (!blocks)
        return false;
    if (noted.capacity) {
        memcpy(blocks, noted.blocks, noted.count * sizeof(*blocks));
        munmap(noted.blocks, noted.capacity * sizeof(*blocks));
    } else {
        noted.count = 1;
    }
    noted.blocks = blocks;
    noted.capacity = capacity;
    return true;
}

static bool note_stored(uint64_t offset, const struct gm_block *block)
{
    if (block->lane >= GM_LANES_MAX || block->count == 0 || block->count > GM_BLOCK_RECORDS_MAX)
        return false;
    if (noted.waiting == 0 && noted.capacity)
        noted.count = 1;
    if (noted.count >= noted.capacity && !grow_stored())
        return false;
    uint32_t number = noted.count++;
    noted.blocks[number] =
        (struct gm_stored){.offset = offset, .first = block->first_sequence, .count = block->count};
    *(lanes[block->lane].first ? &noted.blocks[lanes[block->lane].last].next
                               : &lanes[block->lane].first) = number;
    lanes[block->lane].last = number;
    if (block->lane >= lanes_used)
        lanes_used = block->lane + 1;
    noted.waiting++;
    return true;
}

bool gm_stored_find(uint64_t end)
{
    if (!GM_ROOM(&lanes, GM_LANES_MAX))
        return false;
    struct {
        struct gm_extent extent;
        struct gm_block block;
    } head;
    bool all = true;
    if (!noted.looked)
        noted.looked = GM_TRACE_PAGE;
    while (noted.looked < end) {
        if (!read_at(noted.looked, &head.extent, sizeof(head.extent)) ||
            head.extent.magic != GM_EXTENT_MAGIC || head.extent.length < sizeof(head.extent) ||
            head.extent.length > end - noted.looked)
            return false;
        if (head.extent.type == GM_EXTENT_BLOCK)
            all &= read_at(noted.looked + sizeof(head.extent), &head.block, sizeof(head.block)) &&
                   note_stored(noted.looked, &head.block);
        noted.looked += head.extent.length;
    }
    return all;
}

const struct gm_stored *gm_stored_next(uint32_t lane)
{
    return lanes && lanes[lane].first ? &noted.blocks[lanes[lane].first] : NULL;
}

void gm_stored_pass(uint32_t lane)
{
    lanes[lane].first = noted.blocks[lanes[lane].first].next;
    noted.waiting--;
}

static bool make_room_for_block(void)
{
    if (room.size)
        return room.context != NULL;
    size_t context =
        (ZSTD_estimateDCtxSize() + GM_EXTENT_ALIGN - 1) & ~(size_t)(GM_EXTENT_ALIGN - 1);
    unsigned char *memory = map_stored(context + GM_BLOCK_RAW_MAX + STORED_MAX);
    if (!memory)
        return false;
    room.context = ZSTD_initStaticDCtx(memory, context); /* first: it must be aligned */
    room.stored = memory + context;
    room.columns = room.stored + STORED_MAX;
    room.size = context + GM_BLOCK_RAW_MAX + STORED_MAX;
    return room.context != NULL;
}

static bool unpack(const struct gm_block *block, uint32_t stored_room)
{
    const unsigned char *stored = (const unsigned char *)(block + 1);
    if (block->raw_size > GM_BLOCK_RAW_MAX || block->stored_size > stored_room)
        return false;
    if (block->codec == GM_CODEC_ZSTD)
        return ZSTD_decompressDCtx(room.context, room.columns, block->raw_size, stored,
                                   block->stored_size) == block->raw_size;
    if (block->stored_size == block->raw_size)
        memcpy(room.columns, stored, block->raw_size);
    return block->stored_size == block->raw_size;
}

bool gm_stored_read(uint32_t lane, struct gm_record *records)
{
    const struct gm_stored *stored = gm_stored_next(lane);
    struct gm_extent extent;
    if (!stored || !make_room_for_block() || !read_at(stored->offset, &extent, sizeof(extent)) ||
        extent.type != GM_EXTENT_BLOCK || extent.used < sizeof(struct gm_block) ||
        extent.used > STORED_MAX - sizeof(extent) ||
        !read_at(stored->offset, room.stored, sizeof(extent) + extent.used))
        return false;
    const struct gm_extent *whole = (const struct gm_extent *)room.stored;
    const struct gm_block *block = (const struct gm_block *)(whole + 1);
    return whole->used == extent.used && gm_extent_checksum(whole) == whole->checksum &&
           block->lane == lane && block->first_sequence == stored->first &&
           block->count == stored->count && unpack(block, extent.used - (uint32_t)sizeof(*block)) &&
           gm_columns_decode(block, room.columns, records);
}

void gm_stored_rest(void)
{
    if (room.size)
        munmap(room.stored - (room.size - GM_BLOCK_RAW_MAX - STORED_MAX), room.size);
    memset(&room, 0, sizeof(room));
}

void gm_stored_forget(void)
{
    if (lanes)
        memset(lanes, 0, lanes_used * sizeof(lanes[0]));
    lanes_used = 0;
    memset(&noted, 0, sizeof(noted));
    memset(&room, 0, sizeof(room));
}
