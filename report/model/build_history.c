/* What happened over time. See builder.h. */
#include "base/each.h"
#include "base/limit.h"
#include "judge/analysis/growing.h"
#include "judge/analysis/lifetimes.h"
#include "model/builder.h"
#include "names/stacks/redact.h"
#include <stdlib.h>

static uint32_t place_of_active(struct gm_builder *builder, const struct gm_active_site *site)
{
    struct gm_site where = {GM_SAME(site, stack, api, kind, device)};
    return gm_builder_place(builder, &where, site->is_block);
}

/* ---- growth ---------------------------------------------------------------------------------- */

void gm_build_growth(struct gm_builder *builder)
{
    const struct gm_analysis *analysis = builder->analysis;
    const struct gm_growth *growth = &analysis->activity.growth;
    struct gm_model_run *run = builder->run;
    for (size_t i = 0; i < growth->series_count; i++)
        if (growth->series[i].marks > run->series_marks)
            run->series_marks = growth->series[i].marks;
    for (size_t i = 0; i < analysis->activity.count; i++)
        if (analysis->activity.sites[i].allocs > run->most_allocs)
            run->most_allocs = analysis->activity.sites[i].allocs;
    run->growing = GM_BUILDER_ARRAY(builder, struct gm_model_growing, growth->found_count);
    for (size_t i = 0; i < growth->found_count; i++) {
        const struct gm_growing *growing = &growth->found[i];
        if (!gm_growth_counts(analysis, growing))
            continue;
        struct gm_model_growing *own = &run->growing[run->growing_count++];
        *own = (struct gm_model_growing){
            .place = place_of_active(builder, gm_growing_site(analysis, growing)),
            .series = growing->series->kind,
            .name = gm_shown_name(builder->trace, growing->series->name),
            .marks = growing->series->marks,
            .over = growing->over,
        };
        for (size_t part = 0; part <= GM_GROWTH_PARTS; part++)
            own->bytes[part] = growing->bytes[part];
    }
}

/* ---- phases ---------------------------------------------------------------------------------- */

static void build_memory(struct gm_builder *builder, struct gm_model_phase *own,
                         const struct gm_phase *phase)
{
    size_t count = 0;
    for (size_t i = 0; i < phase->memory_count; i++)
        count += gm_phase_is_touched(&phase->memory[i]);
    own->memory = GM_BUILDER_ARRAY(builder, struct gm_model_phase_memory, count);
    for (size_t i = 0; i < phase->memory_count; i++) {
        const struct gm_phase_place *place = &builder->analysis->phases.places[i];
        if (gm_phase_is_touched(&phase->memory[i]) && gm_limits_take_frame())
            own->memory[own->memory_count++] =
                (struct gm_model_phase_memory){place->where, place->device, phase->memory[i]};
    }
}

static void build_phases(struct gm_builder *builder)
{
    const struct gm_phases *phases = &builder->analysis->phases;
    struct gm_model_run *run = builder->run;
    run->phases = GM_BUILDER_ARRAY(builder, struct gm_model_phase, phases->count);
    run->phase_count = phases->count;
    run->phases_not_kept = phases->not_kept;
    run->phase_order = GM_BUILDER_ARRAY(builder, uint32_t, phases->count);
    for (size_t i = 0; i < phases->count; i++) {
        const struct gm_phase *phase = &phases->entries[i];
        run->phase_order[i] = phases->order[i];
        run->phases[i] = (struct gm_model_phase){
            .is_interval = phase->is_interval,
            .has_name = phase->name != 0,
            .has_from = phase->from != 0,
            .parent = phase->parent,
            .name = gm_shown_name(builder->trace, phase->name),
            .from = gm_shown_name(builder->trace, phase->from),
            .count = phase->count,
            .unfinished = phase->unfinished,
            .time_ns = gm_phase_time(phase, &builder->trace->clock),
        };
        build_memory(builder, &run->phases[i], phase);
    }
}

/* ---- lifetimes ------------------------------------------------------------------------------- */

