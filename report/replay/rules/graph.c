/* See graph.h. */
#include "replay/rules/graph.h"
#include "base/each.h"
#include "base/limit.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

#define NODES_MAX (1u << 22)   /* of all graphs together: 128 MiB */
#define AUTO_FREE_ON_LAUNCH 1u /* of CUgraphInstantiate_flags */

void gm_graphs_begin(struct gm_graphs *graphs, struct gm_ledger *ledger)
{
    *graphs = (struct gm_graphs){.ledger = ledger};
}

static void clear(struct gm_graph *graph)
{
    gm_graph_turn_free(graph->turn);
    free(graph->nodes);
    *graph = (struct gm_graph){0};
}

void gm_graphs_end(struct gm_graphs *graphs)
{
    for (size_t i = 0; i < graphs->count; i++)
        clear(&graphs->entries[i]);
    free(graphs->entries);
    free(graphs->unused);
    free(graphs->destroyed);
    gm_map_free(&graphs->graphs);
    gm_map_free(&graphs->executables);
}

static void recycle(struct gm_graphs *graphs, uint32_t number)
{
    if (number == GM_NONE)
        return;
    graphs->node_count -= graphs->entries[number].count;
    clear(&graphs->entries[number]);
    GM_APPEND(graphs->unused, graphs->unused_capacity, graphs->unused_count, number);
}

static void drop_graph(struct gm_graphs *graphs, struct gm_map *map, uint64_t handle)
{
    recycle(graphs, gm_map_get(map, handle));
    gm_map_remove(map, handle);
}

/* The graph that a lane destroyed last may yet be undone: it is kept until the lane destroys another. */
static uint32_t *destroyed_by(struct gm_graphs *graphs, uint32_t lane)
{
    GM_RESERVE(graphs->destroyed, graphs->lane_capacity, (size_t)lane + 1);
    while (graphs->lane_count <= lane)
        graphs->destroyed[graphs->lane_count++] = GM_NONE;
    return &graphs->destroyed[lane];
}

static struct gm_map *map_of(struct gm_graphs *graphs, unsigned type)
{
    return type == GM_EVENT_GRAPH_DESTROY ? &graphs->graphs : &graphs->executables;
}

void gm_graph_destroyed(struct gm_graphs *graphs, const struct gm_record *record, uint32_t lane)
{
    struct gm_map *map = map_of(graphs, record->type);
    uint32_t *kept = destroyed_by(graphs, lane);
    recycle(graphs, *kept);
    *kept = gm_map_get(map, record->address);
    gm_map_remove(map, record->address);
}

void gm_graph_undo(struct gm_graphs *graphs, const struct gm_record *undo, uint32_t lane)
{
    struct gm_map *map = map_of(graphs, undo->kind);
    uint32_t *kept = destroyed_by(graphs, lane);
    if (*kept != GM_NONE && gm_map_get(map, undo->address) == GM_NONE)
        gm_map_set(map, undo->address, *kept);
    else /* another has the handle since: it was destroyed */
        recycle(graphs, *kept);
    *kept = GM_NONE;
}

static void drop_destroyed(struct gm_graphs *graphs)
{
    for (size_t lane = 0; lane < graphs->lane_count; lane++) {
        recycle(graphs, graphs->destroyed[lane]);
        graphs->destroyed[lane] = GM_NONE;
    }
}

/* The entry of a handle, made if there is none. */
static uint32_t graph_entry(struct gm_graphs *graphs, struct gm_map *map, uint64_t handle)
{
    uint32_t number = gm_map_get(map, handle);
    if (number != GM_NONE)
        return number;
    if (graphs->unused_count) {
        number = graphs->unused[--graphs->unused_count];
    } else {
        number = (uint32_t)graphs->count++;
        GM_RESERVE(graphs->entries, graphs->capacity, graphs->count);
    }
    graphs->entries[number] = (struct gm_graph){.used = true};
    gm_map_set(map, handle, number);
    return number;
}

static void append_to_graph(struct gm_graphs *graphs, uint32_t to,
                            const struct gm_graph_node *nodes, size_t count)
{
    struct gm_graph *graph = &graphs->entries[to];
    if (count > NODES_MAX - graphs->node_count)
        drop_destroyed(graphs);
    if (count > NODES_MAX - graphs->node_count) {
        graphs->nodes_refused += count;
        return;
    }
    GM_RESERVE(graph->nodes, graph->capacity, graph->count + count);
    memcpy(graph->nodes + graph->count, nodes, count * sizeof(*nodes));
    graph->count += count;
    graphs->node_count += count;
}

/* Memory that a pool of the host or of managed memory describes is such; all else is the graph's. */
static uint8_t kind_of_node(const struct gm_record *record)
{
    return record->kind == GM_KIND_PINNED || record->kind == GM_KIND_MANAGED ? record->kind
                                                                             : GM_KIND_GRAPH;
}

static void append_graph_node(struct gm_graphs *graphs, const struct gm_record *record,
                              bool is_free)
{
    struct gm_graph_node node = {
        GM_SAME(record, address, size, stack, api, device),
        .kind = kind_of_node(record),
        .is_free = is_free,
    };
    append_to_graph(graphs, graph_entry(graphs, &graphs->graphs, record->aux), &node, 1);
}

