/* The sizes of a pool's blocks at one moment, by stack: whether one place holds blocks of all the sizes
 * that another holds, as a copy of a model does. */
#ifndef GPUMEM_REPORT_POOL_SHAPES_H
#define GPUMEM_REPORT_POOL_SHAPES_H

#include "judge/pool/block_order.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GM_SHAPE_LEAST 65536u /* bytes: smaller blocks are rounded too much to tell */

#define GM_SHAPE_SIZES 16u /* different ones; of more it cannot be told */

/* Blocks of at least GM_SHAPE_LEAST bytes. */
struct gm_shape {
    uint32_t stack;
    uint16_t api;
    uint64_t count;
    uint64_t bytes;
    uint64_t largest;
    uint64_t first; /* birth of the first */
    unsigned sizes; /* different ones; GM_SHAPE_SIZES + 1: more */
    struct {
        uint64_t bytes, count;
    } size[GM_SHAPE_SIZES];
};

/* All zero: none. */
struct gm_shapes {
    struct gm_shape *entries;
    size_t count;
};

struct gm_shapes gm_shapes_of(const struct gm_block_order *order, int device);
void gm_shapes_free(struct gm_shapes *shapes);

/* Adds what another holds. */
void gm_shape_add(struct gm_shape *shape, const struct gm_shape *other);

/* Whether `shape` has at least as many blocks of each size as `other`, and none of another size. */
bool gm_shape_covers(const struct gm_shape *shape, const struct gm_shape *other);

#endif
