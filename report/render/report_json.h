/* The report as JSON: docs/report-json.md, docs/report.schema.json. */
#ifndef GPUMEM_REPORT_RENDER_REPORT_JSON_H
#define GPUMEM_REPORT_RENDER_REPORT_JSON_H

#include "analysis/analysis.h"
#include "render/json.h"
#include "stacks/stacks.h"

/* Writes one trace as an object; `key` as in json.h. At most `top` owners per snapshot and `top`
 * transfer sites; leaks are always complete. */
void gm_report_json(struct gm_json *json, const char *key, const struct gm_analysis *analysis,
                    struct gm_stacks *stacks, size_t top);

/* Members that many objects have: "api" and "stack"; "kind" and "device". */
void gm_json_where(struct gm_json *json, struct gm_stacks *stacks,
                   const struct gm_analysis *analysis, uint32_t stack, uint16_t api);
void gm_json_kind(struct gm_json *json, unsigned kind, int device);

#endif
