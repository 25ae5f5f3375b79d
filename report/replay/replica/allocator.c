/* See allocator.h. Names of PyTorch's own functions stand in the comments, where a rule is theirs. */
#include "replay/replica/allocator.h"
#include "base/assert.h"
#include "base/memory.h"
#include "base/size.h"
#include <stdlib.h>

#define MIN_BLOCK 512u             /* kMinBlockSize */
#define SMALL_SIZE GM_MIB          /* kSmallSize: the largest block of a small pool */
#define SMALL_SEGMENT (2 * GM_MIB) /* kSmallBuffer */
#define MIN_LARGE (10 * GM_MIB)    /* kMinLargeAlloc */
#define ROUND_LARGE (2 * GM_MIB)   /* kRoundLarge */
#define ADDRESSES_WITHOUT_TOTAL (1024 * 1024 * GM_MIB)

struct request {
    uint64_t size;
    uint64_t alloc_size; /* of a new segment */
    uint64_t stream;
    uint32_t pool;
};

void gm_allocator_begin(struct gm_allocator *allocator,
                        const struct gm_allocator_settings *settings,
                        const struct gm_allocator_device *device)
{
    *allocator = (struct gm_allocator){
        .settings = *settings, .device = *device, .random = 88172645463325252u};
    GM_RESERVE(allocator->blocks, allocator->block_capacity, 1);
    allocator->blocks[0] = (struct gm_replica_block){0};
    allocator->block_count = 1;
}

void gm_allocator_end(struct gm_allocator *allocator)
{
    GM_ASSERT(gm_allocator_is_valid(allocator));
    free(allocator->blocks);
    free(allocator->pools);
    free(allocator->waiting);
    gm_map_free(&allocator->pool_numbers);
    *allocator = (struct gm_allocator){0};
}

static inline struct gm_replica_block *block_at(struct gm_allocator *allocator, uint32_t block)
{
    return &allocator->blocks[block];
}

/* ---- sizes ----------------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t size, uint64_t step)
{
    return size > UINT64_MAX - step ? size : (size + step - 1) / step * step;
}

/* roundup_power2_next_division */
static uint64_t round_to_division(uint64_t size, unsigned divisions)
{
    if ((size & (size - 1)) == 0)
        return size;
    uint64_t floor = UINT64_C(1) << (63 - __builtin_clzll(size));
    uint64_t step = floor >> (31 - __builtin_clz(divisions));
    if (step == 0)
        return floor << 1;
    uint64_t down = size & ~(step - 1);
    return down == size ? size : down + step;
}

uint64_t gm_allocator_round(const struct gm_allocator_settings *settings, uint64_t requested)
{
    if (requested < MIN_BLOCK)
        return MIN_BLOCK;
    unsigned divisions = gm_allocator_divisions(settings, requested);
    if (divisions > 1 && requested > (uint64_t)MIN_BLOCK * divisions)
        return round_to_division(requested, divisions);
    return round_up(requested, MIN_BLOCK);
}

/* get_allocation_size */
static uint64_t allocation_size(const struct gm_allocator_settings *settings, uint64_t size)
{
    if (size <= SMALL_SIZE)
        return SMALL_SEGMENT;
    if (size < MIN_LARGE)
        return settings->large_segment;
    return round_up(size, ROUND_LARGE);
}

static uint64_t piece_of(const struct gm_allocator *allocator, uint32_t pool)
{
    return allocator->pools[pool].small ? SMALL_SEGMENT : allocator->settings.large_segment;
}

