/* See ranges.h. A treap: a search tree by address, kept in balance by priorities drawn at random,
 * which a trace cannot foresee. */
#include "base/ranges.h"
#include "base/memory.h"
#include "base/secret.h"
#include <stdlib.h>

static uint32_t draw_priority(struct gm_ranges *ranges)
{
    uint32_t value = ranges->random ? ranges->random : (uint32_t)(gm_secret() >> 32) | 1;
    value ^= value << 13;
    value ^= value >> 17;
    value ^= value << 5;
    return ranges->random = value;
}

static uint32_t new_node(struct gm_ranges *ranges, struct gm_range range)
{
    uint32_t index = ranges->free;
    if (index)
        ranges->free = ranges->nodes[index].right;
    else {
        if (!ranges->used)
            ranges->used = 1;
        index = ranges->used++;
        GM_RESERVE(ranges->nodes, ranges->capacity, ranges->used);
    }
    ranges->nodes[index] =
        (struct gm_range_node){.range = range, .priority = draw_priority(ranges)};
    return index;
}

/* Splits a tree into what starts before `start` and the rest. */
static void split_ranges(struct gm_ranges *ranges, uint32_t tree, uint64_t start, uint32_t *before,
                         uint32_t *rest)
{
    if (!tree) {
        *before = *rest = 0;
        return;
    }
    struct gm_range_node *node = &ranges->nodes[tree];
    if (node->range.start < start) {
        *before = tree;
        split_ranges(ranges, node->right, start, &node->right, rest);
    } else {
        *rest = tree;
        split_ranges(ranges, node->left, start, before, &node->left);
    }
}

/* Joins two trees; all of `left` lies before all of `right`. */
static uint32_t join_ranges(struct gm_ranges *ranges, uint32_t left, uint32_t right)
{
    struct gm_range_node *nodes = ranges->nodes;
    if (!left || !right)
        return left ? left : right;
    if (nodes[left].priority > nodes[right].priority) {
        nodes[left].right = join_ranges(ranges, nodes[left].right, right);
        return left;
    }
    nodes[right].left = join_ranges(ranges, left, nodes[right].left);
    return right;
}

void gm_ranges_add(struct gm_ranges *ranges, struct gm_range range)
{
    if (range.start >= range.end)
        return;
    uint32_t node = new_node(ranges, range); /* may move the nodes: before anything points to one */
    uint32_t *link = &ranges->root;
    while (*link && ranges->nodes[*link].priority > ranges->nodes[node].priority) {
        struct gm_range_node *at = &ranges->nodes[*link];
        link = range.start < at->range.start ? &at->left : &at->right;
    }
    split_ranges(ranges, *link, range.start, &ranges->nodes[node].left, &ranges->nodes[node].right);
    *link = node;
    ranges->count++;
}

bool gm_ranges_find(const struct gm_ranges *ranges, uint64_t start, uint64_t end,
                    struct gm_range *found)
{
    uint32_t best = 0;
    for (uint32_t at = ranges->root; at;) {
        const struct gm_range_node *node = &ranges->nodes[at];
        if (node->range.end > start) {
            best = at;
            at = node->left;
        } else {
            at = node->right;
        }
    }
    if (!best || ranges->nodes[best].range.start >= end)
        return false;
    *found = ranges->nodes[best].range;
    return true;
}

bool gm_ranges_remove(struct gm_ranges *ranges, uint64_t start)
{
    uint32_t *link = &ranges->root;
    while (*link && ranges->nodes[*link].range.start != start) {
        struct gm_range_node *at = &ranges->nodes[*link];
        link = start < at->range.start ? &at->left : &at->right;
    }
    uint32_t node = *link;
    if (!node)
        return false;
    *link = join_ranges(ranges, ranges->nodes[node].left, ranges->nodes[node].right);
    ranges->nodes[node].right = ranges->free;
    ranges->free = node;
    ranges->count--;
    return true;
}

void gm_ranges_free(struct gm_ranges *ranges)
{
    free(ranges->nodes);
    *ranges = (struct gm_ranges){0};
}
