/* Which traces of a folder belong together: those of one run, however many processes it had.
 *
 * Relies on headers alone. With GPUMEM_RUN (`gpumem run` sets it) the id of the run says it.
 * Without one (LD_PRELOAD under torchrun, mpirun or a script) the processes of the newest run are
 * those of one machine that lived at the same time as the process of the newest trace, and further
 * on those tied to one of them: the same process before or after an exec, a parent, a child, or a
 * child of the same parent that lived at the same time. Who starts two jobs at a time in one folder
 * and wants to tell them apart needs `gpumem run`.
 */
#ifndef GPUMEM_REPORT_COMMANDS_RUNS_H
#define GPUMEM_REPORT_COMMANDS_RUNS_H

#include <gpumem/trace.h>
#include <stdbool.h>
#include <stddef.h>

/* The traces of one run, in the order in which their processes began, then by name. */
struct gm_run_traces {
    char **paths;
    size_t count;
    size_t capacity;
    size_t left_out; /* further traces of the folder: of other runs */
};

/* The newest run in this folder: that of the *.trace file written to last, with all its traces.
 * False after a complaint if there is none. */
bool gm_newest_run(struct gm_run_traces *run);

/* Says on stderr, in a line, of how many traces this run is and how many were left out; nothing if
 * it is the only trace of the folder. */
void gm_run_tell(const struct gm_run_traces *run);

/* Where a command names no trace (`count` is 0) `paths` and `count` become those of the newest run,
 * which is told. False if there is none, which was said. `run` is all zero before, and to be freed
 * when the paths are used no more. */
bool gm_run_if_none_named(struct gm_run_traces *run, char ***paths, size_t *count);

void gm_run_free(struct gm_run_traces *run);

/* Reads the header of a trace in an open folder; false if this is none. */
bool gm_run_read_header(int folder, const char *name, struct gm_trace_header *header);

#endif
