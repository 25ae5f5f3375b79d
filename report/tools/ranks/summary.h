/* What is told of one process among many: enough for the table of a job, for the difference between
 * its ranks, and the page of the process as text. A line of NDJSON (docs/ranks.md); read back, it is
 * the same. Lines of many processes are a set: merging is exact, in any order and grouping. */
#ifndef GPUMEM_REPORT_RANKS_SUMMARY_H
#define GPUMEM_REPORT_RANKS_SUMMARY_H

#include "model/model.h"
#include "output/headline.h"
#include <stdio.h>

#define GM_SUMMARY_MAX (8u << 20) /* bytes of a line; longer ones are not read */

struct gm_summary_device {
    int id;
    int64_t total; /* of the device; 0 unknown */
    int64_t peak;
    int64_t peak_time_ns;
    int64_t live;
    int64_t leaked;
    int64_t reserved; /* by a framework's pool, at most; 0: there is none */
    int64_t outside;  /* of the peak, in no framework's pool */
    int64_t residual; /* largest; -1: not sampled */
    int64_t
        failed_ns; /* of the day of 1970: when an allocation was first refused for lack of memory
                          and that is still known; 0: never */
};

/* What a line of the program held of the fullest device at its peak. */
struct gm_summary_line {
    const char *place; /* "forward  model.py:88" */
    int64_t bytes;
    int64_t count;
};

struct gm_summary {
    int64_t rank, local_rank, world_size; /* -1: not told */
    const char *job, *host, *run_id, *trace, *command, *ending;
    int64_t pid, pid_namespace, generation, start_realtime_ns, duration_ns, events;
    int64_t end;                  /* enum gm_ending; -1: not told */
    int64_t exit_code;            /* -1: not told, or a signal ended it */
    int64_t signal;               /* 0: none is told */
    int64_t verdict;              /* enum gm_verdict_state; -1: not told */
    int64_t leaked, leaked_count; /* of class leak, on devices and on the host; -1: not told */
    int64_t as_of_ns;             /* since the start, of a process that ran; 0: it did not */
    bool complete, simulated;
    enum gm_gravity gravity;
    int64_t errors, warnings;
    const char *failure, *state, *peaks, *findings; /* as in gm_headline */
    struct gm_summary_device *devices;
    size_t device_count;
    struct gm_summary_line *lines; /* most bytes first */
    size_t line_count;
    const char *page; /* text, with line feeds */
    const char *path; /* of the trace that it was made of; NULL: it was read */
    char *text;       /* the line that it was read from, without its line feed */
    void *memory;     /* of all texts */
};

/* Writes the line of a model's only run. `page`: its page as text. */
void gm_summary_write(FILE *out, const struct gm_model *model, const char *page);

/* Reads a line. False if it is none, or not of this version. */
bool gm_summary_read(struct gm_summary *summary, const char *line, size_t size);
void gm_summary_free(struct gm_summary *summary);

/* The device with the largest peak, or on which memory ran out; NULL: there is none. */
const struct gm_summary_device *gm_summary_main(const struct gm_summary *summary);

/* By rank, host, process and start, then the one that tells most of a process first: that of its end, or of the
 * latest moment. */
int gm_summary_compare(const void *left, const void *right);

/* All zero: none yet. */
struct gm_summaries {
    struct gm_summary *entries;
    size_t count;
    size_t capacity;
};

/* Takes a line over; one that is no summary is left out, and false returned. */
bool gm_summaries_add(struct gm_summaries *summaries, const char *line, size_t size);

/* Sorts, and leaves one of each process: the same host, namespace, pid, start and generation, whatever the summaries say
 * besides. */
void gm_summaries_sort(struct gm_summaries *summaries);
void gm_summaries_free(struct gm_summaries *summaries);

#endif
