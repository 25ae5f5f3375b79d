/*
 * The answer of a dry run: does it fit, and which part of that is exact, bounded or assumed.
 */
#ifndef GPUMEM_REPORT_DRYRUN_JUDGEMENT_H
#define GPUMEM_REPORT_DRYRUN_JUDGEMENT_H

#include "tools/dryrun/launch.h"
#include <stdio.h>

enum gm_dry_verdict { GM_DRY_FITS, GM_DRY_DOES_NOT_FIT, GM_DRY_UNDECIDED };

/* Exact: the program's allocator asked for it, by the same code as on a GPU. Bounded: from `least`
 * to `most`. Assumed: not of this run, but of a table. */
enum gm_dry_kind { GM_DRY_EXACT, GM_DRY_BOUNDED, GM_DRY_ASSUMED };

struct gm_dry_part {
    const char *name;
    uint64_t bytes;
    uint64_t least, most; /* of a bounded part; else both are `bytes` */
    enum gm_dry_kind kind;
};

enum { GM_DRY_PARTS = 8 };

/* What is known beside the traces. */
struct gm_dry_facts {
    const struct gm_dry_device *device;
    uint64_t capacity; /* of each device */
    unsigned devices;  /* that the program saw */
    uint64_t nccl;     /* bytes assumed for its buffers; 0: not used */
    int command_exit;
    unsigned steps;             /* after which it was ended; 0: it came to its own end */
    struct gm_dry_line endless; /* a loop in which it was ended; count 0: in none */
    bool has_no_exit;           /* that loop waits for nothing */
    bool grows;                 /* that loop reserved more and more */
    struct gm_dry_line raised;  /* where its last exception came from; count 0: not known */
    const char *exception;      /* that exception */
    bool has_values;            /* small operations were computed */
    bool values_ended;          /* until compiled code was called */
    bool is_second;             /* in a second run, as the first one did not come to a good end */
    const struct gm_dry_outcome *outcome;    /* without any workspace of cuDNN's convolutions */
    const struct gm_dry_outcome *with_cudnn; /* with large ones; NULL: no convolution ran */
    const struct gm_dry_outcome *with_rows; /* masks that are not known choose all; NULL: not run */
    const struct gm_dry_outcome
        *whole; /* with all the memory that it asks for; NULL: it was not refused any, or that came
                                           to no good end */
    bool
        has_unknown_workspaces; /* a convolution ran, and no run with large workspaces tells how much they matter */
    bool has_rows;       /* `outcome` has the rows that masks of known values choose */
    bool numbers_differ; /* in the run with rows, whole numbers that are not known equalled none */
    bool chose_all;      /* and all rows of other masks, so that its need is the most */
    const struct gm_dry_told *rows_failed; /* how the run with all rows ended, if not well; NULL */
    const struct gm_dry_outcome *const *bounds; /* with other addresses, and late events */
    size_t bound_count;
    const char *refused; /* why it could not be run; NULL */
};

struct gm_dry_judgement {
    enum gm_dry_verdict verdict;
    int device;    /* that decides; -1: none was used */
    uint64_t peak; /* bytes needed of the device, all parts together */
    uint64_t most; /* the same, the bounded parts at their most */
    uint64_t capacity;
    struct gm_dry_part parts[GM_DRY_PARTS];
    size_t part_count;
};

/* The run that tells the need. */
const struct gm_dry_outcome *gm_dry_telling(const struct gm_dry_facts *facts);

void gm_dry_judge(struct gm_dry_judgement *judgement, const struct gm_dry_facts *facts);

/* The verdict in one sentence, then its parts and the reads that make it "at least". */
void gm_dry_text(FILE *out, const struct gm_dry_judgement *judgement,
                 const struct gm_dry_facts *facts);

/* The member "dry_run" of a JSON object that is open, and has members before it or not:
 * docs/report-json.md. */
void gm_dry_json(FILE *out, const struct gm_dry_judgement *judgement,
                 const struct gm_dry_facts *facts, bool follows);

#endif
