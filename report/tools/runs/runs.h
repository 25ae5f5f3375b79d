/* Which traces of a folder belong together: those of one run, however many processes it had.
 *
 * Relies on headers alone. With GPUMEM_RUN (`gpumem run` sets it) the id of the run says it.
 * Without one (LD_PRELOAD under torchrun, mpirun or a script) the processes of the newest run are
 * those of one machine that lived at the same time as the process of the newest trace, and further
 * on those tied to one of them: the same process before or after an exec, a parent, a child, or a
 * child of the same parent that lived at the same time. Who starts two jobs at a time in one folder
 * and wants to tell them apart needs `gpumem run`.
 */
#ifndef GPUMEM_REPORT_RUNS_RUNS_H
#define GPUMEM_REPORT_RUNS_RUNS_H

#include <gpumem/trace.h>
#include <stdbool.h>
#include <stddef.h>

/* Traces; those of one run in the order in which their processes began, then by name. */
struct gm_run_traces {
    char **paths;
    size_t count;
    size_t capacity;
    bool is_chosen;  /* from among the traces of a folder or of a pattern */
    size_t left_out; /* further traces there: of other runs */
};

/* What the arguments of a command name: a trace is itself, a folder or a pattern (quoted, with *, ?
 * or []) is the newest run in it, and no argument is the newest run of this folder. The newest run
 * is that of the *.trace file written to last, with all its traces; or one that was noted to have
 * left none there (run_note.h). Says on stderr, in a line, how many traces were left out.
 *
 * Returns an exit code: GM_EXIT_FINE, or after a complaint GM_EXIT_NOTHING for a run that recorded
 * nothing, GM_EXIT_UNREADABLE for a folder without traces. `run` is to be freed in any case. */
int gm_run_find(struct gm_run_traces *run, char **arguments, size_t count);

/* The same for commands that look at one run: no argument can mean a dry run, too (kept.h). */
int gm_run_find_any(struct gm_run_traces *run, char **arguments, size_t count);

void gm_run_free(struct gm_run_traces *run);

/* Whether a file holds summaries of processes (docs/ranks.md) and is no trace. */
bool gm_run_is_summary(const char *path);

/* Reads the header of a trace in an open folder; false if this is none. */
bool gm_run_read_header(int folder, const char *name, struct gm_trace_header *header);

#endif
