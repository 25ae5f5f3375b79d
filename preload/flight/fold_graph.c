/* See fold_graph.h: graphs. Each graph and executable has the list of its memory nodes, as report/replay/rules/graph.c
 * has; a launch turns them into lives of addresses at once, so that no launch is carried. */
#include "flight/fold_graph.h"
#include "flight/fold_lives.h"

#define AUTO_FREE_ON_LAUNCH 1u /* of CUgraphInstantiate_flags */
#define NO_HANDLE UINT64_MAX   /* of the graph from which an executable is made again */

static uint32_t carried_graph(enum gm_carry_role role, uint64_t handle, uint32_t lane)
{
    uint32_t number = gm_carry_find(role, handle);
    return number ? number : gm_fold_add(role, handle, &(struct gm_record){0}, NULL, lane);
}

void gm_fold_graph_over(uint32_t number)
{
    for (uint32_t node = gm_carry_at(number)->nodes, next; node; node = next) {
        next = gm_carry_at(node)->same;
        gm_carry_remove(node);
    }
    gm_carry_remove(number);
}

static void drop_carried_graph(enum gm_carry_role role, uint64_t handle, uint32_t ending)
{
    uint32_t number = gm_carry_find(role, handle);
    if (number && ending)
        gm_fold_end(number, ending, false);
    else if (number)
        gm_fold_graph_over(number);
}

/* As report/replay/rules/graph.c has it. */
static bool is_host_like(uint8_t kind)
{
    return kind == GM_KIND_PINNED || kind == GM_KIND_MANAGED;
}

static void append_carried_node(uint32_t graph, const struct gm_record *record, bool is_free,
                                uint32_t lane)
{
    struct gm_record node = {
        .type = is_free ? GM_EVENT_GRAPH_FREE_NODE : GM_EVENT_GRAPH_ALLOC_NODE,
        .time = record->time,
        .address = record->address,
        .size = record->size,
        .stack = record->stack,
        .api = record->api,
        .kind = is_host_like(record->kind) ? record->kind : GM_KIND_GRAPH,
        .flags = GM_FLAG_POOL, /* it outlives its context */
        .device = record->device,
    };
    uint32_t number = graph ? gm_fold_add(GM_CARRY_NODE, 0, &node, NULL, lane) : 0;
    if (!number)
        return;
    uint32_t last = gm_carry_at(graph)->other;
    *(last ? &gm_carry_at(last)->same : &gm_carry_at(graph)->nodes) = number;
    gm_carry_at(graph)->other = number;
}

/* Appends the nodes that graph `from` has now. */
static void append_graph(enum gm_carry_role role, uint64_t handle, uint64_t from, uint32_t lane)
{
    uint32_t source = gm_carry_find(GM_CARRY_GRAPH, from);
    if (!source || !gm_carry_at(source)->nodes)
        return; /* without memory nodes */
    uint32_t to = carried_graph(role, handle, lane);
    uint32_t last = gm_carry_at(source)->other; /* the two may be the same */
    for (uint32_t node = gm_carry_at(source)->nodes; to && node;) {
        struct gm_record record = gm_carry_at(node)->record;
        append_carried_node(to, &record, record.type == GM_EVENT_GRAPH_FREE_NODE, lane);
        node = node == last ? 0 : gm_carry_at(node)->same;
    }
}

static void instantiate_carried_graph(const struct gm_record *record, uint32_t lane)
{
    drop_carried_graph(GM_CARRY_EXECUTABLE, record->address, 0);
    append_graph(GM_CARRY_EXECUTABLE, record->address, record->aux, lane);
    uint32_t number = gm_carry_find(GM_CARRY_EXECUTABLE, record->address);
    if (number)
        gm_carry_at(number)->record = *record;
}

/* The launch may have done so as long ago as its call took. */
static void free_at(uint64_t address, const struct gm_record *launch, uint32_t lane)
{
    if (!gm_fold_pays(address, launch->time, launch->extra, lane))
        gm_fold_end_at(address);
}

static void launch_carried_graph(const struct gm_record *record, uint32_t lane)
{
    uint32_t number = gm_carry_find(GM_CARRY_EXECUTABLE, record->address);
    if (!number)
        return;
    uint32_t first = gm_carry_at(number)->nodes;
    bool frees_first = gm_carry_at(number)->record.extra & AUTO_FREE_ON_LAUNCH;
    for (uint32_t at = first; frees_first && at; at = gm_carry_at(at)->same)
        if (gm_carry_at(at)->record.type == GM_EVENT_GRAPH_ALLOC_NODE)
            free_at(gm_carry_at(at)->record.address, record, lane);
    for (uint32_t at = first; at; at = gm_carry_at(at)->same) {
        struct gm_record life = gm_carry_at(at)->record;
        if (life.type == GM_EVENT_GRAPH_FREE_NODE) {
            free_at(life.address, record, lane);
            continue;
        }
        life.type = GM_EVENT_ALLOC;
        life.time = record->time;
        life.context = record->context;
        gm_fold_begin_life(&life, record->extra, lane);
    }
}

void gm_fold_graph_apply(const struct gm_record *record, uint32_t lane, uint32_t ending)
{
    switch (record->type) {
    case GM_EVENT_ALLOC:
    case GM_EVENT_GRAPH_ALLOC_NODE:
        append_carried_node(carried_graph(GM_CARRY_GRAPH, record->aux, lane), record, false, lane);
        break;
    case GM_EVENT_FREE:
    case GM_EVENT_GRAPH_FREE_NODE:
        append_carried_node(carried_graph(GM_CARRY_GRAPH, record->aux, lane), record, true, lane);
        break;
    case GM_EVENT_GRAPH_CHILD:
        append_graph(GM_CARRY_GRAPH, record->address, record->aux, lane);
        break;
    case GM_EVENT_GRAPH_CLONE:
        if (record->address == record->aux)
            break;
        drop_carried_graph(GM_CARRY_GRAPH, record->address, 0);
        append_graph(GM_CARRY_GRAPH, record->address, record->aux, lane);
        break;
    case GM_EVENT_GRAPH_INSTANTIATE:
        instantiate_carried_graph(record, lane);
        break;
    case GM_EVENT_GRAPH_LAUNCH:
        launch_carried_graph(record, lane);
        break;
    case GM_EVENT_GRAPH_EXEC_DESTROY:
        drop_carried_graph(GM_CARRY_EXECUTABLE, record->address, ending);
        break;
    case GM_EVENT_GRAPH_DESTROY:
        drop_carried_graph(GM_CARRY_GRAPH, record->address, ending);
        break;
    default:
        break;
    }
}

/* An executable is made again from a graph that lives no longer than that takes. */
void gm_fold_graph_emit(const struct gm_carried *graph, gm_carry_taker *take, void *argument)
{
    bool is_executable = graph->role == GM_CARRY_EXECUTABLE;
    uint64_t handle = is_executable ? NO_HANDLE : graph->key;
    for (uint32_t node = graph->nodes; node; node = gm_carry_at(node)->same) {
        struct gm_record record = gm_carry_at(node)->record;
        record.aux = handle;
        take(argument, &record, graph->lane);
    }
    if (!is_executable)
        return;
    struct gm_record record = graph->record;
    record.aux = handle;
    take(argument, &record, graph->lane);
    /* Emptied by a copy of none: a destruction is free-like, and would be taken for the lane's latest. */
    record = (struct gm_record){.type = GM_EVENT_GRAPH_CLONE,
                                .time = record.time,
                                .address = handle,
                                .aux = NO_HANDLE - 1,
                                .device = -1};
    take(argument, &record, graph->lane);
}