static uint32_t pool_of_request(struct gm_allocator *allocator, uint64_t private_pool, bool small)
{
    uint64_t key = private_pool << 1 | small;
    uint32_t known = gm_map_get(&allocator->pool_numbers, key);
    if (known != GM_NONE)
        return known;
    gm_map_set(&allocator->pool_numbers, key, (uint32_t)allocator->pool_count);
    GM_RESERVE(allocator->pools, allocator->pool_capacity, allocator->pool_count + 1);
    allocator->pools[allocator->pool_count] =
        (struct gm_replica_pool){.private_pool = private_pool, .small = small};
    return (uint32_t)allocator->pool_count++;
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static uint32_t new_block(struct gm_allocator *allocator, struct gm_replica_block block)
{
    uint32_t number = allocator->unused;
    if (number) {
        allocator->unused = block_at(allocator, number)->right;
    } else {
        GM_RESERVE(allocator->blocks, allocator->block_capacity,
                   (size_t)allocator->block_count + 1);
        number = allocator->block_count++;
    }
    allocator->random ^= allocator->random << 13;
    allocator->random ^= allocator->random >> 7;
    allocator->random ^= allocator->random << 17;
    block.priority = (uint32_t)allocator->random;
    block.left = block.right = 0;
    block.exists = true;
    *block_at(allocator, number) = block;
    return number;
}

static uint32_t next_age(struct gm_allocator *allocator)
{
    return allocator->settings.oldest_first ? ++allocator->segments : 0;
}

static void drop_block(struct gm_allocator *allocator, uint32_t number)
{
    *block_at(allocator, number) = (struct gm_replica_block){.right = allocator->unused};
    allocator->unused = number;
}

static uint32_t *tree_of(struct gm_allocator *allocator, const struct gm_replica_block *block)
{
    struct gm_replica_pool *pool = &allocator->pools[block->pool];
    return block->mapped ? &pool->free : &pool->unmapped;
}

static void insert(struct gm_allocator *allocator, uint32_t number)
{
    struct gm_replica_block *block = block_at(allocator, number);
    block->gc_base = allocator->pools[block->pool].searches;
    gm_tree_insert(allocator->blocks, tree_of(allocator, block), number);
}

static void erase(struct gm_allocator *allocator, uint32_t number)
{
    gm_tree_erase(allocator->blocks, tree_of(allocator, block_at(allocator, number)), number);
}

static void link_behind(struct gm_allocator *allocator, uint32_t number, uint32_t before)
{
    struct gm_replica_block *block = block_at(allocator, number);
    block->before = before;
    block->behind = block_at(allocator, before)->behind;
    block_at(allocator, before)->behind = number;
    if (block->behind)
        block_at(allocator, block->behind)->before = number;
}

/* try_merge_blocks: takes a neighbour that is free into a block that is in no tree. */
static void merge_blocks(struct gm_allocator *allocator, uint32_t number, uint32_t neighbour)
{
    struct gm_replica_block *block = block_at(allocator, number),
                            *other = block_at(allocator, neighbour);
    if (!neighbour || other->allocated || block->mapped != other->mapped)
        return;
    erase(allocator, neighbour);
    if (block->before == neighbour) {
        block->address = other->address;
        block->before = other->before;
        if (block->before)
            block_at(allocator, block->before)->behind = number;
    } else {
        block->behind = other->behind;
        if (block->behind)
            block_at(allocator, block->behind)->before = number;
    }
    block->size += other->size;
    drop_block(allocator, neighbour);
}

static void merge_both(struct gm_allocator *allocator, uint32_t number)
{
    merge_blocks(allocator, number, block_at(allocator, number)->before);
    merge_blocks(allocator, number, block_at(allocator, number)->behind);
}

/* Cuts a block that is in no tree: what is behind `size` bytes becomes a block of its own, in no tree either. */
static uint32_t split_block(struct gm_allocator *allocator, uint32_t number, uint64_t size)
{
    struct gm_replica_block rest = *block_at(allocator, number);
    rest.address += size;
    rest.size -= size;
    rest.allocated = false;
    uint32_t behind = new_block(allocator, rest);
    link_behind(allocator, behind, number);
    block_at(allocator, number)->size = size;
    return behind;
}

static bool is_whole_segment(const struct gm_replica_block *block)
{
    return !block->before && !block->behind;
}

/* ---- the device ------------------------------------------------------------------------------ */

static uint64_t allowed(const struct gm_allocator *allocator)
{
    double fraction = allocator->settings.memory_fraction;
    return fraction > 0 && allocator->total ? (uint64_t)(fraction * (double)allocator->total) : 0;
}

bool gm_allocator_has_limit(const struct gm_allocator *allocator)
{
    return allowed(allocator) != 0;
}

static bool has_room(struct gm_allocator *allocator, uint64_t size)
{
    uint64_t capacity = allocator->capacity;
    if (allocator->refusals) {
        allocator->refusals--;
        return false;
    }
    return !capacity || (size <= capacity && allocator->reserved <= capacity - size);
}

static void note_arrival(struct gm_allocator *allocator, uint64_t address, uint64_t size)
{
    allocator->reserved += size;
    if (allocator->reserved > allocator->reserved_peak)
        allocator->reserved_peak = allocator->reserved;
    if (allocator->device.moved)
        allocator->device.moved(allocator->device.argument, address, size, true);
}

static void note_departure(struct gm_allocator *allocator, uint64_t address, uint64_t size)
{
    allocator->reserved -= size;
    allocator->device_frees++;
    if (allocator->device.moved)
        allocator->device.moved(allocator->device.argument, address, size, false);
}

/* release_block: a whole segment that is free. */
static void release_segment(struct gm_allocator *allocator, uint32_t number)
{
    const struct gm_replica_block *block = block_at(allocator, number);
    note_departure(allocator, block->address, block->size);
    erase(allocator, number);
    drop_block(allocator, number);
}

/* ---- expandable segments --------------------------------------------------------------------- */

/* unmap_block: whole pieces inside a free block go. Returns the block that is unmapped then, or the same one. */
static uint32_t unmap_part(struct gm_allocator *allocator, uint32_t number, uint64_t start,
                           uint64_t end)
{
    struct gm_replica_block *block = block_at(allocator, number);
    if (start >= end)
        return number;
    erase(allocator, number);
    if (start > block->address) {
        uint32_t rest = split_block(allocator, number, start - block->address);
        insert(allocator, number);
        number = rest;
    }
    if (block_at(allocator, number)->address + block_at(allocator, number)->size > end)
        insert(allocator, split_block(allocator, number, end - start));
    block_at(allocator, number)->mapped = false;
    merge_both(allocator, number);
    insert(allocator, number);
    note_departure(allocator, start, end - start);
    return number;
}

/* The whole pieces inside a free block of an expandable segment. */
static void find_pieces(const struct gm_allocator *allocator, const struct gm_replica_block *block,
                        uint64_t *start, uint64_t *end)
{
    uint64_t piece = piece_of(allocator, block->pool), origin = block->origin;
    *start = origin + round_up(block->address - origin, piece);
    *end = origin + (block->address + block->size - origin) / piece * piece;
}

/* An address space of which nothing is mapped goes, too (release_expandable_segment). */
static void drop_if_unmapped(struct gm_allocator *allocator, uint32_t number)
{
    if (!is_whole_segment(block_at(allocator, number)) || block_at(allocator, number)->mapped)
        return;
    erase(allocator, number);
    drop_block(allocator, number);
}

static void unmap_all_of(struct gm_allocator *allocator, uint32_t number)
{
    uint64_t start, end;
    find_pieces(allocator, block_at(allocator, number), &start, &end);
    drop_if_unmapped(allocator, unmap_part(allocator, number, start, end));
}

/* map_block: `size` bytes at the beginning of an unmapped block, in whole pieces. Returns the free block that holds
 * them, 0 if the device has no more. */
static uint32_t map_part(struct gm_allocator *allocator, uint32_t number, uint64_t size)
{
    struct gm_replica_block *block = block_at(allocator, number);
    uint64_t mapped = round_up(size, piece_of(allocator, block->pool));
    mapped = mapped < block->size ? mapped : block->size;
    if (!has_room(allocator, mapped))
        return 0;
    uint64_t address = block->address;
    erase(allocator, number);
    if (mapped < block->size)
        insert(allocator, split_block(allocator, number, mapped));
    block_at(allocator, number)->mapped = true;
    merge_both(allocator, number);
    insert(allocator, number);
    allocator->device_allocations++;
    note_arrival(allocator, address, mapped);
    return number;
}

static bool is_allocatable(const struct gm_allocator *allocator, uint32_t number)
{
    return number && !allocator->blocks[number].allocated;
}

static bool has_addresses(const struct gm_allocator *allocator, uint32_t number, uint64_t size)
{
    uint64_t bytes = 0;
    for (; bytes < size && is_allocatable(allocator, number);
         number = allocator->blocks[number].behind)
        bytes += allocator->blocks[number].size;
    return bytes >= size;
}

static uint32_t add_address_space(struct gm_allocator *allocator, uint64_t address, uint64_t size,
                                  uint64_t stream, uint32_t pool)
{
    uint32_t number = new_block(allocator, (struct gm_replica_block){.address = address,
                                                                     .origin = address,
                                                                     .age = next_age(allocator),
                                                                     .size = size,
                                                                     .stream = stream,
                                                                     .pool = pool,
                                                                     .expandable = true});
    insert(allocator, number);
    return number;
}

static uint64_t address_space(const struct gm_allocator *allocator, uint32_t pool)
{
    uint64_t total =
        allocator->total ? allocator->total + allocator->total / 8 : ADDRESSES_WITHOUT_TOTAL;
    return round_up(total, piece_of(allocator, pool));
}

/* find_expandable_block: the lowest free or unmapped block from which on there is address space enough. */
static uint32_t find_expandable(struct gm_allocator *allocator, const struct request *request)
{
    struct gm_tree_key key = {.stream = request->stream};
    uint32_t number =
        gm_tree_from(allocator->blocks, allocator->pools[request->pool].unmapped, key);
    while (number && block_at(allocator, number)->stream == request->stream) {
        uint32_t before = block_at(allocator, number)->before;
        uint32_t candidate = is_allocatable(allocator, before) ? before : number;
        if (has_addresses(allocator, candidate, request->size))
            return candidate;
        number = gm_tree_next(allocator->blocks, allocator->pools[request->pool].unmapped, number);
    }
    uint64_t size = address_space(allocator, request->pool);
    if (size < request->size)
        return 0;
    uint64_t address = allocator->device.reserve(allocator->device.argument, size, true);
    return add_address_space(allocator, address, size, request->stream, request->pool);
}

/* try_allocate_expandable_block: a block in no tree; 0: refused. */
static uint32_t allocate_expandable(struct gm_allocator *allocator, const struct request *request)
{
    uint32_t number = find_expandable(allocator, request);
    if (!number)
        return 0;
    struct gm_replica_block *block = block_at(allocator, number);
    if (!block->mapped)
        number =
            map_part(allocator, number, block->size < request->size ? block->size : request->size);
    while (number && block_at(allocator, number)->size < request->size) {
        uint32_t next = block_at(allocator, number)->behind;
        uint64_t wanted = request->size - block_at(allocator, number)->size,
                 there = block_at(allocator, next)->size;
        number = map_part(allocator, next, wanted < there ? wanted : there);
    }
    if (number)
        erase(allocator, number);
    return number;
}

/* ---- to find a block ------------------------------------------------------------------------- */

/* What an expandable segment could grow to counts as its size. */
static uint64_t expandable_size(struct gm_allocator *allocator, uint32_t number)
{
    const struct gm_replica_block *block = block_at(allocator, number),
                                  *behind = block_at(allocator, block->behind);
    return block->size + (block->behind && !behind->mapped ? behind->size : 0);
}

/* Steps on as long as the next block of the stream could grow to less. */
static uint32_t least_expandable(struct gm_allocator *allocator, uint32_t number, uint32_t root)
{
    uint64_t stream = block_at(allocator, number)->stream;
    for (uint32_t next; (next = gm_tree_next(allocator->blocks, root, number)); number = next)
        if (block_at(allocator, next)->stream != stream ||
            expandable_size(allocator, next) >= expandable_size(allocator, number))
            break;
    return number;
}

static uint32_t first_fixed(struct gm_allocator *allocator, uint32_t number, uint32_t root)
{
    uint64_t stream = block_at(allocator, number)->stream;
    while (number && block_at(allocator, number)->expandable &&
           block_at(allocator, number)->stream == stream)
        number = gm_tree_next(allocator->blocks, root, number);
    return number && block_at(allocator, number)->stream == stream ? number : 0;
}

static bool collects_garbage(const struct gm_allocator *allocator)
{
    return allocator->settings.gc_threshold > 0 && allowed(allocator);
}

/* get_free_block: best fit in the pool and stream; 0: there is none. */
static uint32_t search(struct gm_allocator *allocator, const struct request *request)
{
    uint32_t root = allocator->pools[request->pool].free;
    struct gm_tree_key key = {.stream = request->stream, .size = request->size};
    uint32_t number = gm_tree_from(allocator->blocks, root, key);
    if (!number || block_at(allocator, number)->stream != request->stream)
        return 0;
    if (block_at(allocator, number)->expandable)
        number = allocator->settings.expandable ? least_expandable(allocator, number, root)
                                                : first_fixed(allocator, number, root);
    if (!number)
        return 0;
    uint64_t limit = allocator->settings.max_split_size, size = block_at(allocator, number)->size;
    if (request->size < limit && size >= limit)
        return 0;
    if (request->size >= limit &&
        size - request->size >= allocator->settings.max_non_split_rounding)
        return 0;
    return number;
}

/* The same, taken out of its tree. */
static uint32_t find_free(struct gm_allocator *allocator, const struct request *request)
{
    allocator->pools[request->pool].searches += collects_garbage(allocator);
    uint32_t number = search(allocator, request);
    if (number)
        erase(allocator, number);
    return number;
}

/* alloc_block: a new segment, or more of an expandable one; in no tree. */
static uint32_t allocate_from_device(struct gm_allocator *allocator, const struct request *request)
{
    uint64_t limit = allowed(allocator);
    if (limit &&
        (request->alloc_size > limit || allocator->reserved > limit - request->alloc_size)) {
        allocator->refusals -= allocator->refusals != 0;
        return 0;
    }
    if (allocator->settings.expandable)
        return allocate_expandable(allocator, request);
    if (!has_room(allocator, request->alloc_size) || request->alloc_size > INT64_MAX)
        return 0;
    uint64_t address =
        allocator->device.reserve(allocator->device.argument, request->alloc_size, false);
    allocator->device_allocations++;
    note_arrival(allocator, address, request->alloc_size);
    return new_block(allocator, (struct gm_replica_block){.address = address,
                                                          .origin = address,
                                                          .age = next_age(allocator),
                                                          .size = request->alloc_size,
                                                          .stream = request->stream,
                                                          .pool = request->pool,
                                                          .mapped = true});
}

/* ---- to give back ---------------------------------------------------------------------------- */

/* release_blocks: the segments of a pool without a block in use, in the order of its tree. */
static void release_pool(struct gm_allocator *allocator, uint32_t pool)
{
    uint32_t *expandable = NULL;
    size_t count = 0, capacity = 0;
    for (uint32_t number = gm_tree_first(allocator->blocks, allocator->pools[pool].free), next;
         number; number = next) {
        next = gm_tree_next(allocator->blocks, allocator->pools[pool].free, number);
        if (block_at(allocator, number)->expandable) { /* what is unmapped changes the tree */
            GM_APPEND(expandable, capacity, count, number);
        } else if (is_whole_segment(block_at(allocator, number))) {
            release_segment(allocator, number);
        }
    }
    for (size_t i = 0; i < count; i++)
        unmap_all_of(allocator, expandable[i]);
    free(expandable);
}

static void finish_waiting(struct gm_allocator *allocator)
{
    for (size_t i = 0; i < allocator->waiting_count; i++)
        if (block_at(allocator, allocator->waiting[i])->waiting)
            gm_allocator_free(allocator, allocator->waiting[i]);
    allocator->waiting_count = 0;
}

void gm_allocator_empty_cache(struct gm_allocator *allocator)
{
    finish_waiting(allocator);
    release_pool(allocator, pool_of_request(allocator, 0, false));
    release_pool(allocator, pool_of_request(allocator, 0, true));
    for (size_t pool = 0; pool < allocator->pool_count; pool++)
        if (allocator->pools[pool].is_dropped)
            release_pool(allocator, (uint32_t)pool);
}

struct cached {
    struct gm_replica_range *ranges;
    size_t count, capacity;
};

static void add_cached(struct cached *cached, uint64_t start, uint64_t end)
{
    if (start >= end)
        return;
    GM_APPEND(cached->ranges, cached->capacity, cached->count,
              (struct gm_replica_range){start, end - start});
}

/* As release_pool() goes. */
static void list_cached(struct gm_allocator *allocator, uint32_t pool, bool expandable,
                        struct cached *cached)
{
    uint64_t start, end;
    for (uint32_t number = gm_tree_first(allocator->blocks, allocator->pools[pool].free); number;
         number = gm_tree_next(allocator->blocks, allocator->pools[pool].free, number)) {
        const struct gm_replica_block *block = block_at(allocator, number);
        if (block->expandable != expandable)
            continue;
        if (expandable) {
            find_pieces(allocator, block, &start, &end);
            add_cached(cached, start, end);
        } else if (is_whole_segment(block)) {
            add_cached(cached, block->address, block->address + block->size);
        }
    }
}

struct gm_replica_range *gm_allocator_cached(struct gm_allocator *allocator, uint64_t private_pool,
                                             size_t *count)
{
    struct cached cached = {0};
    for (int i = 0; i < 4; i++)
        list_cached(allocator,
                    pool_of_request(allocator, private_pool, (i >= 2) ^ (private_pool != 0)), i % 2,
                    &cached);
    *count = cached.count;
    return cached.ranges;
}

static bool is_garbage(const struct gm_replica_block *block)
{
    return is_whole_segment(block) && !block->expandable;
}

void gm_allocator_may_drop_pool(struct gm_allocator *allocator, uint64_t private_pool)
{
    uint32_t small = pool_of_request(allocator, private_pool, true);
    uint32_t large = pool_of_request(allocator, private_pool, false);
    allocator->pools[small].is_dropped = allocator->pools[large].is_dropped = private_pool != 0;
}

void gm_allocator_drop_pool(struct gm_allocator *allocator, uint64_t private_pool)
{
    release_pool(allocator, pool_of_request(allocator, private_pool, true));
    release_pool(allocator, pool_of_request(allocator, private_pool, false));
}

/* release_available_cached_blocks: blocks too large to be split, as few as will do. */
static bool release_oversize(struct gm_allocator *allocator, const struct request *request)
{
    uint64_t limit = allocator->settings.max_split_size, released = 0;
    if (limit == UINT64_MAX)
        return false;
    uint64_t wanted = request->size < limit ? limit : request->size;
    uint32_t *root = &allocator->pools[request->pool].free;
    struct gm_tree_key key = {.stream = request->stream, .size = wanted};
    uint32_t number = gm_tree_from(allocator->blocks, *root, key);
    if (number && block_at(allocator, number)->stream == request->stream &&
        is_garbage(block_at(allocator, number))) {
        release_segment(allocator, number);
        return true;
    }
    number = gm_tree_below(allocator->blocks, *root, key);
    while (number && released < wanted && block_at(allocator, number)->size >= limit &&
           block_at(allocator, number)->stream == request->stream) {
        uint32_t next = gm_tree_before(allocator->blocks, *root, number);
        if (is_garbage(block_at(allocator, number))) {
            released += block_at(allocator, number)->size;
            release_segment(allocator, number);
        }
        number = next;
    }
    return released >= wanted;
}

static double age_of(const struct gm_allocator *allocator, const struct gm_replica_block *block)
{
    return (double)(allocator->pools[block->pool].searches - block->gc_base);
}

/* garbage_collect_cached_blocks: large segments without a block in use, those first that are older than the mean. */
static void collect_garbage(struct gm_allocator *allocator)
{
    uint32_t pool = pool_of_request(allocator, 0, false), number;
    uint64_t threshold = (uint64_t)(allocator->settings.gc_threshold * (double)allowed(allocator));
    if (allocator->reserved <= threshold)
        return;
    uint64_t target = allocator->reserved - threshold, reclaimed = 0, count = 0;
    double total = 0;
    for (number = gm_tree_first(allocator->blocks, allocator->pools[pool].free); number;
         number = gm_tree_next(allocator->blocks, allocator->pools[pool].free, number))
        if (is_garbage(block_at(allocator, number))) {
            total += age_of(allocator, block_at(allocator, number));
            count++;
        }
    for (bool freed = true; reclaimed < target && freed && count;) {
        double threshold_age = total / (double)count;
        uint32_t next;
        freed = false;
        for (number = gm_tree_first(allocator->blocks, allocator->pools[pool].free); number;
             number = next) {
            const struct gm_replica_block *block = block_at(allocator, number);
            next = gm_tree_next(allocator->blocks, allocator->pools[pool].free, number);
            if (!is_garbage(block) || age_of(allocator, block) < threshold_age)
                continue;
            freed = true;
            reclaimed += block->size;
            total -= age_of(allocator, block);
            count--;
            release_segment(allocator, number);
        }
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* should_split */
static bool should_split(const struct gm_allocator *allocator, const struct gm_replica_block *block,
                         uint64_t size)
{
    uint64_t rest = block->size - size;
    if (allocator->pools[block->pool].small || allocator->settings.expandable)
        return rest >= MIN_BLOCK;
    return size < allocator->settings.max_split_size && rest > SMALL_SIZE;
}

static uint32_t find_block(struct gm_allocator *allocator, const struct request *request)
{
    uint32_t number = find_free(allocator, request);
    if (number)
        return number;
    if (collects_garbage(allocator))
        collect_garbage(allocator);
    if ((number = allocate_from_device(allocator, request)))
        return number;
    if (release_oversize(allocator, request) && (number = allocate_from_device(allocator, request)))
        return number;
    gm_allocator_empty_cache(allocator);
    allocator->retries++;
    return allocate_from_device(allocator, request);
}

static struct request make_request(struct gm_allocator *allocator, uint64_t requested,
                                   uint64_t stream, uint64_t private_pool)
{
    uint64_t size = gm_allocator_round(&allocator->settings, requested);
    bool one_heap = allocator->settings.async;
    return (struct request){.size = size,
                            .alloc_size = allocation_size(&allocator->settings, size),
                            .stream = one_heap ? 0 : stream,
                            .pool = pool_of_request(allocator, one_heap ? 0 : private_pool,
                                                    size <= SMALL_SIZE && !one_heap)};
}

bool gm_allocator_would_find(struct gm_allocator *allocator, uint64_t requested, uint64_t stream,
                             uint64_t private_pool)
{
    struct request request = make_request(allocator, requested, stream, private_pool);
    return search(allocator, &request) != 0;
}

uint32_t gm_allocator_malloc(struct gm_allocator *allocator, uint64_t requested, uint64_t stream,
                             uint64_t private_pool)
{
    struct request request = make_request(allocator, requested, stream, private_pool);
    uint64_t size = request.size;
    allocator->pools[request.pool].is_dropped = false;
    uint32_t number = find_block(allocator, &request);
    if (!number)
        return 0;
    allocator->has_split_last = should_split(allocator, block_at(allocator, number), size);
    if (allocator->has_split_last)
        insert(allocator, split_block(allocator, number, size));
    block_at(allocator, number)->allocated = true;
    GM_ASSERT_SOMETIMES(gm_allocator_is_valid(allocator));
    return number;
}

void gm_allocator_free(struct gm_allocator *allocator, uint32_t number)
{
    struct gm_replica_block *block = block_at(allocator, number);
    if (!number || !block->allocated)
        return;
    block->allocated = block->waiting = false;
    merge_both(allocator, number);
    insert(allocator, number);
    GM_ASSERT_SOMETIMES(gm_allocator_is_valid(allocator));
}

void gm_allocator_wait(struct gm_allocator *allocator, uint32_t number)
{
    if (!number || !block_at(allocator, number)->allocated)
        return;
    block_at(allocator, number)->waiting = true;
    GM_APPEND(allocator->waiting, allocator->waiting_capacity, allocator->waiting_count, number);
}

/* ---- to follow a recording ------------------------------------------------------------------- */

/* The free or unmapped block that holds a range; 0: there is none. */
static uint32_t find_holder(struct gm_allocator *allocator, uint64_t address, uint64_t size,
                            bool mapped)
{
    for (uint32_t number = 1; number < allocator->block_count; number++) {
        const struct gm_replica_block *block = block_at(allocator, number);
        if (block->exists && !block->allocated && block->mapped == mapped &&
            block->address <= address && block->size >= size &&
            address - block->address <= block->size - size)
            return number;
    }
    return 0;
}

static void note_there(struct gm_allocator *allocator, uint64_t size)
{
    allocator->reserved += size;
    if (allocator->reserved > allocator->reserved_peak)
        allocator->reserved_peak = allocator->reserved;
}

/* Takes a free block out, and what of it lies outside [address, address + size) back in. Returns the block that is left,
 * which begins at `address`. */
static uint32_t carve(struct gm_allocator *allocator, uint32_t number, uint64_t address,
                      uint64_t size)
{
    erase(allocator, number);
    if (address > block_at(allocator, number)->address) {
        uint32_t rest =
            split_block(allocator, number, address - block_at(allocator, number)->address);
        insert(allocator, number);
        number = rest;
    }
    if (block_at(allocator, number)->size > size)
        insert(allocator, split_block(allocator, number, size));
    return number;
}

/* A range that an expandable segment has mapped: of one that is known, or of a new one that begins with it. */
static uint32_t add_mapping(struct gm_allocator *allocator, uint64_t address, uint64_t size,
                            uint64_t stream, uint32_t pool)
{
    uint64_t space = address_space(allocator, pool);
    uint32_t number = find_holder(allocator, address, size, false);
    if (!number || block_at(allocator, number)->stream != stream ||
        block_at(allocator, number)->pool != pool)
        number = add_address_space(allocator, address, size < space ? space : size, stream, pool);
    number = carve(allocator, number, address, size);
    block_at(allocator, number)->mapped = true;
    merge_both(allocator, number);
    insert(allocator, number);
    note_there(allocator, size);
    return number;
}

uint32_t gm_allocator_add_segment(struct gm_allocator *allocator, uint64_t address, uint64_t size,
                                  uint64_t stream, uint64_t private_pool, bool small,
                                  bool expandable)
{
    uint32_t pool = pool_of_request(allocator, private_pool, small);
    if (expandable)
        return add_mapping(allocator, address, size, stream, pool);
    uint32_t number = new_block(allocator, (struct gm_replica_block){.address = address,
                                                                     .origin = address,
                                                                     .age = next_age(allocator),
                                                                     .size = size,
                                                                     .stream = stream,
                                                                     .pool = pool,
                                                                     .mapped = true});
    insert(allocator, number);
    note_there(allocator, size);
    return number;
}

uint32_t gm_allocator_place(struct gm_allocator *allocator, uint32_t number, uint64_t address,
                            uint64_t size)
{
    if (!number)
        number = find_holder(allocator, address, size, true);
    if (!number)
        return 0;
    number = carve(allocator, number, address, size);
    block_at(allocator, number)->allocated = true;
    return number;
}

bool gm_allocator_release(struct gm_allocator *allocator, uint64_t address, uint64_t size)
{
    uint32_t number = find_holder(allocator, address, size, true);
    if (!number)
        return false;
    if (block_at(allocator, number)->expandable)
        drop_if_unmapped(allocator, unmap_part(allocator, number, address, address + size));
    else if (is_whole_segment(block_at(allocator, number)) &&
             block_at(allocator, number)->size == size)
        release_segment(allocator, number);
    else
        return false;
    return true;
}
