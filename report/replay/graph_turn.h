/* What a launch of a graph comes to that leaves nothing behind.
 *
 * A graph of thousands of nodes may be launched thousands of times. Where all that it begins ends in
 * it, a launch comes to the same each time, and need not be booked node by node. */
#ifndef GPUMEM_REPORT_REPLAY_GRAPH_TURN_H
#define GPUMEM_REPORT_REPLAY_GRAPH_TURN_H

#include "ledger/ledger.h"

struct gm_graph_node;

/* NULL if the nodes are of several devices, begin something where it lives, end what they did not
 * begin, or leave something. */
struct gm_turn *gm_graph_turn_new(const struct gm_graph_node *nodes, size_t count);
void gm_graph_turn_free(struct gm_turn *turn); /* may be NULL */

#endif
