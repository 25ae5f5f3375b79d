/* How a process ended, as far as its trace tells: trace.h, enum gm_status. */
#ifndef GPUMEM_REPORT_VERDICT_ENDING_H
#define GPUMEM_REPORT_VERDICT_ENDING_H

#include "base/facts.h"
#include "base/names.h"
#include "input/trace/trace_file.h"

/* Whether SIGTERM ended it and a recorded process waited for it: how a pool ends its workers. Who
 * crashed, or was killed from outside, is told by another signal or by nobody. */
bool gm_was_asked_to_end(const struct gm_trace_header *header);

/* "still running; as of 12.3 s after its start", of a process that runs. */
void gm_as_of_sentence(const struct gm_trace *trace, char *text, size_t size);

/* The gap that this is: no page of such a trace is about a whole run. */
void gm_running_sentence(const struct gm_trace *trace, char *text, size_t size);

/* What it means that the device failed before the end. */
void gm_failed_sentence(const struct gm_trace *trace, char *text, size_t size);

/* What it means that no end is marked, cut to fit `size` bytes. */
void gm_cut_sentence(const struct gm_trace *trace, char *text, size_t size);

#endif
