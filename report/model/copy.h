/* Copies what is of one model into another, where stacks and places have other numbers. */
#ifndef GPUMEM_REPORT_MODEL_COPY_H
#define GPUMEM_REPORT_MODEL_COPY_H

#include "model/tables.h"

struct gm_copier {
    struct gm_model *to;
    const struct gm_model *from;
    uint32_t *stacks; /* [number in `from`] -> number in `to`; GM_NONE: not copied yet */
    uint32_t *places;
};

struct gm_copier gm_copier_begin(struct gm_model *to, const struct gm_model *from);
void gm_copier_end(struct gm_copier *copier);

/* The numbers of a stack and of a place in the other model. GM_NONE stays GM_NONE. */
uint32_t gm_copy_stack(struct gm_copier *copier, uint32_t number);
uint32_t gm_copy_place(struct gm_copier *copier, uint32_t number);

/* Who and what a run was, and how far it can be trusted: the members of struct gm_model_run before
 * its totals. */
void gm_copy_facts(struct gm_copier *copier, struct gm_model_run *to,
                   const struct gm_model_run *from);

/* A whole run, with everything. */
struct gm_model_run gm_copy_run(struct gm_copier *copier, const struct gm_model_run *from);

#endif
