/*
 * The treap behind range.h. Priorities come from a fixed generator, so runs are repeatable.
 */
#include "range.h"

#include <stdbool.h>
#include <stddef.h>

static uint32_t next_priority(void)
{
    static uint32_t state = 2463534242u; /* xorshift32; under the driver lock like the sets */

    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static uint64_t largest_of(const struct gpusim_range *range)
{
    return range ? range->largest : 0;
}

static void refresh(struct gpusim_range *range)
{
    uint64_t largest = range->size;

    if (largest_of(range->left) > largest)
        largest = largest_of(range->left);
    if (largest_of(range->right) > largest)
        largest = largest_of(range->right);
    range->largest = largest;
}

/* Splits a tree into the ranges that start below the address and the others. */
static void split_tree(struct gpusim_range *tree, uint64_t start, struct gpusim_range **below,
                       struct gpusim_range **others)
{
    if (!tree) {
        *below = *others = NULL;
    } else if (tree->start < start) {
        split_tree(tree->right, start, &tree->right, others);
        *below = tree;
        refresh(tree);
    } else {
        split_tree(tree->left, start, below, &tree->left);
        *others = tree;
        refresh(tree);
    }
}

/* Joins two trees, all of the left one below all of the right one. */
static struct gpusim_range *join_trees(struct gpusim_range *left, struct gpusim_range *right)
{
    if (!left || !right)
        return left ? left : right;
    if (left->priority > right->priority) {
        left->right = join_trees(left->right, right);
        refresh(left);
        return left;
    }
    right->left = join_trees(left, right->left);
    refresh(right);
    return right;
}

void gpusim_ranges_insert(struct gpusim_ranges *ranges, struct gpusim_range *range)
{
    struct gpusim_range *below, *above;

    range->left = range->right = NULL;
    range->priority = next_priority();
    range->largest = range->size;
    split_tree(ranges->root, range->start, &below, &above);
    ranges->root = join_trees(join_trees(below, range), above);
}

void gpusim_ranges_remove(struct gpusim_ranges *ranges, struct gpusim_range *range)
{
    struct gpusim_range *below, *rest, *removed, *above;

    split_tree(ranges->root, range->start, &below, &rest);
    split_tree(rest, range->start + 1, &removed, &above);
    ranges->root = join_trees(below, above);
}

struct gpusim_range *gpusim_ranges_floor(const struct gpusim_ranges *ranges, uint64_t address)
{
    struct gpusim_range *best = NULL;

    for (struct gpusim_range *range = ranges->root; range;) {
        if (range->start <= address) {
            best = range;
            range = range->right;
        } else {
            range = range->left;
        }
    }
    return best;
}

struct gpusim_range *gpusim_ranges_ceiling(const struct gpusim_ranges *ranges, uint64_t address)
{
    struct gpusim_range *best = NULL;

    for (struct gpusim_range *range = ranges->root; range;) {
        if (range->start >= address) {
            best = range;
            range = range->left;
        } else {
            range = range->right;
        }
    }
    return best;
}

struct gpusim_range *gpusim_ranges_find(const struct gpusim_ranges *ranges, uint64_t address)
{
    struct gpusim_range *range = gpusim_ranges_floor(ranges, address);

    return range && address - range->start < range->size ? range : NULL;
}

static struct gpusim_range *fit_in(struct gpusim_range *tree, uint64_t size, uint64_t alignment,
                                   bool highest)
{
    if (largest_of(tree) < size)
        return NULL;

    struct gpusim_range *fit = fit_in(highest ? tree->right : tree->left, size, alignment, highest);
    if (fit)
        return fit;

    uint64_t lost = gpusim_align_up(tree->start, alignment) - tree->start;
    if (tree->size >= size && tree->size - size >= lost)
        return tree;
    return fit_in(highest ? tree->left : tree->right, size, alignment, highest);
}

struct gpusim_range *gpusim_ranges_fit(const struct gpusim_ranges *ranges, uint64_t size,
                                       uint64_t alignment)
{
    return fit_in(ranges->root, size, alignment, false);
}

struct gpusim_range *gpusim_ranges_fit_highest(const struct gpusim_ranges *ranges, uint64_t size,
                                               uint64_t alignment)
{
    return fit_in(ranges->root, size, alignment, true);
}
