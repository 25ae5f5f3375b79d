/* What is known already: a text file that git can merge, a line for each issue, sorted.
 *
 *     leak 1f0c9a3e55d2b871 1048576 12 load_checkpoint training_loop.c
 *
 * Code, fingerprint, bytes, allocations, and for people the function and the file's name. */
#ifndef GPUMEM_REPORT_GATE_BASELINE_H
#define GPUMEM_REPORT_GATE_BASELINE_H

#include "gate/issue.h"

struct gm_baseline_entry {
    uint64_t fingerprint;
    int64_t bytes;
    int64_t count;
    char *text; /* the line's rest */
    char *code;
};

struct gm_baseline {
    struct gm_baseline_entry *entries; /* by fingerprint */
    size_t count, capacity;
};

/* Reads one; a file that does not exist is an empty one where `may_lack` is set. False after one line
 * about what is wrong. */
bool gm_baseline_load(struct gm_baseline *baseline, const char *path, bool may_lack);
void gm_baseline_free(struct gm_baseline *baseline);

/* The entry of an issue; NULL: it is new. */
const struct gm_baseline_entry *gm_baseline_find(const struct gm_baseline *baseline,
                                                 const struct gm_issue *issue);

/* Writes what the issues come to, the most bytes of each fingerprint over all traces; suppressed ones
 * and notes are left out. It replaces the file at once, or not at all. False after one line about it. */
bool gm_baseline_write(const char *path, const struct gm_issues *issues);

#endif
