/* What the gate judges: each issue is one cause of one trace, at one place of the program.
 *
 * A trace is read in a process of its own (commands/apart.h), which writes its issues into a file
 * that both processes have open; the gate reads them there and prints them in the formats asked for.
 */
#ifndef GPUMEM_REPORT_GATE_ISSUE_H
#define GPUMEM_REPORT_GATE_ISSUE_H

#include "model/model.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum gm_issue_level {
    GM_ISSUE_NOTE,
    GM_ISSUE_WARNING,
    GM_ISSUE_FAILURE,
};

enum gm_issue_known {
    GM_ISSUE_NEW,
    GM_ISSUE_IN_BASELINE, /* with no more bytes than allowed */
    GM_ISSUE_SUPPRESSED,
};

struct gm_issue {
    enum gm_issue_level level;
    enum gm_issue_known known;
    int device; /* -1: of none, or of more than one */
    int64_t bytes;
    int64_t count; /* allocations; 0: not counted */
    uint64_t fingerprint;
    bool is_finding;
    uint32_t rule;  /* of the suppression that matched it; GM_NONE */
    unsigned line;  /* 0: unknown */
    char *trace;    /* its path */
    char *code;     /* "leak", "late" ..., a finding's, or a budget's: "max-peak" */
    char *message;  /* one sentence */
    char *function; /* "" unknown */
    char *file;     /* "" unknown */
    char *stack;    /* a line for each frame, innermost first; "": no place */
    char *frames;   /* what a rule's `match` would be, a line each; "": none was made */
};

/* All zero: none. */
struct gm_issues {
    struct gm_issue *entries;
    size_t count;
    size_t capacity;
};

/* Adds a copy, texts too. */
void gm_issues_add(struct gm_issues *issues, const struct gm_issue *issue);
void gm_issues_free(struct gm_issues *issues);

/* Whether two are of one cause at one place, in whichever traces. */
bool gm_issue_is_same(const struct gm_issue *one, const struct gm_issue *other);

/* Says in the message what an issue of a class of leaks comes to. */
void gm_issue_tell_leak(struct gm_issue *issue);

/* Sets what an issue tells of a stack: function, file, line of the frame that tells most, all frames,
 * and the fingerprint (gm_model_fingerprint). The texts are the model's but for `stack`, which the
 * caller frees. */
void gm_issue_place(struct gm_issue *issue, const struct gm_model *model, uint32_t stack,
                    const char *kind);

/* The fingerprint of an issue that has no place: of its code and of what it is about ("peak, device 0").
 * Systems that tell issues apart by it would take two budgets for one. */
uint64_t gm_issue_fingerprint(const char *code, const char *what);

/* Sets the function, the file and the line alone: of another frame than the one that tells most. The
 * texts are the frame's. */
void gm_issue_name(struct gm_issue *issue, const struct gm_frame *frame);

/* Writes one to a file, and reads it back; false: there is none, or the file is damaged. The caller
 * frees what was read with gm_issue_free. */
void gm_issue_write(FILE *file, const struct gm_issue *issue);
bool gm_issue_read(FILE *file, struct gm_issue *issue);
void gm_issue_free(struct gm_issue *issue);

/* Whether an issue can have that code: a class of leaks or a finding's. */
bool gm_gate_is_code(const char *name);

const char *gm_issue_level_name(enum gm_issue_level level); /* "error", "warning", "note" */

#endif
