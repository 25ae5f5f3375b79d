/* The live blocks of a framework's pool by address: which lie in a segment, in which order. */
#ifndef GPUMEM_REPORT_POOL_BLOCK_ORDER_H
#define GPUMEM_REPORT_POOL_BLOCK_ORDER_H

#include "judge/pool/blocks.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A copy: it stays as it is when the blocks change. */
struct gm_block_order {
    struct gm_pool_block *blocks;
    size_t count;
};

/* What lives now. */
struct gm_block_order gm_block_order_of(const struct gm_blocks *blocks);

/* What lived just after the last use of all: freed since, or live still. */
struct gm_block_order gm_block_order_at_last(const struct gm_blocks *blocks);

void gm_block_order_free(struct gm_block_order *order);

/* Index of the first block at or behind an address; `count` if there is none. */
size_t gm_block_order_at(const struct gm_block_order *order, uint64_t address);

/* Whether a block begins in [start, end). */
bool gm_block_order_within(const struct gm_block_order *order, uint64_t start, uint64_t end);

/* Whether a part of a block lies in [start, end). */
bool gm_block_order_touches(const struct gm_block_order *order, uint64_t start, uint64_t end);

#endif
