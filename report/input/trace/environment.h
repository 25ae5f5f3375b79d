/* The environment that a trace was recorded in: what of it the recorder keeps. */
#ifndef GPUMEM_REPORT_TRACE_ENVIRONMENT_H
#define GPUMEM_REPORT_TRACE_ENVIRONMENT_H

#include "input/trace/trace_file.h"
#include <stdbool.h>

/* The value of a variable; false if it was not set, or not kept. */
bool gm_environment_get(const struct gm_trace *trace, const char *name, struct gm_text *value);

/* The settings of PyTorch's allocator: the newer variable counts more than the older one. False if
 * none was set; the program can still have made settings of its own, which no trace tells. */
bool gm_environment_allocator(const struct gm_trace *trace, const char **name,
                              struct gm_text *value);

#endif
