/* What a launch of a graph comes to that leaves nothing behind: see graph.h.
 *
 * A graph of thousands of nodes may be launched thousands of times. Where all that it begins ends in
 * it, a launch comes to the same each time, and need not be booked node by node. */
#include "base/memory.h"
#include "replay/rules/graph.h"
#include <stdlib.h>

#define SIZE_MAX_OF_ONE (GM_LIVE_MAX >> 24) /* no sum of them overflows */

/* What is known while the nodes are gone through. */
struct tally {
    struct gm_turn *turn;
    struct gm_map alive; /* address -> node */
    struct gm_map sites; /* stack and function -> number */
    uint64_t live;       /* bytes */
    size_t capacity;     /* of sites */
};

static struct gm_turn_site *turn_site(struct tally *tally, const struct gm_graph_node *node)
{
    uint64_t key = node->stack | (uint64_t)node->api << 32;
    uint32_t number = gm_map_get(&tally->sites, key);
    if (number == GM_NONE) {
        number = (uint32_t)tally->turn->site_count++;
        GM_RESERVE(tally->turn->sites, tally->capacity, tally->turn->site_count);
        tally->turn->sites[number] =
            (struct gm_turn_site){.stack = node->stack, .api = node->api, .first = node->size};
        gm_map_set(&tally->sites, key, number);
    }
    return &tally->turn->sites[number];
}

static void begin_turn(struct tally *tally, const struct gm_graph_node *node)
{
    struct gm_turn *turn = tally->turn;
    struct gm_turn_site *site = turn_site(tally, node);
    tally->live += node->size;
    site->births++;
    site->bytes += node->size;
    site->live += node->size;
    if (site->live > site->most)
        site->most = site->live;
    turn->births++;
    turn->bytes += node->size;
    if (tally->live > turn->most)
        turn->most = tally->live;
    turn->low = node->address < turn->low ? node->address : turn->low;
    turn->high = node->address > turn->high ? node->address : turn->high;
}

static void end_turn(struct tally *tally, const struct gm_graph_node *begun)
{
    tally->live -= begun->size;
    turn_site(tally, begun)->live -= begun->size;
}

static bool go_through(struct tally *tally, const struct gm_graph_node *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t begun = gm_map_get(&tally->alive, nodes[i].address);
        if (nodes[i].is_free != (begun != GM_NONE))
            return false;
        if (nodes[i].is_free) {
            end_turn(tally, &nodes[begun]);
            gm_map_remove(&tally->alive, nodes[i].address);
            continue;
        }
        if (nodes[i].device != tally->turn->device || nodes[i].kind != tally->turn->kind ||
            nodes[i].size > SIZE_MAX_OF_ONE)
            return false;
        begin_turn(tally, &nodes[i]);
        gm_map_set(&tally->alive, nodes[i].address, (uint32_t)i);
    }
    return tally->alive.count == 0;
}

struct gm_turn *gm_graph_turn_new(const struct gm_graph_node *nodes, size_t count)
{
    struct gm_turn *turn = gm_allocate(1, sizeof(*turn));
    struct tally tally = {.turn = turn};
    *turn = (struct gm_turn){.kind = count ? nodes[0].kind : GM_KIND_GRAPH,
                             .device = count ? nodes[0].device : -1,
                             .low = UINT64_MAX};
    bool good = go_through(&tally, nodes, count);
    gm_map_free(&tally.alive);
    gm_map_free(&tally.sites);
    if (good)
        return turn;
    gm_graph_turn_free(turn);
    return NULL;
}

void gm_graph_turn_free(struct gm_turn *turn)
{
    if (turn)
        free(turn->sites);
    free(turn);
}
