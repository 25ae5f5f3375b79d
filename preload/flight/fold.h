/*
 * Folds the records of a flight trace, in the order of time, into what must be carried over so that
 * the history may be overwritten.
 *
 * Guarantees: replaying what gm_fold_emit gives, and then the records that were not folded, leads
 * to the same memory, pools, contexts, graphs and blocks alive at every moment as replaying all
 * records would, and to the same counts of frees that were lost or unknown; docs/accounting.md has
 * the rules, and report/replay/rules/replay.c follows them on its own.
 * Memory is bounded by what is alive, plus at most one free-like record for each lane: the latest,
 * with all that it ended, because an UNDO may follow. What cannot be understood (CUDA would refuse
 * it) is kept word for word.
 *
 * Needs gm_pack_lock, as carry.h. No file, no clock: tests fold by themselves.
 */
#ifndef GPUMEM_PRELOAD_FLIGHT_FOLD_H
#define GPUMEM_PRELOAD_FLIGHT_FOLD_H

#include "flight/fold_lives.h"

/* Before the first record. False: there is no room. */
bool gm_fold_prepare(void);

/* Takes one record; `detail` is NULL if it has none. */
void gm_fold(const struct gm_record *record, const struct gm_record *detail, uint32_t lane);

/* Gives all that is carried over, in the order in which it is to be replayed. If what is folded
 * later shows that the order of something here was another, gm_fold_late tells. */
void gm_fold_emit(gm_carry_taker *take, void *argument);

/* Forgets everything: a forked child. */
void gm_fold_forget(void);

#endif
