/* The parts of the JSON: each function writes one member of a trace's object, or the members named
 * beside it. docs/report-json.md has their meanings. */
#ifndef GPUMEM_REPORT_RENDER_JSON_SECTIONS_H
#define GPUMEM_REPORT_RENDER_JSON_SECTIONS_H

#include "base/map.h"
#include "model/model.h"
#include "output/json.h"

/* What is written, and the stacks it refers to so far. */
struct gm_json_view {
    struct gm_json *json;
    const struct gm_model *model;
    const struct gm_model_run *run;
    size_t top;            /* places that an array lists at most */
    struct gm_map numbers; /* of a stack in the model -> in the object */
    uint32_t *stacks;      /* in the object's order */
    size_t stack_count;
    size_t stack_capacity;
};

/* ---- members that many objects have ---------------------------------------------------------- */

/* "function", "file" and "line" of a frame; NULL: there is none. */
void gm_json_at(struct gm_json *json, const struct gm_frame *frame);

/* "api" and "stack": the number that the stack has in "stacks". */
void gm_json_where(struct gm_json_view *view, uint32_t stack, const char *api);

/* "kind" and "device"; null for the host. */
void gm_json_kind(struct gm_json *json, unsigned kind, int device);

/* "stacks": all that were referred to. */
void gm_json_stacks(struct gm_json_view *view);

/* "owner_count" and "owners" at a moment; NULL: there are none. */
void gm_owners_json(struct gm_json_view *view, const struct gm_model_moment *moment);

/* "fragmentation". */
void gm_holes_json(struct gm_json *json, const struct gm_holes *holes);

/* ---- the trace ------------------------------------------------------------------------------- */

/* What stands before the verdict: who and what, and how far it can be trusted. */
void gm_facts_json(struct gm_json_view *view);
void gm_verdict_json(struct gm_json_view *view);
void gm_newer_abi_json(struct gm_json_view *view);
void gm_recorder_json(struct gm_json_view *view);

/* ---- the rest -------------------------------------------------------------------------------- */

void gm_findings_json(struct gm_json_view *view);

/* "devices". */
void gm_devices_json(struct gm_json_view *view);

/* "host" and "pinned_at_peak". */
void gm_host_json(struct gm_json_view *view);

/* "phases", "phase_count" and "phases_not_kept". */
void gm_phases_json(struct gm_json_view *view);

/* "growing". */
void gm_growth_json(struct gm_json_view *view);

/* "lifetimes": all places, most temporary allocations first. */
void gm_lifetimes_json(struct gm_json_view *view);

/* "leaked" and "leaks". */
void gm_leaks_json(struct gm_json_view *view);

/* "failed_allocations". */
void gm_failures_json(struct gm_json_view *view);

void gm_transfers_json(struct gm_json_view *view);
void gm_contexts_json(struct gm_json_view *view);

/* "framework_blocks", if there are blocks. */
void gm_pools_json(struct gm_json_view *view);

#endif
