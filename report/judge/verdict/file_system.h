/* What it means that a trace was written elsewhere than where it was asked for, or not at all,
 * because of the file system there: trace.h, GM_HEADER_ELSEWHERE and GM_HEADER_NOT_RECORDED. */
#ifndef GPUMEM_REPORT_VERDICT_FILE_SYSTEM_H
#define GPUMEM_REPORT_VERDICT_FILE_SYSTEM_H

#include "input/trace/trace_file.h"

/* A sentence or more about a trace with that flag, cut to fit `size` bytes. */
void gm_elsewhere_sentence(const struct gm_trace *trace, char *text, size_t size);
void gm_not_recorded_sentence(const struct gm_trace *trace, char *text, size_t size);

#endif
