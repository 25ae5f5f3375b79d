/* To which stream an allocation belongs, and to which place in it. */
#ifndef GPUMEM_REPORT_ROUNDS_BIRTHPLACE_H
#define GPUMEM_REPORT_ROUNDS_BIRTHPLACE_H

#include "judge/rounds/rounds.h"
#include "names/stacks/callers.h"
#include "names/stacks/owner.h"
#include <stdbool.h>

/* What is asked: who tells callers, and who owners. */
struct gm_round_tellers {
    struct gm_categories *categories;
    struct gm_callers *callers;
    struct gm_owners *owners;
};

/* The sort of memory of one kind that `stack` allocates; `is_block`: in a framework's pool. */
enum gm_round_sort gm_round_sort_of(const struct gm_round_tellers *tellers, bool is_block,
                                    unsigned kind, uint32_t stack);

struct gm_round_birthplace gm_round_birthplace_of(const struct gm_round_tellers *tellers,
                                                  bool is_block, unsigned kind, int device,
                                                  uint32_t stack);

#endif
