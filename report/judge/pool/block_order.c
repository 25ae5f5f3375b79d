/* See block_order.h. */
#include "judge/pool/block_order.h"
#include "base/limit.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/ranges.h"
#include <stdlib.h>

GM_ORDER(by_block_address, struct gm_pool_block, GM_UP(address))

/* The live ones, and the latest `more_count` of those that are not. */
static struct gm_block_order order_of(const struct gm_blocks *blocks, size_t more_count)
{
    struct gm_block_order order = {0};
    size_t alive = blocks->used - blocks->unused_count;
    if (alive + more_count == 0)
        return order;
    gm_limits_spend(GM_STEPS_SORTED * (alive + more_count));
    order.blocks = gm_allocate(alive + more_count, sizeof(*order.blocks));
    for (uint32_t i = 0; i < blocks->used; i++)
        if (blocks->slots[i].alive)
            order.blocks[order.count++] = blocks->slots[i];
    for (size_t i = blocks->unused_count - more_count; i < blocks->unused_count; i++) {
        order.blocks[order.count] = blocks->slots[blocks->unused[i]];
        order.blocks[order.count++].alive = true;
    }
    qsort(order.blocks, order.count, sizeof(*order.blocks), by_block_address);
    return order;
}

struct gm_block_order gm_block_order_of(const struct gm_blocks *blocks)
{
    return order_of(blocks, 0);
}

struct gm_block_order gm_block_order_at_last(const struct gm_blocks *blocks)
{
    return order_of(blocks, blocks->late_count);
}

void gm_block_order_free(struct gm_block_order *order)
{
    free(order->blocks);
    *order = (struct gm_block_order){0};
}

size_t gm_block_order_at(const struct gm_block_order *order, uint64_t address)
{
    size_t at;
    GM_BISECT(at, order->count, order->blocks[at].address < address);
    return at;
}

bool gm_block_order_within(const struct gm_block_order *order, uint64_t start, uint64_t end)
{
    size_t at = gm_block_order_at(order, start);
    return at < order->count && order->blocks[at].address < end;
}

bool gm_block_order_touches(const struct gm_block_order *order, uint64_t start, uint64_t end)
{
    size_t at = gm_block_order_at(order, start);
    if (at > 0 && gm_range_end(order->blocks[at - 1].address, order->blocks[at - 1].size) > start)
        return true;
    return at < order->count && order->blocks[at].address < end;
}
