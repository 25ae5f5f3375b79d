/* A note of the newest run, in the folder where it was started.
 *
 * A run that recorded nothing, or that wrote its traces elsewhere, leaves nothing in the folder, and
 * an older trace there, or that of an older dry run, would pass for its own. Then, and only then, `gpumem run` leaves this note.
 */
#ifndef GPUMEM_REPORT_RUNS_RUN_NOTE_H
#define GPUMEM_REPORT_RUNS_RUN_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#define GM_RUN_NOTE ".gpumem.last-run"

struct gm_run_note {
    struct timespec written;
    char *command; /* clean */
    int code;      /* exit code of the command, as a shell returns it */
    char **traces; /* absolute paths, not clean */
    size_t trace_count;
    size_t trace_capacity;
};

/* Writes the note of a run to this folder if there are traces here that none of the run's stands
 * among, else removes the note of an older run. Failing is silent: it is no more than a help. */
void gm_run_note_leave(char **command, int code, char *const *traces, size_t count);

/* Reads the note in a folder. False if there is none; the note is to be freed in any case. */
bool gm_run_note_read(struct gm_run_note *note, const char *folder);
void gm_run_note_free(struct gm_run_note *note);

#endif
