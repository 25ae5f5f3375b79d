/*
 * What a command finds in its environment when it is run dry: the simulated device, the library that
 * redirects to it, and the folder of stand-ins for math libraries.
 */
#ifndef GPUMEM_REPORT_DRYRUN_LAUNCH_H
#define GPUMEM_REPORT_DRYRUN_LAUNCH_H

#include "base/size.h"
#include "tools/dryrun/device.h"
#include "tools/dryrun/outcome.h"
#include <limits.h>

struct gm_dry_launch {
    char libraries[PATH_MAX]; /* folder of the simulated libraries */
    char status[PATH_MAX];    /* file in which they tell what happened */
};

/* Bytes of a device that has as much as is asked for: a run on it tells a program's whole need. */
#define GM_DRY_MEMORY_MOST (UINT64_C(1) << 40)

struct gm_dry_settings {
    const struct gm_dry_device *device;
    uint64_t memory; /* bytes of each device */
    unsigned devices;
    unsigned max_steps; /* after which the program is ended; 0: it is not */
    bool ends_steady;   /* the program is ended when its steps no longer raise the peak */
    bool values;        /* small operations are computed on the CPU */
    bool rows;          /* the same, and masks that are not known choose all */
    bool from_top;      /* new segments lie at the highest addresses, not the lowest */
    bool late_events;   /* events have happened at the next synchronisation, not at once */
    const char *cudnn;  /* workspaces of convolutions, times the bytes of their tensors: "0" */
};

/* Finds the simulated libraries: installed beside this executable, or in the same build. False after
 * a complaint. */
bool gm_dry_launch_find(struct gm_dry_launch *launch);

/* Sets the environment. `scratch`: a folder for the status file. False after a complaint. */
bool gm_dry_launch_set(struct gm_dry_launch *launch, const struct gm_dry_settings *settings,
                       const char *scratch);

/* What the simulated libraries told. */
struct gm_dry_told {
    char refused[1024]; /* why the run does not count, in one line; empty: it does */
    bool has_convolutions;
    uint64_t nccl;  /* bytes assumed for its buffers, of one device at most; 0: none has ranks */
    unsigned steps; /* after which a process was ended; 0: none was */
    struct gm_dry_line endless; /* a loop that was ended: count of rounds; 0: there was none */
    bool has_no_exit;           /* that loop waits for nothing: whatever is computed, it goes on */
    bool grows;                 /* that loop reserved more and more */
    struct gm_dry_line printed[GM_DRY_LINES]; /* where values are read that are only printed */
    size_t printed_count;
    bool values_ended; /* small operations were computed until compiled code was called */
    bool chose_all;    /* a mask that was not known chose all rows */
    bool
        numbers_differ; /* whole numbers that were not known differed from all they were compared with */
    bool loop_decides; /* a loop may end by a count or a truth that was not known */
    struct gm_dry_line
        raised; /* where an exception that ended a Python program came from; count 0: none did */
    char exception[256]; /* that exception, in one line */
    char without_cuda
        [1024]; /* why a framework could not use any GPU, in one line; empty: it could */
};
void gm_dry_launch_told(const struct gm_dry_launch *launch, struct gm_dry_told *told);

#endif
