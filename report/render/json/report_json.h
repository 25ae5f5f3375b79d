/* The report as JSON: docs/report-json.md, docs/report.schema.json. */
#ifndef GPUMEM_REPORT_RENDER_JSON_REPORT_JSON_H
#define GPUMEM_REPORT_RENDER_JSON_REPORT_JSON_H

#include "analysis/analysis.h"
#include "render/json.h"
#include "stacks/stacks.h"

/* Writes one trace as an object; `key` as in json.h. At most `top` owners per snapshot and `top`
 * transfer sites; leaks are always complete. */
void gm_report_json(struct gm_json *json, const char *key, const struct gm_analysis *analysis,
                    struct gm_stacks *stacks, size_t top);

#endif
