/* Totals, and who held memory when. See builder.h. */
#include "base/each.h"
#include "model/builder.h"

/* ---- moments --------------------------------------------------------------------------------- */

static uint32_t add_snapshot(struct gm_builder *builder, enum gm_model_moment_kind kind,
                             const struct gm_snapshot *snapshot)
{
    struct gm_model_moment moment = {.kind = kind,
                                     .device = snapshot->device,
                                     .time_ns = gm_builder_time(builder, snapshot->time),
                                     .holes = snapshot->holes};
    return gm_builder_moment(builder, &moment, &snapshot->owners, false);
}

static void build_failures(struct gm_builder *builder)
{
    const struct gm_analysis *analysis = builder->analysis;
    struct gm_model_run *run = builder->run;
    run->failures = GM_BUILDER_ARRAY(builder, struct gm_model_failure, analysis->failure_count);
    run->failure_count = analysis->failure_count;
    for (size_t i = 0; i < analysis->failure_count; i++) {
        const struct gm_failure *failure = &analysis->failures[i];
        struct gm_site site = {GM_SAME(failure, stack, api, kind, device)};
        run->failures[i] = (struct gm_model_failure){
            .place = gm_builder_place(builder, &site, false),
            .moment = failure->snapshot.step
                          ? add_snapshot(builder, GM_MODEL_FAILURE, &failure->snapshot)
                          : GM_NONE,
            .time_ns = gm_builder_time(builder, failure->time),
            GM_SAME(failure, size, first, count, used, status, purpose, out_of_memory, survived,
                    device),
            .is_of_pool = gm_analysis_pool_failure(analysis, failure) != NULL,
            .fragmentation = gm_analysis_fragmentation(analysis, failure),
        };
    }
}

void gm_build_moments(struct gm_builder *builder, unsigned needs)
{
    const struct gm_analysis *analysis = builder->analysis;
    struct gm_model_run *run = builder->run;
    struct gm_model_moment end = {
        .kind = GM_MODEL_END, .device = -1, .time_ns = analysis->duration};
    run->end = gm_builder_moment(builder, &end, &analysis->leaks, false);
    for (unsigned i = 0; i < GM_LEAK_CLASSES; i++) {
        run->leaked[i] = gm_amount(analysis->leaked[i]);
        run->leaked_count[i] = gm_amount(analysis->leaked_count[i]);
    }
    if (!(needs & GM_NEEDS_MOMENTS))
        return;
    if (analysis->pinned_peak.step)
        run->pinned_peak = add_snapshot(builder, GM_MODEL_PINNED_PEAK, &analysis->pinned_peak);
    build_failures(builder);
}

/* ---- totals ---------------------------------------------------------------------------------- */

static struct gm_model_tally tally_of(const struct gm_builder *builder,
                                      const struct gm_tally *tally)
{
    return (struct gm_model_tally){
        .live = gm_amount(tally->live),
        .peak = gm_amount(tally->peak.bytes),
        .peak_time_ns = gm_builder_time(builder, tally->peak.time),
        .allocs = gm_amount(tally->allocs),
        .frees = gm_amount(tally->frees),
        .implicit_frees = gm_amount(tally->implicit_frees),
    };
}

static struct gm_model_residual residual_of(const struct gm_builder *builder,
                                            const struct gm_residual *residual)
{
    return (struct gm_model_residual){gm_builder_time(builder, residual->time), residual->used,
                                      residual->tracked, residual->bytes, residual->estimated};
}

static void build_libraries(struct gm_builder *builder, struct gm_model_device *device)
{
    struct gm_arena *arena = &builder->model->tables->arena;
    struct gm_library_table table =
        gm_library_table_of(builder->libraries, builder->analysis, device->id);
    device->libraries = gm_arena_copy(arena, table.lines, table.count * sizeof(*table.lines));
    device->library_count = table.count;
    device->has_failed = table.failure_time != 0;
    for (size_t i = 0; i < table.count; i++) {
        device->libraries[i].name = gm_arena_string(arena, table.lines[i].name);
        device->libraries[i].pool = gm_arena_string(arena, table.lines[i].pool);
    }
    for (unsigned i = 0; i < GM_LIBRARY_MOMENTS; i++)
        device->library_bytes[i] = table.bytes[i];
    gm_library_table_free(&table);
}

