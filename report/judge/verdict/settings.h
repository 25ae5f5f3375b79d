/* GPUMEM_ variables whose value the preload did not understand: it took the default and said
 * nothing, so that the reader says it. */
#ifndef GPUMEM_REPORT_VERDICT_SETTINGS_H
#define GPUMEM_REPORT_VERDICT_SETTINGS_H

#include "input/trace/trace_file.h"
#include <stdbool.h>

/* The next one among those that the trace was recorded with. Starts with all of `rest` being
 * trace->environment; false when there is no more. */
bool gm_settings_next(struct gm_text *rest, struct gm_text *name_and_value);

#endif