static void build_lifetimes(struct gm_builder *builder, bool all)
{
    const struct gm_activity *activity = &builder->analysis->activity;
    struct gm_lifetimes ranking = gm_lifetimes_rank(activity);
    struct gm_model_run *run = builder->run;
    size_t kept = 0;
    for (size_t i = 0; i < ranking.count; i++)
        if (all || gm_lifetime_is_temporary(builder->trace, ranking.sites[i]))
            ranking.sites[kept++] = ranking.sites[i];
    run->lifetimes = GM_BUILDER_ARRAY(builder, struct gm_model_lifetime, kept);
    run->lifetime_count = kept;
    for (size_t i = 0; i < kept; i++) {
        const struct gm_active_site *site = ranking.sites[i];
        run->lifetimes[i] = (struct gm_model_lifetime){
            .place = place_of_active(builder, site),
            .temporary = gm_lifetime_is_temporary(builder->trace, site),
            .allocs = gm_amount(site->allocs),
            .allocated = gm_amount(site->allocated),
            .short_lived = gm_amount(site->short_lived),
            .short_bytes = gm_amount(site->short_bytes),
            .live_count = gm_amount(site->live_count),
            .live = gm_amount(site->live),
            .peak = gm_amount(site->peak),
        };
    }
    free(ranking.sites);
}

/* ---- transfers, contexts --------------------------------------------------------------------- */

static struct gm_model_transfer transfer_of(const struct gm_transfer *sum, unsigned direction)
{
    return (struct gm_model_transfer){
        .stack = GM_NONE,
        .direction = direction,
        .bytes = gm_amount(sum->bytes),
        .count = gm_amount(sum->count),
        .call_ns = gm_amount(sum->nanoseconds),
        .tiny = gm_amount(sum->tiny),
        .pageable_bytes = gm_amount(sum->pageable_bytes),
        .pageable_count = gm_amount(sum->pageable_count),
        .unknown = gm_amount(sum->unknown),
    };
}

static void build_transfers(struct gm_builder *builder)
{
    const struct gm_transfers *transfers = &builder->analysis->transfers;
    struct gm_model_run *run = builder->run;
    run->directions = GM_BUILDER_ARRAY(builder, struct gm_model_transfer, GM_DIRECTIONS);
    for (unsigned i = 0; i < GM_DIRECTIONS; i++)
        if (transfers->total[i].count)
            run->directions[run->direction_count++] = transfer_of(&transfers->total[i], i);
    run->transfers = GM_BUILDER_ARRAY(builder, struct gm_model_transfer, transfers->site_count);
    run->transfer_count = transfers->site_count;
    for (size_t i = 0; i < transfers->site_count; i++) {
        const struct gm_transfer_site *site = &transfers->sites[i];
        run->transfers[i] = transfer_of(&site->sum, site->direction);
        run->transfers[i].stack = gm_model_add_trace_stack(builder->model, site->stack, site->api);
        run->transfers[i].api = gm_arena_string(&builder->model->tables->arena,
                                                gm_trace_api(builder->trace, site->api));
    }
}

static void build_contexts(struct gm_builder *builder)
{
    const struct gm_contexts *contexts = &builder->analysis->replay.contexts;
    struct gm_model_run *run = builder->run;
    size_t count = 0;
    for (size_t i = 1; i < contexts->count; i++)
        count += contexts->entries[i].known;
    run->contexts = GM_BUILDER_ARRAY(builder, struct gm_model_context, count);
    for (size_t i = 1; i < contexts->count; i++) {
        const struct gm_context *context = &contexts->entries[i];
        if (!context->known)
            continue;
        run->contexts[run->context_count++] = (struct gm_model_context){
            .stack = gm_model_add_trace_stack(builder->model, context->stack, context->api),
            .api = gm_arena_string(&builder->model->tables->arena,
                                   gm_trace_api(builder->trace, context->api)),
            .device = context->device,
            .primary = context->primary,
            .time_ns = gm_builder_time(builder, context->time),
        };
    }
}

void gm_build_history(struct gm_builder *builder, unsigned needs)
{
    build_phases(builder);
    build_lifetimes(builder, needs & GM_NEEDS_LIFETIMES);
    build_transfers(builder);
    build_contexts(builder);
}