/* Appends the nodes that graph `from` has now to the entry of `handle`. */
static void append_graph(struct gm_graphs *graphs, struct gm_map *map, uint64_t handle,
                         uint64_t from)
{
    uint32_t source = gm_map_get(&graphs->graphs, from);
    if (source == GM_NONE || !graphs->entries[source].count)
        return; /* without memory nodes */
    if (!gm_limits_spend(graphs->entries[source].count)) {
        graphs->nodes_refused += graphs->entries[source].count;
        return;
    }
    uint32_t to = graph_entry(graphs, map, handle);
    size_t count = graphs->entries[source].count;
    struct gm_graph_node *copy = gm_allocate(count, sizeof(*copy)); /* the two may be the same */
    memcpy(copy, graphs->entries[source].nodes, count * sizeof(*copy));
    append_to_graph(graphs, to, copy, count);
    free(copy);
}

static void instantiate_graph(struct gm_graphs *graphs, const struct gm_record *record)
{
    drop_graph(graphs, &graphs->executables, record->address);
    append_graph(graphs, &graphs->executables, record->address, record->aux);
    uint32_t number = gm_map_get(&graphs->executables, record->address);
    if (number != GM_NONE)
        graphs->entries[number].frees_on_launch = (record->extra & AUTO_FREE_ON_LAUNCH) != 0;
}

static void free_address(struct gm_ledger *ledger, uint64_t address)
{
    if (gm_ledger_pays(ledger, address))
        return;
    uint32_t life = gm_lives_find(&ledger->lives, address);
    if (life != GM_NONE)
        gm_ledger_end_life(ledger, life, NULL, false, NULL);
}

/* Whether nothing lives where the graph's memory will. */
static bool is_alone(struct gm_graph *graph, const struct gm_ledger *ledger)
{
    if (graph->alone_at == ledger->addressed)
        return true;
    gm_limits_spend(GM_STEPS_ADDRESS * graph->count);
    for (size_t i = 0; i < graph->count; i++)
        if (gm_lives_find(&ledger->lives, graph->nodes[i].address) != GM_NONE)
            return false;
    graph->alone_at = ledger->addressed;
    return true;
}

/* Another launch of what leaves nothing behind. The first one is booked node by node, and so are
 * those that find something in their way. */
static bool launch_at_once(struct gm_graph *graph, struct gm_ledger *ledger)
{
    if (!graph->was_launched) {
        graph->was_launched = true;
        gm_limits_spend(GM_STEPS_LIFE * graph->count);
        graph->turn = gm_graph_turn_new(graph->nodes, graph->count);
        return false;
    }
    return graph->turn &&
           gm_limits_spend(GM_STEPS_TURN + GM_STEPS_TURN_SITE * graph->turn->site_count) &&
           is_alone(graph, ledger) && gm_ledger_turn(ledger, graph->turn);
}

static void launch_graph(struct gm_graphs *graphs, const struct gm_record *record)
{
    uint32_t number = gm_map_get(&graphs->executables, record->address);
    graphs->launches++;
    if (number == GM_NONE)
        return;
    struct gm_graph *graph = &graphs->entries[number];
    if (launch_at_once(graph, graphs->ledger)) {
        graphs->at_once++;
        return;
    }
    if (!gm_limits_spend(GM_STEPS_LIFE * graph->count))
        return;
    for (size_t i = 0; graph->frees_on_launch && i < graph->count; i++)
        if (!graph->nodes[i].is_free)
            free_address(graphs->ledger, graph->nodes[i].address);
    for (size_t i = 0; i < graph->count; i++) {
        const struct gm_graph_node *node = &graph->nodes[i];
        if (node->is_free) {
            free_address(graphs->ledger, node->address);
            continue;
        }
        struct gm_life *life = gm_ledger_draft(graphs->ledger, record, node->kind);
        GM_COPY_MEMBERS(life, node, address, size, stack, api);
        gm_life_set_device(life, node->device);
        gm_ledger_begin_life(graphs->ledger, life);
    }
}

void gm_graph_apply(struct gm_graphs *graphs, const struct gm_record *record)
{
    switch (record->type) {
    case GM_EVENT_ALLOC:
    case GM_EVENT_GRAPH_ALLOC_NODE:
        append_graph_node(graphs, record, false);
        break;
    case GM_EVENT_FREE:
    case GM_EVENT_GRAPH_FREE_NODE:
        append_graph_node(graphs, record, true);
        break;
    case GM_EVENT_GRAPH_CHILD:
        append_graph(graphs, &graphs->graphs, record->address, record->aux);
        break;
    case GM_EVENT_GRAPH_CLONE:
        if (record->address == record->aux)
            break;
        drop_graph(graphs, &graphs->graphs, record->address);
        append_graph(graphs, &graphs->graphs, record->address, record->aux);
        break;
    case GM_EVENT_GRAPH_INSTANTIATE:
        instantiate_graph(graphs, record);
        break;
    case GM_EVENT_GRAPH_LAUNCH:
        launch_graph(graphs, record);
        break;
    default:
        break;
    }
}
