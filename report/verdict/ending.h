/* How a process ended, as far as its trace tells: trace.h, enum gm_status. */
#ifndef GPUMEM_REPORT_VERDICT_ENDING_H
#define GPUMEM_REPORT_VERDICT_ENDING_H

#include "trace/trace_file.h"

struct gm_ended {
    int exit_code; /* -1: not told, or a signal ended it */
    int signal;    /* 0: none is told */
};

struct gm_ended gm_ended_of(const struct gm_trace_header *header);

/* Whether SIGTERM ended it and a recorded process waited for it: how a pool ends its workers. Who
 * crashed, or was killed from outside, is told by another signal or by nobody. */
bool gm_was_asked_to_end(const struct gm_trace_header *header);

/* "SIGKILL", "signal 50". Returns `text`. */
#define GM_SIGNAL_TEXT 24
const char *gm_signal_name(int signal_number, char text[GM_SIGNAL_TEXT]);

/* "still running; as of 12.3 s after its start", of a process that runs. */
void gm_as_of_sentence(const struct gm_trace *trace, char *text, size_t size);

/* The gap that this is: no page of such a trace is about a whole run. */
void gm_running_sentence(const struct gm_trace *trace, char *text, size_t size);

/* What it means that no end is marked, cut to fit `size` bytes. */
void gm_cut_sentence(const struct gm_trace *trace, char *text, size_t size);

#endif
