/*
 * Changes of what the seal of a trace covers (ring/seal.h): the header, tables, rings that are
 * packed, the area of a flight recorder. Whoever changes one of them says so around the change, which
 * breaks a seal that stands.
 */
#ifndef GPUMEM_PRELOAD_BASE_CHANGE_H
#define GPUMEM_PRELOAD_BASE_CHANGE_H

#include "base/lock.h"
#include "base/process_state.h"

/* Who seals or breaks the seal holds it; inside all other locks. */
extern struct gm_lock gm_seal_lock;

extern _Atomic uint32_t gm_changes; /* that are under way */

void gm_unseal(void);

/*
 * Around each change of what the seal covers: from the first byte that differs to where all that
 * belongs together has changed. Changes may stand inside each other. First it is told that there is
 * a change, and then looked whether there is a seal: the other way round than in gm_seal.
 */
static inline void gm_change_begin(void)
{
    atomic_fetch_add(&gm_changes, 1);
    if (gm_unlikely(__atomic_load_n(&gm_process_ending, __ATOMIC_SEQ_CST) & GM_ENDING_SEALED))
        gm_unseal();
}

static inline void gm_change_end(void)
{
    atomic_fetch_sub_explicit(&gm_changes, 1, memory_order_release);
}

#endif
