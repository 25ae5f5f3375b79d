/* GPUMEM_ variables whose value the preload did not understand: it took the default and said
 * nothing, so that it is said here. */
#ifndef GPUMEM_REPORT_RENDER_SECTIONS_SETTINGS_H
#define GPUMEM_REPORT_RENDER_SECTIONS_SETTINGS_H

#include "render/json.h"
#include "render/page.h"
#include "trace/trace_file.h"
#include <stdbool.h>

/* One line on stderr for each that is set in our own environment, before a command inherits it. */
void gm_settings_complain(void);

/* The next one among those that the trace was recorded with. Starts with all of `rest` being
 * trace->environment; false when there is no more. */
bool gm_settings_next(struct gm_text *rest, struct gm_text *name_and_value);

/* A line for each of a trace. */
void gm_settings_text(struct gm_page *page, const struct gm_trace *trace);
void gm_settings_json(struct gm_json *json, const struct gm_trace *trace);

#endif
