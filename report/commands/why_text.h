/* What a debug build of the recorder says that it declined: the lines of `gpumem info --why`. */
#ifndef GPUMEM_REPORT_COMMANDS_WHY_TEXT_H
#define GPUMEM_REPORT_COMMANDS_WHY_TEXT_H

#include "input/trace/trace_file.h"

/* Prints them, oldest first, or one that says that the trace does not tell. */
void gm_why_text(const struct gm_trace *trace);

#endif
