/* What is known already: a text file that git can merge, a line for each issue, sorted.
 *
 *     leak 1f0c9a3e55d2b871 1048576 12 load_checkpoint training_loop.c
 *     peak 0a8817cd33e1f09b 2075918336 0 device 0
 *
 * Code, fingerprint, bytes, allocations, and for people the function and the file's name, or whose
 * peak it is. */
#ifndef GPUMEM_REPORT_GATE_BASELINE_H
#define GPUMEM_REPORT_GATE_BASELINE_H

#include "tools/gate/issue.h"

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

/* The same of an open file, which stays open; `name` stands in complaints. */
bool gm_baseline_read(struct gm_baseline *baseline, FILE *file, const char *name);
void gm_baseline_free(struct gm_baseline *baseline);

/* The entry of a fingerprint; NULL: it is new. */
const struct gm_baseline_entry *gm_baseline_find(const struct gm_baseline *baseline,
                                                 uint64_t fingerprint);

/* A peak has no place: its fingerprint is of the rank and the device, -1 for none, which is the pinned
 * memory's. */
uint64_t gm_peak_fingerprint(int64_t rank, int device);

/* Adds the most that a peak came to. */
void gm_baseline_add_peak(struct gm_baseline *baseline, int64_t rank, int device, int64_t bytes);

/* Adds what the issues come to; suppressed ones and notes are left out. */
void gm_baseline_add_issues(struct gm_baseline *baseline, const struct gm_issues *issues);

/* Writes the most bytes of each fingerprint that was added. It replaces the file at once, or not at
 * all. False after one line about it. */
bool gm_baseline_write(const char *path, struct gm_baseline *baseline);

#endif
