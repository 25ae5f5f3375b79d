/* How several traces (the ranks of a job) compare. */
#ifndef GPUMEM_REPORT_RENDER_TEXT_BALANCE_H
#define GPUMEM_REPORT_RENDER_TEXT_BALANCE_H

#include "model/model.h"
#include <stdio.h>

/* A device of one trace. */
struct gm_balance_line {
    char *trace;
    int device;
    int64_t peak;
    int64_t live;
    int64_t leaked;
};

/* One trace's part of it, without its name. */
struct gm_balance_part {
    size_t count;
    struct gm_balance_line lines[GM_DEVICES];
};

struct gm_balance {
    struct gm_balance_line *lines;
    size_t count;
    size_t capacity;
};

void gm_balance_of(struct gm_balance_part *part, const struct gm_model *model,
                   const struct gm_model_run *run);
void gm_balance_add(struct gm_balance *balance, const char *path,
                    const struct gm_balance_part *part);
void gm_balance_text(FILE *out, const struct gm_balance *balance, bool colour);
void gm_balance_free(struct gm_balance *balance);

#endif
