/* Traces that were written elsewhere than where they were asked for, or not at all, because of the
 * file system there: trace.h, GM_HEADER_ELSEWHERE and GM_HEADER_NOT_RECORDED. */
#ifndef GPUMEM_REPORT_COMMANDS_TRACE_HOME_H
#define GPUMEM_REPORT_COMMANDS_TRACE_HOME_H

#include "trace/trace_file.h"

/* What it means, of a trace with that flag. */
void gm_elsewhere_sentence(const struct gm_trace *trace, char *text, size_t size);
void gm_not_recorded_sentence(const struct gm_trace *trace, char *text, size_t size);

/* If at `path` is a link to a trace of a process that has ended, puts the trace itself there. When
 * that fails (disk full) all stays as it is. */
void gm_bring_home(const char *path);

bool gm_is_link(const char *path);

/* Removes a trace, and if it is a link what it leads to. */
void gm_remove_trace(const char *path);

#endif
