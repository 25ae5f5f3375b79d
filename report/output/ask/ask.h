/* The questions of `gpumem ask` that one model answers: docs/ask.md. */
#ifndef GPUMEM_REPORT_RENDER_ASK_ASK_H
#define GPUMEM_REPORT_RENDER_ASK_ASK_H

#include "output/ask/request.h"
#include <stdio.h>

struct gm_ask_question {
    const char *name;
    bool takes_id;
};

/* NULL: there is no such question. */
const struct gm_ask_question *gm_ask_find(const char *name);

/* Writes the answer of a model of one run that has GM_NEEDS_ALL. False: what was asked for is not in it, and that was written. */
bool gm_ask_write(FILE *out, const struct gm_model *model, const struct gm_ask_request *request);

#endif
