/* What a flight trace no longer has. */
#ifndef GPUMEM_REPORT_RENDER_SECTIONS_FLIGHT_SHOW_H
#define GPUMEM_REPORT_RENDER_SECTIONS_FLIGHT_SHOW_H

#include "render/json.h"
#include "render/page.h"
#include "trace/trace_file.h"

/* What was overwritten, for people and for programs; nothing, if nothing was. */
void gm_flight_text(struct gm_page *page, const struct gm_trace *trace);
void gm_flight_json(struct gm_json *json, const struct gm_trace *trace);

#endif
