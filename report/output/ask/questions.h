/* What the questions share. Each prepares an answer: its rows, and the steps that follow. */
#ifndef GPUMEM_REPORT_RENDER_ASK_QUESTIONS_H
#define GPUMEM_REPORT_RENDER_ASK_QUESTIONS_H

#include "output/ask/answer.h"
#include "output/ask/request.h"
#include "output/headline.h"

struct gm_ask {
    struct gm_answer answer;
    const struct gm_model *model;
    const struct gm_model_run *run;
    const struct gm_ask_request *request;
    struct gm_refusal refusal;              /* of `oom` */
    struct gm_model_held held;              /* of `peak` and `owners` */
    struct gm_owner {                       /* likewise, and of `leaks` */
        const struct gm_model_place *place; /* of the first one that was added */
        uint32_t stack;
        int64_t bytes;
        int64_t count; /* allocations, or blocks */
    } * owners;
    size_t owner_count;
    size_t owner_capacity;
    size_t finding;    /* of `finding` */
    uint32_t stack;    /* of `site` and `finding`; GM_NONE */
    const char *error; /* NULL: it can be answered; else what is missing */
    const char *error_code;
};

static inline struct gm_ask *gm_ask_of(struct gm_answer *answer)
{
    return answer->of;
}

void gm_ask_verdict(struct gm_ask *ask);
void gm_ask_finding(struct gm_ask *ask);
void gm_ask_site(struct gm_ask *ask);
void gm_ask_peak(struct gm_ask *ask);
void gm_ask_owners(struct gm_ask *ask);
void gm_ask_leaks(struct gm_ask *ask);
void gm_ask_oom(struct gm_ask *ask);
void gm_ask_growth(struct gm_ask *ask);

/* The members "site", "function", "file", "line", "module" of a stack, by `frame`; NULL: by the one that tells most.
 * Nothing for GM_NONE. */
void gm_ask_where(struct gm_ask *ask, struct gm_json *json, uint32_t stack,
                  const struct gm_frame *frame);

/* The member "device": a number, or null. */
void gm_ask_device(struct gm_json *json, int device);

/* Steps to the first findings of these codes (a bit for each code; all ones: of any). */
void gm_ask_step_findings(struct gm_ask *ask, uint32_t codes, size_t most);

#endif
