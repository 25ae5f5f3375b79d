/* See sections.h. */
#include "render/json/sections.h"
#include "render/json_where.h"
#include "trace/environment.h"

static uint64_t since_start(const struct gm_analysis *analysis, uint64_t time)
{
    return gm_clock_elapsed(&analysis->trace->clock, time);
}

static const char *const pool_names[GM_SEGMENT_POOLS] = {
    [GM_SEGMENTS_SMALL] = "small",
    [GM_SEGMENTS_LARGE] = "large",
};

static void write_sums(struct gm_json *json, const char *key, const struct gm_segment_sums *sums)
{
    gm_json_open_object(json, key);
    gm_json_number(json, "segments", sums->count);
    gm_json_number(json, "empty_segments", sums->empty);
    gm_json_number(json, "size", sums->size);
    gm_json_number(json, "free", sums->free);
    gm_json_number(json, "largest_hole", sums->largest_hole);
    gm_json_number(json, "returnable", sums->returnable);
    gm_json_number(json, "blocks", sums->blocks);
    gm_json_close_object(json);
}

static void write_segment(struct gm_json *json, const struct gm_analysis *analysis,
                          struct gm_stacks *stacks, const struct gm_segment *segment)
{
    gm_json_open_object(json, NULL);
    gm_json_number(json, "address", segment->address);
    gm_json_number(json, "size", segment->size);
    gm_json_number(json, "free", segment->free);
    gm_json_number(json, "largest_hole", segment->largest_hole);
    gm_json_number(json, "returnable", segment->returnable);
    gm_json_number(json, "blocks", segment->blocks);
    gm_json_number(json, "count", segment->count);
    gm_json_string(json, "pool", pool_names[segment->pool]);
    gm_json_bool(json, "expandable", segment->expandable);
    gm_json_open_array(json, "pins");
    for (size_t i = 0; i < GM_SEGMENT_PINS && segment->pins[i].alive; i++) {
        const struct gm_pool_block *block = &segment->pins[i];
        gm_json_open_object(json, NULL);
        gm_json_number(json, "address", block->address);
        gm_json_number(json, "size", block->size);
        gm_json_where(json, stacks, analysis, block->stack, block->api);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
    gm_json_close_object(json);
}

static void write_moment(struct gm_json *json, const char *key, const struct gm_analysis *analysis,
                         struct gm_stacks *stacks, const struct gm_pool_snapshot *snapshot,
                         size_t top)
{
    gm_json_open_object(json, key);
    gm_json_number(json, "time_ns", since_start(analysis, snapshot->time));
    gm_json_number(json, "allocated", snapshot->allocated);
    gm_json_number(json, "reserved", snapshot->reserved);
    for (unsigned pool = 0; pool < GM_SEGMENT_POOLS; pool++)
        write_sums(json, pool_names[pool], &snapshot->segments.sums[pool]);
    gm_json_open_array(json, "segments");
    for (size_t i = 0; i < snapshot->segments.kept_count && i < top; i++)
        write_segment(json, analysis, stacks, &snapshot->segments.kept[i]);
    gm_json_close_array(json);
    gm_pool_lines_json(json, analysis, stacks, &snapshot->owners, top);
    gm_owners_json(json, analysis, stacks, &snapshot->owners, top);
    gm_json_close_object(json);
}

static void write_curve(struct gm_json *json, const struct gm_analysis *analysis,
                        const struct gm_curve *curve)
{
    static const char *const names[GM_CURVE_VALUES] = {"allocated", "reserved"};
    uint64_t start = since_start(analysis, curve->start);
    gm_json_open_object(json, "curve");
    gm_json_number(json, "start_ns", start);
    gm_json_number(json, "bucket_ns",
                   since_start(analysis, curve->start + ((uint64_t)1 << curve->shift)) - start);
    for (unsigned value = 0; value < GM_CURVE_VALUES; value++) {
        gm_json_open_array(json, names[value]);
        for (size_t i = 0; i < curve->count; i++)
            gm_json_number(json, NULL, curve->buckets[i].most[value]);
        gm_json_close_array(json);
    }
    gm_json_close_object(json);
}

static void write_failures(struct gm_json *json, const struct gm_analysis *analysis,
                           struct gm_stacks *stacks, int device, size_t top)
{
    const struct gm_pool_failures *failures = &analysis->pool_failures;
    gm_json_open_array(json, "failures");
    for (size_t i = 0; i < failures->count; i++) {
        const struct gm_pool_failure *failure = &failures->entries[i];
        struct gm_pool_reason reason = gm_pool_failure_reason(failure);
        if (failure->device != device)
            continue;
        gm_json_open_object(json, NULL);
        gm_json_number(json, "request", failure->size);
        gm_json_number(json, "first_request", failure->first);
        gm_json_number(json, "count", failure->count);
        gm_json_bool(json, "survived", gm_pool_failure_survived(failure, &analysis->blocks));
        gm_json_bool(json, "succeeded_later", failure->succeeded);
        gm_json_number(json, "free", reason.free);
        gm_json_number(json, "largest_hole", reason.largest_hole);
        gm_json_bool(json, "fragmentation", reason.fragmentation);
        gm_json_number(json, "tracked", failure->tracked);
        gm_json_number(json, "residual", failure->residual);
        gm_json_number(json, "other_processes", failure->elsewhere);
        gm_json_where(json, stacks, analysis, failure->stack, failure->api);
        write_moment(json, "at", analysis, stacks, &failure->snapshot, top);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

static void write_live(struct gm_json *json, const struct gm_analysis *analysis,
                       struct gm_stacks *stacks, int device, size_t top)
{
    struct gm_sites owners = {0};
    gm_blocks_owners(&analysis->blocks, device, &owners);
    gm_sites_finish(&owners);
    gm_json_open_object(json, "at_end");
    gm_owners_json(json, analysis, stacks, &owners, top);
    gm_json_close_object(json);
    gm_sites_free(&owners);
}

static void write_settings(struct gm_json *json, const struct gm_trace *trace)
{
    const char *name;
    struct gm_text value;
    if (gm_environment_allocator(trace, &name, &value))
        gm_json_text(json, "settings", value);
    else
        gm_json_null(json, "settings");
}

static void write_pool(struct gm_json *json, const struct gm_analysis *analysis,
                       struct gm_stacks *stacks, int device, size_t top)
{
    const struct gm_block_totals *totals = &analysis->blocks.device[device + 1];
    gm_json_open_object(json, NULL);
    gm_json_signed(json, "device", device);
    gm_json_number(json, "allocs", totals->allocs);
    gm_json_number(json, "frees", totals->frees);
    gm_json_number(json, "live", totals->live);
    gm_json_number(json, "peak", totals->peak.bytes);
    gm_json_number(json, "peak_time_ns", since_start(analysis, totals->peak.time));
    gm_json_number(json, "reserved", totals->reserved);
    gm_json_number(json, "reserved_peak", totals->reserved_peak.bytes);
    gm_json_number(json, "reserved_peak_time_ns",
                   since_start(analysis, totals->reserved_peak.time));
    gm_json_number(json, "out_of_memory", totals->out_of_memory);
    write_settings(json, analysis->trace);
    write_live(json, analysis, stacks, device, top);
    for (size_t i = 0; i < analysis->pool_count; i++)
        if (analysis->pool_peaks[i].device == device) {
            write_moment(json, "at_peak", analysis, stacks, &analysis->pool_peaks[i], top);
            write_moment(json, "after_last_use", analysis, stacks, &analysis->pool_lasts[i], top);
        }
    write_curve(json, analysis, totals->curve);
    write_failures(json, analysis, stacks, device, top);
    gm_json_close_object(json);
}

void gm_pools_json(struct gm_json *json, const struct gm_analysis *analysis,
                   struct gm_stacks *stacks, size_t top)
{
    if (!analysis->blocks.records)
        return;
    gm_json_open_array(json, "framework_blocks");
    for (int device = -1; device < GM_DEVICES - 1; device++) {
        const struct gm_block_totals *totals = &analysis->blocks.device[device + 1];
        if (totals->allocs || totals->out_of_memory)
            write_pool(json, analysis, stacks, device, top);
    }
    gm_json_close_array(json);
}
