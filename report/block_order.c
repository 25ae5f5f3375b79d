/* See block_order.h. */
#include "block_order.h"
#include <stdlib.h>
#include "memory.h"

static int by_address(const void *left, const void *right)
{
    const struct gm_life *a = left, *b = right;
    return a->address < b->address ? -1 : a->address > b->address;
}

struct gm_block_order gm_block_order_of(const struct gm_blocks *blocks)
{
    struct gm_block_order order = {0};
    size_t alive = blocks->used - blocks->unused_count;
    if (!alive)
        return order;
    order.blocks = gm_allocate(alive, sizeof(*order.blocks));
    for (uint32_t i = 0; i < blocks->used; i++)
        if (blocks->slots[i].kind != GM_KIND_NONE)
            order.blocks[order.count++] = blocks->slots[i];
    qsort(order.blocks, order.count, sizeof(*order.blocks), by_address);
    return order;
}

void gm_block_order_free(struct gm_block_order *order)
{
    free(order->blocks);
    *order = (struct gm_block_order){0};
}

size_t gm_block_order_at(const struct gm_block_order *order, uint64_t address)
{
    size_t low = 0, high = order->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (order->blocks[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool gm_block_order_within(const struct gm_block_order *order, uint64_t start, uint64_t end)
{
    size_t at = gm_block_order_at(order, start);
    return at < order->count && order->blocks[at].address < end;
}
