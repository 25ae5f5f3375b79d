/* Rules that say which issues are known and accepted: docs/gate.md has the two forms.
 *
 * Rules are the user's files: a line that is not understood is a usage error, never passed over.
 */
#ifndef GPUMEM_REPORT_GATE_SUPPRESSIONS_H
#define GPUMEM_REPORT_GATE_SUPPRESSIONS_H

#include "tools/gate/issue.h"
#include <stdio.h>

/* One frame of a rule's stack. */
struct gm_rule_frame {
    enum {
        GM_RULE_ANY,      /* function, file or module */
        GM_RULE_FUNCTION, /* "fun:" demangled */
        GM_RULE_MODULE,   /* "obj:" */
        GM_RULE_FILE,     /* "src:" */
        GM_RULE_GAP,      /* "..." any number of frames */
        GM_RULE_END,      /* "$" there is no frame further out */
    } what;
    char *pattern;
};

struct gm_rule {
    char *name; /* as it is listed: the pattern of a "leak:" line, the title of a block */
    char *why;  /* NULL: no reason is given */
    struct gm_rule_frame *frames;
    size_t frame_count, frame_capacity;
    char **codes; /* that it is for; none: "leak" */
    size_t code_count, code_capacity;
    int device;     /* -1: any */
    int64_t bytes;  /* that it accepts, in all; INT64_MAX: any */
    int64_t count;  /* allocations; likewise */
    uint32_t until; /* last day, YYYYMMDD; 0: for ever */
    bool expired;
    bool is_built_in;
    /* what it matched so far */
    int64_t used_bytes, used_count, used_issues;
};

struct gm_suppressions {
    struct gm_rule *rules;
    size_t count, capacity;
    struct gm_rule_index *index; /* of all rules; NULL: each is tried */
};

/* Adds the rules of a file; `today` is YYYYMMDD, UTC. False after one line about what is wrong. */
bool gm_suppressions_load(struct gm_suppressions *suppressions, const char *path, uint32_t today);

/* The same of an open file, which stays open; `name` stands in complaints. */
bool gm_suppressions_read(struct gm_suppressions *suppressions, FILE *file, const char *name,
                          uint32_t today);

/* All rules were added: makes what finds them fast. */
void gm_suppressions_finish(struct gm_suppressions *suppressions);
void gm_suppressions_free(struct gm_suppressions *suppressions);

/* The first rule, by number, that accepts the issue at that stack; GM_NONE. An expired rule accepts
 * nothing. */
uint32_t gm_suppressions_find(const struct gm_suppressions *suppressions,
                              const struct gm_issue *issue, const struct gm_model *model,
                              uint32_t stack);

/* Whether the rule still accepts what it has matched in all. */
bool gm_rule_holds(const struct gm_rule *rule);

/* ---- rules that are made --------------------------------------------------------------------- */

/* The frames of a stack as lines of a rule's block, "match = ...", which match this stack. The caller
 * frees it; "" where the stack has no frames. */
char *gm_rule_frames_of(const struct gm_stack *stack);

/* Prints a rule for each place that fails, which accepts just what there is of it in the trace with
 * most, and a comment for what fails and has no place. */
void gm_rules_write(FILE *out, const struct gm_issues *issues);

/* ---- rules that are built in ----------------------------------------------------------------- */

/* What NVIDIA's libraries keep to the end of the process by design, as a file of rules. */
extern const char gm_vendor_rules[];

/* Adds them. They are not listed where they match nothing. */
void gm_suppressions_add_vendor(struct gm_suppressions *suppressions);

/* ---- which rules may accept a stack (rule_index.c) ----------------------------------------------- */

/* Of the rules as they are now. */
struct gm_rule_index *gm_rule_index_make(const struct gm_suppressions *suppressions);
void gm_rule_index_free(struct gm_rule_index *index); /* NULL is fine */

/* The numbers of all rules whose frames can be among those of the stack, and of few others, in
 * ascending order. They are valid until the next call. */
const uint32_t *gm_rule_index_ask(struct gm_rule_index *index, const struct gm_stack *stack,
                                  size_t *count);

#endif