static void build_device(struct gm_builder *builder, int slot)
{
    const struct gm_analysis *analysis = builder->analysis;
    const struct gm_device_totals *totals = &analysis->replay.ledger.counters.device[slot];
    const struct gm_device_facts *facts = &analysis->facts[slot];
    struct gm_model_run *run = builder->run;
    if (!totals->seen && !facts->samples && !facts->total && !facts->name.size)
        return;
    struct gm_model_device *device = &run->devices[run->device_count++];
    *device = (struct gm_model_device){
        .id = slot - 1,
        .is_listed = totals->seen || facts->samples,
        .name = facts->name.size ? facts->name : (struct gm_text){"", 0},
        .total = facts->total,
        .seen = totals->seen,
        .all = {.live = gm_amount(totals->live),
                .peak = gm_amount(totals->peak.bytes),
                .peak_time_ns = gm_builder_time(builder, totals->peak.time)},
        .samples = facts->samples,
        .used_by_process = facts->used_by_process,
        .fullest = {.time_ns =
                        facts->fullest.bytes ? gm_builder_time(builder, facts->fullest.time) : 0,
                    .bytes = facts->fullest.bytes,
                    .own = facts->fullest.own},
        .residuals = facts->residuals,
        .largest = residual_of(builder, &facts->largest),
        .last = residual_of(builder, &facts->last),
        .peak = GM_NONE,
        .curve = analysis->device_curves[slot] ? &analysis->device_curves[slot]->curve : NULL,
    };
    for (unsigned kind = 0; kind <= GM_KIND_EXTERNAL; kind++)
        device->kinds[kind] = tally_of(builder, &totals->kind[kind]);
}

/* What takes a look at each of its owners, and is for those who show them. */
static void detail_device(struct gm_builder *builder, struct gm_model_device *device)
{
    const struct gm_snapshot *peak = gm_analysis_peak(builder->analysis, device->id);
    device->holes_at_end = gm_holes_find(&builder->analysis->replay.ledger.lives, device->id);
    if (peak)
        device->peak = add_snapshot(builder, GM_MODEL_PEAK, peak);
    build_libraries(builder, device);
}

void gm_build_totals(struct gm_builder *builder)
{
    const struct gm_replay *replay = &builder->analysis->replay;
    const struct gm_counters *counters = &replay->ledger.counters;
    struct gm_model_run *run = builder->run;
    run->failed = gm_amount(counters->failed);
    run->rejected = gm_amount(counters->rejected);
    run->refused_by_runtime = gm_amount(counters->refused_by_runtime);
    run->unknown_frees = gm_amount(replay->ledger.unknown_frees);
    run->lost_frees = gm_amount(replay->ledger.lost_frees);
    run->malformed = gm_amount(replay->ledger.malformed + builder->analysis->blocks.malformed);
    run->not_understood = gm_amount(replay->not_understood);
    run->reserved_addresses_peak = gm_amount(replay->vmm.reserved_peak);
    run->graph_launches = gm_amount(replay->graphs.launches);
    run->marks = gm_amount(builder->analysis->marks);
    for (unsigned kind = 0; kind < GM_KINDS; kind++)
        run->host[kind] = tally_of(builder, &counters->host[kind]);
    run->devices = GM_BUILDER_ARRAY(builder, struct gm_model_device, GM_DEVICES);
    run->device_changes = builder->analysis->device_changes;
    for (int slot = 0; slot < GM_DEVICES; slot++)
        build_device(builder, slot);
}

void gm_build_devices(struct gm_builder *builder)
{
    for (size_t i = 0; i < builder->run->device_count; i++)
        detail_device(builder, &builder->run->devices[i]);
}
