/* Graphs and their memory nodes, as they are folded. Needs gm_pack_lock. */
#ifndef GPUMEM_PRELOAD_FLIGHT_FOLD_GRAPH_H
#define GPUMEM_PRELOAD_FLIGHT_FOLD_GRAPH_H

#include "flight/carry.h"

/* `ending`: of a free-like record its ENDING, else 0. */
void gm_fold_graph_apply(const struct gm_record *record, uint32_t lane, uint32_t ending);
/* Its end is settled. */
void gm_fold_graph_over(uint32_t number);
void gm_fold_graph_emit(const struct gm_carried *graph, gm_carry_taker *take, void *argument);

#endif
