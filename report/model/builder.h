/* Makes the model of a trace, part by part. */
#ifndef GPUMEM_REPORT_MODEL_BUILDER_H
#define GPUMEM_REPORT_MODEL_BUILDER_H

#include "judge/analysis/analysis.h"
#include "judge/analysis/library_table.h"
#include "judge/pool/libraries.h"
#include "model/tables.h"
#include "names/stacks/stacks.h"

struct gm_builder {
    struct gm_model *model;
    struct gm_model_run *run;
    const struct gm_analysis *analysis;
    const struct gm_trace *trace;
    struct gm_libraries *libraries;
    struct gm_map by_key; /* place in terms of the trace -> number */
    struct gm_model_moment *moments;
    size_t moment_capacity;
};

/* The number of a place. */
uint32_t gm_builder_place(struct gm_builder *builder, const struct gm_site *site, bool is_block);

/* Nanoseconds since the start of the run. */
uint64_t gm_builder_time(const struct gm_builder *builder, uint64_t time);

/* Zeroed elements in the memory of the model. */
#define GM_BUILDER_ARRAY(builder, type, count) GM_MODEL_ARRAY((builder)->model, type, count)

/* The parts. Each fills its members of the run. */
void gm_build_facts(struct gm_builder *builder);
void gm_build_totals(struct gm_builder *builder);
void gm_build_moments(struct gm_builder *builder, unsigned needs);
void gm_build_devices(struct gm_builder *builder); /* after the totals */
void gm_build_pools(struct gm_builder *builder, unsigned needs);
void gm_build_growth(struct gm_builder *builder);
void gm_build_history(struct gm_builder *builder, unsigned needs);

/* Adds a moment with these owners; returns its number. */
uint32_t gm_builder_moment(struct gm_builder *builder, const struct gm_model_moment *moment,
                           const struct gm_sites *owners, bool is_block);

#endif
