/* Two runs compared: what came, went, grew and shrank.
 *
 * Either side may be of many processes. Processes are matched by rank, places by function, file and
 * module (diff/match.h), all else by name. Figures of all processes are added up, but for the table
 * of the processes themselves.
 */
#ifndef GPUMEM_REPORT_DIFF_DIFF_H
#define GPUMEM_REPORT_DIFF_DIFF_H

#include "tools/diff/subtract.h"

/* ---- figures with a name --------------------------------------------------------------------- */

struct gm_diff_row {
    char *name; /* clean */
    int64_t before, after;
    bool is_bytes; /* else a number of something */
};

struct gm_diff_table {
    struct gm_diff_row
        *rows; /* totals: all, in a fixed order; else those that differ, most first */
    size_t count, capacity;
};

enum gm_diff_tables {
    GM_DIFF_TOTALS,
    GM_DIFF_PROCESSES, /* the fullest device of each at its peak; of one process on each side: none */
    GM_DIFF_LIBRARIES,  /* whose memory was on the devices at their peaks */
    GM_DIFF_CATEGORIES, /* what blocks of PyTorch's pools were for at their peaks */
    GM_DIFF_PHASES,     /* the highest peak of each */
    GM_DIFF_FINDINGS,   /* how many there are of each, by code and place */
    GM_DIFF_TABLES
};

/* "totals", "processes", ... as the JSON has it. */
const char *gm_diff_table_name(enum gm_diff_tables table);

/* ---- places ---------------------------------------------------------------------------------- */

struct gm_diff_place {
    uint32_t stack;      /* of the difference */
    const char *library; /* whose memory it is; "" unknown */
    int64_t bytes_before, bytes_after;
    int64_t count_before, count_after; /* allocations */
};

enum gm_diff_sections {
    GM_DIFF_AT_PEAK,   /* of each device; what lies in a pool with known blocks is left out */
    GM_DIFF_IN_POOLS,  /* blocks at the peak of each pool */
    GM_DIFF_PINNED,    /* at its peak */
    GM_DIFF_LEAKED,    /* class "leak" */
    GM_DIFF_ALLOCATED, /* over the whole run */
    GM_DIFF_SECTIONS
};

const char *gm_diff_section_name(enum gm_diff_sections section); /* likewise */

struct gm_diff_places {
    struct gm_diff_place *entries; /* that differ, most change first */
    size_t count;
};

/* "came", "went", "grew", "shrank"; "same" where bytes are the same and counts differ. */
const char *gm_diff_change(int64_t before, int64_t after);

/* The frame in which a place differs from another of the same list that reads the same, because both
 * share what allocates; NULL: none reads the same. */
struct gm_diff;
const struct gm_frame *gm_diff_user(const struct gm_diff *diff, const struct gm_diff_places *places,
                                    size_t number);

/* ---- all ------------------------------------------------------------------------------------- */

struct gm_diff {
    const struct gm_model *base, *newer;
    struct gm_model *difference; /* newer - base */
    struct gm_diff_table tables[GM_DIFF_TABLES];
    struct gm_diff_places places[GM_DIFF_SECTIONS];
    bool differs;
};

/* Changes of less than `least` bytes are no difference; nor is then what is counted, if not 0. Both
 * models must outlive it. */
void gm_diff_make(struct gm_diff *diff, const struct gm_model *base, const struct gm_model *newer,
                  uint64_t least);
void gm_diff_free(struct gm_diff *diff);

/* Fills in diff->tables from both models; rows that do not differ are there, too. */
void gm_diff_fill_tables(struct gm_diff *diff);

#endif
