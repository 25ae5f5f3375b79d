/* An answer of `gpumem ask`: one JSON object on one line that is no longer than asked for. What does not fit of its list
 * comes with the next cursor, and texts are cut, then steps left out, where even a single row does not fit. */
#ifndef GPUMEM_REPORT_RENDER_ASK_ANSWER_H
#define GPUMEM_REPORT_RENDER_ASK_ANSWER_H

#include "model/model.h"
#include "output/json.h"

#define GM_ANSWER_BYTES 4096u     /* by default, with the line feed */
#define GM_ANSWER_BYTES_MIN 1024u /* that can be asked for */
#define GM_ANSWER_BYTES_MAX (1u << 20)

#define GM_ANSWER_STEPS 6u
#define GM_ANSWER_ROWS 256u /* of one answer, at most */

/* A command worth running next: "gpumem ask TRACE " and these words. */
struct gm_answer_step {
    char words[64];
    const char *why;
    const char *subject; /* instead of the answer's; NULL */
};

struct gm_answer {
    const char *question;
    const char *subject; /* the trace, as `next` has it; "": one that is not named; NULL: of none */
    const char *options; /* that `next` has, as ids depend on them: " --redact"; "": none */
    void (*write_head)(struct gm_answer *answer, struct gm_json *json); /* NULL: no members */
    void (*write_row)(struct gm_answer *answer, struct gm_json *json, size_t row);
    void *of; /* the question's own */
    size_t row_count;
    struct gm_answer_step steps[GM_ANSWER_STEPS];
    size_t step_count;
    unsigned cut; /* texts are cut to their most divided by this */
};

/* Adds a step, as long as there is room. */
void gm_answer_step(struct gm_answer *answer, const char *why, const char *words, ...)
    __attribute__((format(printf, 3, 4)));

/* The same about another trace. */
void gm_answer_step_on(struct gm_answer *answer, const char *subject, const char *why,
                       const char *words);

/* A text of at most `most` bytes, then "..."; `tail`: then before, as the end of a path tells most. NULL is null. */
void gm_answer_text(struct gm_answer *answer, struct gm_json *json, const char *key,
                    const char *text, size_t most);
void gm_answer_path(struct gm_answer *answer, struct gm_json *json, const char *key,
                    const char *path, size_t most);

#define GM_ANSWER_PLACE_BYTES 160u /* of a function or a file */

/* The members "function" and, where they are known, "file" and "line". */
void gm_answer_frame(struct gm_answer *answer, struct gm_json *json, const struct gm_frame *frame);

/* Writes it: rows from `first` on, as many as fit `size` bytes. */
void gm_answer_write(struct gm_answer *answer, FILE *out, size_t first, size_t size);

/* An answer that is none: {"question": ..., "error": {"code", "message"}}. `code`: stable. */
void gm_answer_refuse(FILE *out, const char *question, const char *code, const char *message);

#endif
