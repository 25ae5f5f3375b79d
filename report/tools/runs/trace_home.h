/* The files of traces that were written elsewhere than where they were asked for, because of the
 * file system there: trace.h, GM_HEADER_ELSEWHERE. */
#ifndef GPUMEM_REPORT_RUNS_TRACE_HOME_H
#define GPUMEM_REPORT_RUNS_TRACE_HOME_H

#include <stdbool.h>

/* If at `path` is a link to a trace of a process that has ended, puts the trace itself there. When
 * that fails (disk full) all stays as it is. */
void gm_bring_home(const char *path);

bool gm_is_link(const char *path);

/* Removes a trace, and if it is a link what it leads to. */
void gm_remove_trace(const char *path);

#endif
