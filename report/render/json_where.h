/* Members that many objects of the JSON have: where in the program something happened, and what kind
 * of memory it is about. */
#ifndef GPUMEM_REPORT_RENDER_JSON_WHERE_H
#define GPUMEM_REPORT_RENDER_JSON_WHERE_H

#include "analysis/analysis.h"
#include "render/json.h"
#include "stacks/stacks.h"

/* "api" and "stack". */
void gm_json_where(struct gm_json *json, struct gm_stacks *stacks,
                   const struct gm_analysis *analysis, uint32_t stack, uint16_t api);

/* "kind" and "device"; null for the host. */
void gm_json_kind(struct gm_json *json, unsigned kind, int device);

#endif
