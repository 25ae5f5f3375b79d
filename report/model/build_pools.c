/* PyTorch's pools. See builder.h. */
#include "base/each.h"
#include "base/memory.h"
#include "judge/pool/pool_lines.h"
#include "judge/pool/purposes.h"
#include "model/builder.h"
#include "names/stacks/redact.h"
#include <stdlib.h>

/* So many places, those that copied most, are asked for what they fill. */
#define FILLING_PLACES 4096u

static void build_segments(struct gm_builder *builder, struct gm_model_pool_state *state,
                           const struct gm_segments *segments)
{
    state->segments = GM_BUILDER_ARRAY(builder, struct gm_model_segment, segments->kept_count);
    state->segment_count = segments->kept_count;
    for (size_t i = 0; i < segments->kept_count; i++) {
        struct gm_model_segment *segment = &state->segments[i];
        segment->segment = segments->kept[i];
        for (size_t pin = 0; pin < GM_SEGMENT_PINS && segment->segment.pins[pin].alive; pin++) {
            const struct gm_pool_block *block = &segment->segment.pins[pin];
            struct gm_site site = {.stack = block->stack,
                                   .api = block->api,
                                   .kind = GM_KIND_DEVICE,
                                   .device = block->device};
            segment->pins[pin] = gm_builder_place(builder, &site, true);
        }
    }
}

static void build_lines(struct gm_builder *builder, struct gm_model_pool_state *state,
                        const struct gm_sites *owners)
{
    struct gm_pool_lines lines = gm_pool_lines_of(builder->analysis->callers, owners);
    state->lines = GM_BUILDER_ARRAY(builder, struct gm_model_line, lines.count);
    state->line_count = lines.count;
    for (size_t i = 0; i < lines.count; i++) {
        const struct gm_pool_line *from = &lines.entries[i];
        struct gm_model_line *line = &state->lines[i];
        line->bytes = from->bytes;
        line->count = from->count;
        for (size_t k = 0; k < GM_LINE_STACKS; k++) {
            bool is_there = from->stacks[k].bytes || k == 0;
            line->stacks[k].bytes = from->stacks[k].bytes;
            line->stacks[k].stack =
                is_there ? gm_model_add_trace_stack(builder->model, from->stacks[k].stack,
                                                    from->stacks[k].api)
                         : GM_NONE;
        }
        line->stack = line->stacks[0].stack;
    }
    gm_pool_lines_free(&lines);
}

static struct gm_purposes purposes_of(const struct gm_analysis *analysis)
{
    const struct gm_transfers *transfers = &analysis->transfers;
    struct gm_purposes purposes = {.categories = analysis->categories,
                                   .callers = analysis->callers};
    for (size_t i = 0; i < transfers->site_count && i < FILLING_PLACES; i++)
        if (transfers->sites[i].direction == GM_COPY_HOST_TO_DEVICE)
            gm_purposes_add_filling(&purposes, transfers->sites[i].stack);
    return purposes;
}

static void build_categories(struct gm_builder *builder, struct gm_model_pool_state *state,
                             const struct gm_sites *owners)
{
    struct gm_purposes purposes = purposes_of(builder->analysis);
    for (size_t i = 0; i < owners->count; i++) {
        const struct gm_site *owner = &owners->entries[i];
        enum gm_category category = gm_purpose_of(&purposes, owner->stack);
        state->categories[category].bytes += owner->bytes;
        state->categories[category].count += owner->count;
    }
    gm_purposes_free(&purposes);
    if (state->reserved > state->allocated)
        state->categories[GM_CATEGORY_CACHE].bytes = state->reserved - state->allocated;
}

static uint32_t add_snapshot(struct gm_builder *builder, enum gm_model_moment_kind kind,
                             const struct gm_pool_snapshot *snapshot)
{
    struct gm_model_pool_state *state = GM_BUILDER_ARRAY(builder, struct gm_model_pool_state, 1);
    state->is_known = snapshot->record != 0;
    GM_COPY_MEMBERS(state, snapshot, allocated, reserved, in_use, rounding);
    for (unsigned pool = 0; pool < GM_SEGMENT_POOLS; pool++)
        state->sums[pool] = snapshot->segments.sums[pool];
    build_segments(builder, state, &snapshot->segments);
    build_lines(builder, state, &snapshot->owners);
    build_categories(builder, state, &snapshot->owners);
    struct gm_model_moment moment = {.kind = kind,
                                     .device = snapshot->device,
                                     .time_ns = gm_builder_time(builder, snapshot->time),
                                     .pool = state};
    return gm_builder_moment(builder, &moment, &snapshot->owners, true);
}

/* Blocks that were never freed. */
static uint32_t add_end(struct gm_builder *builder, int device)
{
    struct gm_sites owners = {0};
    gm_blocks_owners(&builder->analysis->blocks, device, &owners);
    gm_sites_finish(&owners);
    struct gm_model_moment moment = {
        .kind = GM_MODEL_POOL_END, .device = device, .time_ns = builder->analysis->duration};
    uint32_t number = gm_builder_moment(builder, &moment, &owners, true);
    gm_sites_free(&owners);
    return number;
}

static struct gm_model_in_use_peak in_use_peak(struct gm_builder *builder, int device,
                                               const struct gm_in_use_peak *peak)
{
    struct gm_site site = {
        .stack = peak->stack, .api = peak->api, .kind = GM_KIND_DEVICE, .device = (int8_t)device};
    if (!peak->bytes)
        return (struct gm_model_in_use_peak){0};
    return (struct gm_model_in_use_peak){
        .place = gm_builder_place(builder, &site, true),
        .time_ns = gm_builder_time(builder, peak->time),
        .executable = gm_shown_name(builder->trace, peak->executable),
        GM_SAME(peak, bytes, arrays, temporaries, is_compiling),
    };
}

