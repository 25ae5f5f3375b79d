/* Contexts, as they are folded. Needs gm_pack_lock. */
#ifndef GPUMEM_PRELOAD_FLIGHT_FOLD_CONTEXT_H
#define GPUMEM_PRELOAD_FLIGHT_FOLD_CONTEXT_H

#include "flight/carry.h"

/* `ending` is the ENDING made for a free-like record: an entry that nothing came of is
 * removed by the caller, so that who ends something or changes a count notes it there. */
void gm_fold_context_apply(const struct gm_record *record, uint32_t ending);
void gm_fold_context_use(uint16_t context); /* an allocation was made in it */
void gm_fold_context_released(const struct gm_carried *ending, bool undone);
void gm_fold_context_emit(bool again, gm_carry_taker *take, void *argument);
bool gm_fold_context_prepare(void);
void gm_fold_context_forget(void);

#endif
