/*
 * What a dry run came to: what each process did to its devices, put together and judged.
 *
 * All sizes are bytes. Nothing here has a pointer: outcomes cross from the process that read a trace
 * (commands/apart.h).
 */
#ifndef GPUMEM_REPORT_DRYRUN_OUTCOME_H
#define GPUMEM_REPORT_DRYRUN_OUTCOME_H

#include "model/model.h"
#include "replay/replica/replay.h"

enum { GM_DRY_DEVICES = 16, GM_DRY_LINES = 64, GM_DRY_FILE = 256 };

/* A line of the program. */
struct gm_dry_line {
    char file[GM_DRY_FILE]; /* clean; empty: not known */
    unsigned line;          /* 0: not known */
    uint64_t count;
    uint64_t
        rows; /* of these: how many rows a mask chooses, by which an operation sizes its result */
    bool is_printed; /* a value that was read here: nothing else is done with it */
};

/* One device, as one process used it. */
struct gm_dry_use {
    bool is_used;
    uint64_t peak;           /* of all that was allocated there but managed memory */
    uint64_t managed;        /* at its peak; the driver can move it to the host */
    uint64_t blocks;         /* a framework's, at their peak */
    bool is_of_xla;          /* not PyTorch's */
    uint64_t reserved;       /* by PyTorch, at its peak */
    uint64_t least_reserved; /* by the addresses that new segments get; of XLA's: was in use */
    uint64_t most_reserved;  /* the same; of XLA's: was reserved */
    bool has_failed;         /* a request was refused that nothing made up for */
    uint64_t wanted;         /* the first such request */
    uint64_t limit;          /* what XLA's pool may take; 0: not told */
    unsigned purpose;        /* enum gm_purpose: then it has no size */
    uint64_t held;           /* what was allocated just then */
    struct gm_dry_line at;   /* where it was asked for */
};

struct gm_dry_outcome {
    size_t processes;
    struct gm_dry_use devices[GM_DRY_DEVICES];
    struct gm_dry_line uncertain[GM_DRY_LINES]; /* reads of values that are not known, most first */
    size_t uncertain_count;
    uint64_t uncertain_reads; /* in all, with those of lines beyond GM_DRY_LINES */
    uint64_t
        row_reads; /* of these: how many rows a mask chooses, by which an operation sizes its result */
    uint64_t sized_reads; /* and of these: how long a result is that values decide without a most */
    uint64_t survived; /* requests that were refused for lack of memory, and the program went on */
};

/* Adds the runs of a model. */
void gm_dry_outcome_add(struct gm_dry_outcome *outcome, const struct gm_model *model);

/* Says of a device that was added how much of what PyTorch reserved there addresses decide: replays what `history` has
 * of it. */
void gm_dry_outcome_place(struct gm_dry_outcome *outcome, struct gm_history *history);

/* Adds an outcome of other processes: what processes hold of one device adds up. */
void gm_dry_outcome_unite(struct gm_dry_outcome *outcome, const struct gm_dry_outcome *other);

/* Says of which lines values are only printed. */
void gm_dry_outcome_printed(struct gm_dry_outcome *outcome, const struct gm_dry_line *lines,
                            size_t count);

/* The most that a device was used, and which one; -1: none was. */
int gm_dry_busiest(const struct gm_dry_outcome *outcome);

#endif
