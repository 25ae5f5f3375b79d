/* The model of a trace. See model.h and builder.h. */
#include "findings/findings.h"
#include "model/builder.h"
#include <stdlib.h>

static void build_findings(struct gm_builder *builder)
{
    struct gm_model_run *run = builder->run;
    struct gm_arena *arena = &builder->model->tables->arena;
    struct gm_findings findings = {0};
    gm_findings_collect(builder->analysis, &findings);
    run->findings = GM_BUILDER_ARRAY(builder, struct gm_model_finding, findings.count);
    run->finding_count = findings.count;
    for (size_t i = 0; i < findings.count; i++) {
        const struct gm_finding *finding = &findings.entries[i];
        run->findings[i] = (struct gm_model_finding){
            .code = finding->code,
            .severity = finding->severity,
            .device = finding->device,
            .stack = finding->stack
                         ? gm_model_add_trace_stack(builder->model, finding->stack, finding->api)
                         : GM_NONE,
            .unlike = finding->unlike
                          ? gm_model_add_trace_stack(builder->model, finding->unlike, finding->api)
                          : GM_NONE,
            .api = gm_trace_api(builder->trace, finding->api),
            .bytes = finding->bytes,
            .bytes_per_round = finding->bytes_per_round,
            .cause = gm_arena_string(arena, finding->cause),
            .remedy = gm_arena_string(arena, finding->remedy),
            .evidence = gm_arena_string(arena, finding->evidence),
        };
    }
    gm_findings_free(&findings);
}

struct gm_model *gm_model_of(const struct gm_analysis *analysis, struct gm_stacks *stacks,
                             unsigned needs)
{
    struct gm_model *model = gm_model_new();
    struct gm_builder builder = {.model = model,
                                 .run = gm_model_add_run(model),
                                 .analysis = analysis,
                                 .trace = analysis->trace,
                                 .libraries = gm_libraries_new(analysis->trace)};
    model->tables->names = stacks;
    model->tables->analysis = analysis;
    gm_build_facts(&builder);
    gm_build_moments(&builder, needs);
    gm_build_totals(&builder);
    gm_build_growth(&builder);
    if (needs & GM_NEEDS_MOMENTS) {
        gm_build_devices(&builder);
        gm_build_pools(&builder, needs);
    }
    if (needs & GM_NEEDS_HISTORY)
        gm_build_history(&builder, needs);
    if (needs & GM_NEEDS_FINDINGS)
        build_findings(&builder);
    builder.run->moments = gm_arena_copy(&model->tables->arena, builder.moments,
                                         builder.run->moment_count * sizeof(*builder.moments));
    free(builder.moments);
    gm_map_free(&builder.by_key);
    gm_libraries_free(builder.libraries);
    return model;
}
