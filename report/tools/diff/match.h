/* Which stacks of two models are the same place of the program, though it was edited in between.
 *
 * Exactly: by the function, file and module of each frame. Lines are not compared: they move with
 * each edit. Likely: a stack that has no exact counterpart is matched with those left over on the
 * other side, first without folders, the program's name, versions of libraries and addresses that stand for names,
 * then
 * by the frames up to the caller of the one that tells most (stacks.h). All that match are one.
 */
#ifndef GPUMEM_REPORT_DIFF_MATCH_H
#define GPUMEM_REPORT_DIFF_MATCH_H

#include "model/model.h"

enum gm_match_level { GM_MATCH_EXACTLY, GM_MATCH_LIKELY };

struct gm_match {
    const struct gm_model *models[2];
    struct gm_model *keys; /* stacks as they are matched */
    uint32_t *of[2];       /* [side][stack] -> its key; GM_NONE: not asked for yet */
};

/* LIKELY names all stacks of both models; EXACTLY those that are asked for. */
void gm_match_begin(struct gm_match *match, const struct gm_model *first,
                    const struct gm_model *second, enum gm_match_level level);
void gm_match_end(struct gm_match *match);

/* The key of a stack of the first (0) or second (1) model: stacks that match have the same one. Keys
 * are small numbers, from 0 on. */
uint32_t gm_match_stack(struct gm_match *match, unsigned side, uint32_t stack);

#endif
