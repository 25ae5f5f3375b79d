/* The rule of rounds.h, applied to one stream at one moment. */
#ifndef GPUMEM_REPORT_ROUNDS_JUDGE_H
#define GPUMEM_REPORT_ROUNDS_JUDGE_H

#include "rounds/rounds.h"

/* Adds what grows in stream number `stream` - 1 to `found`. Places found before are replaced if more
 * is certain now. */
void gm_rounds_judge(struct gm_rounds *rounds, uint16_t stream, bool at_refusal);

#endif