static void build_told(struct gm_builder *builder, struct gm_model_pool *pool,
                       const struct gm_block_totals *totals)
{
    pool->told = GM_BUILDER_ARRAY(builder, struct gm_model_in_use_told, totals->told_count);
    for (; pool->told_count < totals->told_count; pool->told_count++) {
        const struct gm_in_use_told *told = &totals->told[pool->told_count];
        pool->told[pool->told_count] =
            (struct gm_model_in_use_told){.time_ns = gm_builder_time(builder, told->time),
                                          GM_SAME(told, in_use, allocated, rounding)};
    }
}

static void build_pool(struct gm_builder *builder, int device)
{
    const struct gm_analysis *analysis = builder->analysis;
    const struct gm_block_totals *totals = &analysis->blocks.device[device + 1];
    const struct gm_curve *curve = totals->curve;
    struct gm_model_run *run = builder->run;
    bool is_snapshot = (analysis->trace->header.flags & GM_HEADER_SNAPSHOT) != 0;
    if (!totals->allocs && !totals->out_of_memory && !totals->reserved_peak.bytes)
        return;
    struct gm_model_pool *pool = &run->pools[run->pool_count++];
    *pool = (struct gm_model_pool){
        .device = device,
        .owner = gm_blocks_owner(totals),
        .allocs = gm_amount(totals->allocs),
        .frees = gm_amount(totals->frees),
        .live = gm_amount(totals->live),
        .peak = gm_amount(totals->peak.bytes),
        .peak_time_ns = gm_builder_time(builder, totals->peak.time),
        .is_requested_known = totals->requested_peak != 0 || is_snapshot,
        .requested_peak = gm_amount(totals->requested_peak),
        .reserved = gm_amount(totals->reserved),
        .reserved_peak = gm_amount(totals->reserved_peak.bytes),
        .reserved_peak_time_ns = gm_builder_time(builder, totals->reserved_peak.time),
        .in_use_peak = in_use_peak(builder, device, &totals->in_use_peak),
        .out_of_memory = gm_amount(totals->out_of_memory),
        .curve = curve,
        .drawn = run->simulated ? totals->by_alloc : curve,
        .at_peak = GM_NONE,
        .last = GM_NONE,
        .at_end = add_end(builder, device),
    };
    build_told(builder, pool, totals);
    if (curve) {
        pool->curve_start_ns = gm_builder_time(builder, curve->start);
        pool->bucket_ns = gm_builder_time(builder, curve->start + ((uint64_t)1 << curve->shift)) -
                          pool->curve_start_ns;
    }
    for (size_t i = 0; i < analysis->pool_count; i++)
        if (analysis->pool_peaks[i].device == device) {
            pool->at_peak = add_snapshot(builder, GM_MODEL_POOL_PEAK, &analysis->pool_peaks[i]);
            pool->last = add_snapshot(builder, GM_MODEL_POOL_LAST, &analysis->pool_lasts[i]);
        }
}

static void build_failure(struct gm_builder *builder, const struct gm_pool_failure *failure)
{
    struct gm_arena *arena = &builder->model->tables->arena;
    struct gm_site site = {.stack = failure->stack,
                           .api = failure->api,
                           .kind = GM_KIND_DEVICE,
                           .device = failure->device};
    struct gm_model_pool_failure *own =
        &builder->run->pool_failures[builder->run->pool_failure_count++];
    *own = (struct gm_model_pool_failure){
        .place = gm_builder_place(builder, &site, true),
        .moment = add_snapshot(builder, GM_MODEL_POOL_FAILURE, &failure->snapshot),
        GM_SAME(failure, device, size, first, count, tracked, residual, elsewhere, limit, survived,
                succeeded),
        .reason = gm_pool_failure_reason(failure),
    };
    own->library_count =
        gm_library_shares(builder->libraries, &failure->snapshot.owners, own->libraries,
                          sizeof(own->libraries) / sizeof(own->libraries[0]));
    for (size_t i = 0; i < own->library_count; i++)
        own->libraries[i].name = gm_arena_string(arena, own->libraries[i].name);
}

static void add_category_peaks(struct gm_builder *builder)
{
    struct gm_purposes purposes = purposes_of(builder->analysis);
    uint64_t(*peaks)[GM_CATEGORIES] = gm_purpose_peaks(&purposes, builder->analysis->trace);
    for (size_t i = 0; i < builder->run->pool_count; i++)
        for (unsigned category = 0; category < GM_CATEGORIES; category++)
            builder->run->pools[i].category_peaks[category] =
                gm_amount(peaks[builder->run->pools[i].device + 1][category]);
    free(peaks);
    gm_purposes_free(&purposes);
}

void gm_build_pools(struct gm_builder *builder, unsigned needs)
{
    const struct gm_analysis *analysis = builder->analysis;
    struct gm_model_run *run = builder->run;
    run->has_blocks = analysis->blocks.records != 0;
    run->pools = GM_BUILDER_ARRAY(builder, struct gm_model_pool, GM_DEVICES);
    for (int device = -1; device < GM_DEVICES - 1; device++)
        build_pool(builder, device);
    if (needs & GM_NEEDS_PURPOSES)
        add_category_peaks(builder);
    run->pool_failures =
        GM_BUILDER_ARRAY(builder, struct gm_model_pool_failure, analysis->pool_failures.count);
    for (size_t i = 0; i < analysis->pool_failures.count; i++)
        build_failure(builder, &analysis->pool_failures.entries[i]);
}
