/*
 * Folds the records of a flight trace, in the order of time, into what must be carried over so that
 * the history may be overwritten.
 *
 * Guarantees: replaying what gm_fold_emit gives, and then the records that were not folded, leads
 * to the same memory, pools, contexts, graphs and blocks alive at every moment as replaying all
 * records would, and to the same counts of frees that were lost or unknown; docs/accounting.md has
 * the rules, and report/replay/replay.c follows them on its own.
 * Memory is bounded by what is alive, plus at most one free-like record for each lane: the latest,
 * with all that it ended, because an UNDO may follow. What cannot be understood (CUDA would refuse
 * it) is kept word for word.
 *
 * Needs gm_pack_lock, as carry.h. No file, no clock: tests fold by themselves.
 */
#ifndef GPUMEM_PRELOAD_FLIGHT_FOLD_H
#define GPUMEM_PRELOAD_FLIGHT_FOLD_H

#include "flight/carry.h"

/* Of all records folded so far. */
extern struct gm_flight_totals gm_fold_totals;
extern uint64_t gm_fold_lost_frees;    /* births at addresses and under handles that lived, mappings
                                          over others: a free was not seen */
extern uint64_t gm_fold_unknown_frees; /* frees of addresses and handles that did not */
extern uint64_t gm_fold_late;          /* stamped in the wrong order, and carried over in between */
extern uint64_t gm_fold_missed; /* for which there was no memory: what is carried is not all */

/* Takes one record; `detail` is NULL if it has none. */
void gm_fold(const struct gm_record *record, const struct gm_record *detail, uint32_t lane);

/* Gives all that is carried over, in the order in which it is to be replayed. If what is folded
 * later shows that the order of something here was another, gm_fold_late tells. */
typedef void gm_fold_taker(void *argument, const struct gm_record *record, uint32_t lane);
void gm_fold_emit(gm_fold_taker *take, void *argument);

/* Forgets everything: a forked child. */
void gm_fold_forget(void);

/* ---- for the families (fold_context.c, fold_graph.c, fold_vmm.c) ----------------------------- */

/* Adds an entry, and counts it as missed if there is no memory. */
uint32_t gm_fold_add(enum gm_carry_role role, uint64_t key, const struct gm_record *record,
                     const struct gm_record *detail, uint32_t lane);

/* A birth at an address: ends what lived there. `early`: how long before its record it may have
 * been. */
void gm_fold_begin_life(const struct gm_record *record, uint64_t early, uint32_t lane);

/* Ends what lives at an address, for good. */
void gm_fold_end_at(uint64_t address);

/* Whether a free, of which the call may have taken effect `early` before `time`, is of what lived
 * at the address before a birth there. */
bool gm_fold_pays(uint64_t address, uint64_t time, uint64_t early, uint32_t lane);

/* A free of what is not known to live. `ending`, its ENDING, will be kept: it may be undone. */
void gm_fold_unknown_free(uint32_t lane, uint32_t ending);

/* It lives on because a free failed, with this status. */
void gm_fold_mark_late(uint32_t number, uint32_t status);

/* `ending`, an ENDING, ended this entry; 0: it ended for good. */
void gm_fold_end(uint32_t number, uint32_t ending, bool implicit);

/* Contexts. `ending` is the ENDING made for a free-like record: an entry that nothing came of is
 * removed by the caller, so that who ends something or changes a count notes it there. */
void gm_fold_context_apply(const struct gm_record *record, uint32_t ending);
void gm_fold_context_use(uint16_t context); /* an allocation was made in it */
void gm_fold_context_released(const struct gm_carried *ending, bool undone);
void gm_fold_context_emit(bool again, gm_fold_taker *take, void *argument);
void gm_fold_context_forget(void);

/* Virtual memory and multicast. */
void gm_fold_vmm_apply(const struct gm_record *record, const struct gm_record *detail,
                       uint32_t lane, uint32_t ending);
void gm_fold_vmm_released(const struct gm_carried *ending, bool undone, uint32_t status);
void gm_fold_vmm_over(uint32_t number); /* the end of a mapping or binding cannot be undone */
bool gm_fold_vmm_revive(uint32_t number, uint32_t status); /* it is; false: what is there since
                                                              shows that it did happen */
bool gm_fold_vmm_prepare(uint32_t number, struct gm_record *record); /* to be given out; whether
                                                                        with another handle */
void gm_fold_vmm_forget(void);

void gm_fold_graph_apply(const struct gm_record *record, uint32_t lane);
void gm_fold_graph_emit(const struct gm_carried *graph, gm_fold_taker *take, void *argument);

#endif
