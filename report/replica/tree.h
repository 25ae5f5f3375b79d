/* An ordered set of blocks, linked through the blocks themselves: of one stream after the other, free ones by size,
 * then age of the segment, then address; unmapped ones by address. Work is logarithmic, whatever the order of insertion. */
#ifndef GPUMEM_REPORT_REPLICA_TREE_H
#define GPUMEM_REPORT_REPLICA_TREE_H

#include "replica/allocator.h"

struct gm_tree_key {
    uint64_t stream, size;
    uint32_t age;
    uint64_t address;
    uint32_t number; /* of the block: a recording that makes no sense can have two at one address */
};

void gm_tree_insert(struct gm_replica_block *blocks, uint32_t *root, uint32_t number);
void gm_tree_erase(struct gm_replica_block *blocks, uint32_t *root, uint32_t number);

/* The first one that is not below the key, the last one below it; 0: none. */
uint32_t gm_tree_from(const struct gm_replica_block *blocks, uint32_t root, struct gm_tree_key key);
uint32_t gm_tree_below(const struct gm_replica_block *blocks, uint32_t root,
                       struct gm_tree_key key);

/* Neighbours in the order. */
uint32_t gm_tree_first(const struct gm_replica_block *blocks, uint32_t root);
uint32_t gm_tree_next(const struct gm_replica_block *blocks, uint32_t root, uint32_t number);
uint32_t gm_tree_before(const struct gm_replica_block *blocks, uint32_t root, uint32_t number);

#endif
