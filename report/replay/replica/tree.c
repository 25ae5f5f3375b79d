/* An ordered set of blocks, linked through the blocks themselves: of one stream after the other, free ones by size,
 * then age of the segment, then address; unmapped ones by address. Work is logarithmic, whatever the order of insertion.
 * See allocator.h. A treap: ordered by key, a heap by the random priority of each block. */
#include "replay/replica/allocator.h"

struct gm_tree_key gm_tree_key_of(const struct gm_replica_block *blocks, uint32_t number)
{
    const struct gm_replica_block *block = &blocks[number];
    bool mapped = block->mapped;
    return (struct gm_tree_key){block->stream, mapped ? block->size : 0, mapped ? block->age : 0,
                                block->address, number};
}

bool gm_tree_is_below(const struct gm_replica_block *blocks, uint32_t number,
                      struct gm_tree_key key)
{
    struct gm_tree_key own = gm_tree_key_of(blocks, number);
    if (own.stream != key.stream)
        return own.stream < key.stream;
    if (own.size != key.size)
        return own.size < key.size;
    if (own.age != key.age)
        return own.age < key.age;
    if (own.address != key.address)
        return own.address < key.address;
    return own.number < key.number;
}

/* Where the node stands that a block of this key and priority belongs above. */
static uint32_t *find_place(struct gm_replica_block *blocks, uint32_t *place,
                            struct gm_tree_key key, uint32_t priority)
{
    while (*place && blocks[*place].priority >= priority)
        place =
            gm_tree_is_below(blocks, *place, key) ? &blocks[*place].right : &blocks[*place].left;
    return place;
}

void gm_tree_insert(struct gm_replica_block *blocks, uint32_t *root, uint32_t number)
{
    struct gm_replica_block *block = &blocks[number];
    struct gm_tree_key key = gm_tree_key_of(blocks, number);
    uint32_t *place = find_place(blocks, root, key, block->priority), rest = *place;
    uint32_t *left = &block->left, *right = &block->right;
    *place = number;
    while (rest) { /* what stood there is cut in two at the key */
        if (gm_tree_is_below(blocks, rest, key)) {
            *left = rest;
            left = &blocks[rest].right;
            rest = *left;
        } else {
            *right = rest;
            right = &blocks[rest].left;
            rest = *right;
        }
    }
    *left = *right = 0;
}

void gm_tree_erase(struct gm_replica_block *blocks, uint32_t *root, uint32_t number)
{
    struct gm_tree_key key = gm_tree_key_of(blocks, number);
    uint32_t *place = root, left, right;
    while (*place && *place != number)
        place =
            gm_tree_is_below(blocks, *place, key) ? &blocks[*place].right : &blocks[*place].left;
    if (!*place)
        return;
    left = blocks[number].left;
    right = blocks[number].right;
    while (left && right) { /* both are joined again */
        if (blocks[left].priority > blocks[right].priority) {
            *place = left;
            place = &blocks[left].right;
            left = *place;
        } else {
            *place = right;
            place = &blocks[right].left;
            right = *place;
        }
    }
    *place = left ? left : right;
    blocks[number].left = blocks[number].right = 0;
}

uint32_t gm_tree_from(const struct gm_replica_block *blocks, uint32_t root, struct gm_tree_key key)
{
    uint32_t found = 0;
    while (root) {
        bool below = gm_tree_is_below(blocks, root, key);
        found = below ? found : root;
        root = below ? blocks[root].right : blocks[root].left;
    }
    return found;
}

uint32_t gm_tree_below(const struct gm_replica_block *blocks, uint32_t root, struct gm_tree_key key)
{
    uint32_t found = 0;
    while (root) {
        bool below = gm_tree_is_below(blocks, root, key);
        found = below ? root : found;
        root = below ? blocks[root].right : blocks[root].left;
    }
    return found;
}

uint32_t gm_tree_first(const struct gm_replica_block *blocks, uint32_t root)
{
    while (root && blocks[root].left)
        root = blocks[root].left;
    return root;
}

uint32_t gm_tree_next(const struct gm_replica_block *blocks, uint32_t root, uint32_t number)
{
    struct gm_tree_key key = gm_tree_key_of(blocks, number);
    key.number++;
    return gm_tree_from(blocks, root, key);
}

uint32_t gm_tree_before(const struct gm_replica_block *blocks, uint32_t root, uint32_t number)
{
    return gm_tree_below(blocks, root, gm_tree_key_of(blocks, number));
}
