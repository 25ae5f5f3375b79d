/* Graphs: memory nodes wait in a graph or an executable until a launch brings them to life. */
#ifndef GPUMEM_REPORT_REPLAY_GRAPH_H
#define GPUMEM_REPORT_REPLAY_GRAPH_H

#include "base/map.h"
#include "replay/ledger/ledger.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* An allocation node or a free node. */
struct gm_graph_node {
    uint64_t address;
    uint64_t size; /* of an allocation */
    uint32_t stack;
    uint16_t api;
    int8_t device;
    uint8_t kind; /* of an allocation */
    bool is_free;
};

/* A graph, the nodes of one capture, or an executable. */
struct gm_graph {
    struct gm_graph_node *nodes; /* in the order in which they were made */
    size_t count;
    size_t capacity;
    bool used;
    bool frees_on_launch; /* executable: what still lives from an earlier launch is freed first */
    bool was_launched;
    struct gm_turn *turn; /* of a launch; NULL: not known before the second, or none */
    uint64_t alone_at;    /* nothing lived at its addresses when ledger->addressed was this */
};

struct gm_graphs {
    struct gm_ledger *ledger; /* where the memory is booked */
    struct gm_graph *entries;
    size_t count;
    size_t capacity;
    struct gm_map graphs;      /* handle -> entry */
    struct gm_map executables; /* likewise */
    uint32_t *unused;
    size_t unused_count;
    size_t unused_capacity;
    uint32_t *destroyed; /* [lane]: entry of what it destroyed last, GM_NONE */
    size_t lane_count;
    size_t lane_capacity;
    size_t node_count; /* of all: bounded, since copies of copies could grow without limit */
    uint64_t launches;
    uint64_t at_once;       /* of those: see graph_turn.c */
    uint64_t nodes_refused; /* beyond the bound */
};

void gm_graphs_begin(struct gm_graphs *graphs, struct gm_ledger *ledger);
void gm_graphs_end(struct gm_graphs *graphs);

/* Applies a record of the family (GRAPH_*), or an allocation or free made under capture. */
void gm_graph_apply(struct gm_graphs *graphs, const struct gm_record *record);

/* GRAPH_DESTROY and GRAPH_EXEC_DESTROY of a lane, and the UNDO of its latest one. */
void gm_graph_destroyed(struct gm_graphs *graphs, const struct gm_record *record, uint32_t lane);
void gm_graph_undo(struct gm_graphs *graphs, const struct gm_record *undo, uint32_t lane);

/* ---- a launch that leaves nothing behind (graph_turn.c) ------------------------------------------ */

struct gm_graph_node;

/* NULL if the nodes are of several devices, begin something where it lives, end what they did not
 * begin, or leave something. */
struct gm_turn *gm_graph_turn_new(const struct gm_graph_node *nodes, size_t count);
void gm_graph_turn_free(struct gm_turn *turn); /* may be NULL */

#endif
