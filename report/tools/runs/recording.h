/* Runs a command under libgpumem.so and finds the traces it left. */
#ifndef GPUMEM_REPORT_RUNS_RECORDING_H
#define GPUMEM_REPORT_RUNS_RECORDING_H

#include <stdbool.h>
#include <stddef.h>

struct gm_recording {
    char *pattern;   /* absolute; as GPUMEM_OUTPUT */
    char run_id[33]; /* names this run in the traces of all its processes */
    int pid;         /* of the command, when it has run */
    int status;      /* of the command, as waitpid tells it */
    int passed_on;   /* the last signal that was passed on to it; 0: none was */
    char **traces;   /* paths, sorted; filled by gm_recording_find */
    size_t trace_count;
    size_t trace_capacity;
};

#define GM_LIBRARY_PATH_MAX 4096

/* The absolute path of libgpumem.so that belongs to this executable: installed beside it, or in the
 * same build. False after a complaint. */
bool gm_recording_library(char path[GM_LIBRARY_PATH_MAX]);

/* Prepares a recording to `output` (NULL: GPUMEM_OUTPUT, or the default in this folder) and sets up
 * the environment that the command will inherit. False after a complaint: the output cannot be
 * written, or the library was not found. */
bool gm_recording_begin(struct gm_recording *recording, const char *output);

/* Runs the command and waits for it. Signals to us are passed on to it; what was set for them before is set again after.
 * Returns its exit code, as a shell would: 128+n after signal n,
 * 126 or 127 (after a complaint) if it cannot be executed. */
int gm_recording_run(struct gm_recording *recording, char **command);

/* Looks for the traces of this run. If a signal ended the command, its trace is told so. */
void gm_recording_find(struct gm_recording *recording);

void gm_recording_end(struct gm_recording *recording);

#endif
