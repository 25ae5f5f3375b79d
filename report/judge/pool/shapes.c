/* See shapes.h. */
#include "judge/pool/shapes.h"
#include "base/each.h"
#include "base/map.h"
#include "base/memory.h"
#include <stdlib.h>

static void add_size(struct gm_shape *shape, uint64_t bytes, uint64_t count)
{
    unsigned at = 0;
    while (at < shape->sizes && at < GM_SHAPE_SIZES && shape->size[at].bytes != bytes)
        at++;
    if (at == GM_SHAPE_SIZES) {
        shape->sizes = GM_SHAPE_SIZES + 1;
        return;
    }
    if (at == shape->sizes)
        shape->size[shape->sizes++].bytes = bytes;
    shape->size[at].count += count;
}

void gm_shape_add(struct gm_shape *shape, const struct gm_shape *other)
{
    if (!shape->count || other->first < shape->first)
        shape->first = other->first;
    if (other->largest > shape->largest) {
        GM_COPY_MEMBERS(shape, other, largest, stack, api);
    }
    shape->count += other->count;
    shape->bytes += other->bytes;
    for (unsigned i = 0; i < other->sizes && i < GM_SHAPE_SIZES; i++)
        add_size(shape, other->size[i].bytes, other->size[i].count);
    if (other->sizes > GM_SHAPE_SIZES)
        shape->sizes = GM_SHAPE_SIZES + 1;
}

static uint64_t count_of(const struct gm_shape *shape, uint64_t bytes)
{
    for (unsigned i = 0; i < shape->sizes; i++)
        if (shape->size[i].bytes == bytes)
            return shape->size[i].count;
    return 0;
}

bool gm_shape_covers(const struct gm_shape *shape, const struct gm_shape *other)
{
    if (shape->sizes != other->sizes || shape->sizes > GM_SHAPE_SIZES)
        return false;
    for (unsigned i = 0; i < other->sizes; i++)
        if (count_of(shape, other->size[i].bytes) < other->size[i].count)
            return false;
    return true;
}

struct gm_shapes gm_shapes_of(const struct gm_block_order *order, int device)
{
    struct gm_shapes shapes = {0};
    struct gm_map by_stack = {0};
    size_t capacity = 0;
    for (size_t i = 0; i < order->count; i++) {
        const struct gm_pool_block *block = &order->blocks[i];
        if (block->device != device || block->size < GM_SHAPE_LEAST)
            continue;
        uint32_t at = gm_map_get(&by_stack, block->stack);
        if (at == GM_NONE) {
            at = (uint32_t)shapes.count++;
            GM_RESERVE(shapes.entries, capacity, shapes.count);
            shapes.entries[at] = (struct gm_shape){0};
            gm_map_set(&by_stack, block->stack, at);
        }
        gm_shape_add(&shapes.entries[at], &(struct gm_shape){.stack = block->stack,
                                                             .api = block->api,
                                                             .count = 1,
                                                             .bytes = block->size,
                                                             .largest = block->size,
                                                             .first = block->birth,
                                                             .sizes = 1,
                                                             .size = {{block->size, 1}}});
    }
    gm_map_free(&by_stack);
    return shapes;
}

void gm_shapes_free(struct gm_shapes *shapes)
{
    free(shapes->entries);
    *shapes = (struct gm_shapes){0};
}
