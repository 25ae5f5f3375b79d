/* The report for people, most useful first. */
#ifndef GPUMEM_REPORT_RENDER_REPORT_TEXT_H
#define GPUMEM_REPORT_RENDER_REPORT_TEXT_H

#include "analysis/analysis.h"
#include "render/page.h"
#include "stacks/stacks.h"
#include <stdio.h>

struct gm_text_options {
    size_t top; /* stacks per section */
    bool colour;
    bool many;       /* one of several traces */
    bool all_frames; /* of stacks: all, none folded */
};

void gm_report_text(FILE *out, const struct gm_analysis *analysis, struct gm_stacks *stacks,
                    const struct gm_text_options *options);

/* Whose memory: what the process imported or opened is another owner's. */
enum gm_leak_part { GM_LEAKS_ALL, GM_LEAKS_OWN, GM_LEAKS_FOREIGN };

/* The leaks of a class, at most `top` of them, as both report and check list them. */
void gm_leaks_text(struct gm_page *page, const struct gm_analysis *analysis,
                   struct gm_stacks *stacks, enum gm_leak_class class, enum gm_leak_part part,
                   size_t top);

/* How several traces (the ranks of a job) compare. */
struct gm_balance_line {
    char *trace;
    int device;
    uint64_t peak;
    uint64_t live;
    uint64_t leaked;
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

void gm_balance_of(struct gm_balance_part *part, const struct gm_analysis *analysis);
void gm_balance_add(struct gm_balance *balance, const char *path,
                    const struct gm_balance_part *part);
void gm_balance_text(FILE *out, const struct gm_balance *balance,
                     const struct gm_text_options *options);
void gm_balance_free(struct gm_balance *balance);

#endif
