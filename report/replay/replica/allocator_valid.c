/* Whether the parts of a replica agree with one another (allocator.h). For checked builds: base/assert.h. */
#include "replay/replica/allocator.h"

/* Both name each other, lie end to end in one segment, and are not one free block in two parts. */
static bool are_neighbours(const struct gm_allocator *allocator, uint32_t before, uint32_t behind)
{
    const struct gm_replica_block *one = &allocator->blocks[before],
                                  *other = &allocator->blocks[behind];
    return before < allocator->block_count && behind < allocator->block_count && one->exists &&
           other->exists && one->behind == behind && other->before == before &&
           one->address + one->size == other->address && one->pool == other->pool &&
           one->origin == other->origin && one->stream == other->stream &&
           (one->allocated || other->allocated || one->mapped != other->mapped);
}

static bool is_block_sound(const struct gm_allocator *allocator, uint32_t number)
{
    const struct gm_replica_block *block = &allocator->blocks[number];
    return block->size && block->pool < allocator->pool_count &&
           (block->mapped || !block->allocated) && (block->allocated || !block->waiting) &&
           (!block->before || are_neighbours(allocator, block->before, number)) &&
           (!block->behind || are_neighbours(allocator, number, block->behind));
}

static bool is_in_order(const struct gm_allocator *allocator, uint32_t before, uint32_t behind)
{
    struct gm_tree_key key = gm_tree_key_of(allocator->blocks, behind);
    return !before || gm_tree_is_below(allocator->blocks, before, key);
}

/* Goes through a tree of free blocks in order: `last` is the one before. Returns how many; UINT32_MAX: it is none. */
static uint32_t count_tree(const struct gm_allocator *allocator, uint32_t root, uint32_t pool,
                           bool mapped, uint32_t *last)
{
    const struct gm_replica_block *blocks = allocator->blocks, *block = &blocks[root];
    if (!root)
        return 0;
    if (root >= allocator->block_count || !block->exists || block->allocated ||
        block->mapped != mapped || block->pool != pool ||
        (block->left && blocks[block->left].priority > block->priority) ||
        (block->right && blocks[block->right].priority > block->priority))
        return UINT32_MAX;
    uint32_t left = count_tree(allocator, block->left, pool, mapped, last);
    if (left == UINT32_MAX || !is_in_order(allocator, *last, root))
        return UINT32_MAX;
    *last = root;
    uint32_t right = count_tree(allocator, block->right, pool, mapped, last);
    return right == UINT32_MAX ? UINT32_MAX : left + right + 1;
}

static uint64_t count_trees(const struct gm_allocator *allocator)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < allocator->pool_count; i++) {
        uint32_t last = 0;
        count += count_tree(allocator, allocator->pools[i].free, i, true, &last);
        last = 0;
        count += count_tree(allocator, allocator->pools[i].unmapped, i, false, &last);
    }
    return count;
}

bool gm_allocator_is_valid(const struct gm_allocator *allocator)
{
    uint64_t reserved = 0;
    uint32_t blocks = 0, free = 0, unused = 0;
    for (uint32_t i = 1; i < allocator->block_count; i++) {
        const struct gm_replica_block *block = &allocator->blocks[i];
        if (!block->exists)
            continue;
        if (!is_block_sound(allocator, i))
            return false;
        blocks++;
        free += !block->allocated;
        reserved += block->mapped ? block->size : 0;
    }
    for (uint32_t at = allocator->unused; at; at = allocator->blocks[at].right)
        if (at >= allocator->block_count || allocator->blocks[at].exists ||
            unused++ == allocator->block_count)
            return false;
    return blocks + unused + 1 == allocator->block_count && reserved == allocator->reserved &&
           allocator->reserved <= allocator->reserved_peak && count_trees(allocator) == free;
}
