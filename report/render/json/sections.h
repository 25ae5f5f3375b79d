/* The parts of the JSON: each function writes one member of a trace's object, or the members named
 * beside it. docs/report-json.md has their meanings. */
#ifndef GPUMEM_REPORT_RENDER_JSON_SECTIONS_H
#define GPUMEM_REPORT_RENDER_JSON_SECTIONS_H

#include "analysis/analysis.h"
#include "render/json.h"
#include "stacks/stacks.h"

void gm_gaps_json(struct gm_json *json, const struct gm_analysis *analysis);
void gm_recorder_json(struct gm_json *json, const struct gm_analysis *analysis);

/* "overwritten": what of the history a flight trace no longer has. */
void gm_flight_json(struct gm_json *json, const struct gm_trace *trace);

void gm_settings_json(struct gm_json *json, const struct gm_trace *trace);
void gm_newer_abi_json(struct gm_json *json, const struct gm_trace *trace);
void gm_verdict_json(struct gm_json *json, const struct gm_analysis *analysis);
void gm_findings_json(struct gm_json *json, const struct gm_analysis *analysis,
                      struct gm_stacks *stacks);

/* "owner_count" and "owners", at most `top` of them. */
void gm_owners_json(struct gm_json *json, const struct gm_analysis *analysis,
                    struct gm_stacks *stacks, const struct gm_sites *owners, size_t top);

/* "libraries", of a device. */
void gm_libraries_json(struct gm_json *json, const struct gm_analysis *analysis, int device);

/* "phases", "phase_count" and "phases_not_kept". */
void gm_phases_json(struct gm_json *json, const struct gm_analysis *analysis, size_t top);

/* "growing". */
void gm_growth_json(struct gm_json *json, const struct gm_analysis *analysis,
                    struct gm_stacks *stacks, size_t top);

/* "lifetimes": all places, most temporary allocations first. */
void gm_lifetimes_json(struct gm_json *json, const struct gm_analysis *analysis,
                       struct gm_stacks *stacks, size_t top);

/* "framework_blocks", if there are blocks. */
void gm_pools_json(struct gm_json *json, const struct gm_analysis *analysis,
                   struct gm_stacks *stacks, size_t top);

/* "lines": owners of a pool's blocks by line. */
void gm_pool_lines_json(struct gm_json *json, const struct gm_analysis *analysis,
                        struct gm_stacks *stacks, const struct gm_sites *owners, size_t top);

#endif
