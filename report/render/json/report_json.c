/* See report_json.h. */
#include "render/json/report_json.h"
#include "render/json/sections.h"
#include "render/json_where.h"
#include "stacks/cuda_error.h"
#include "verdict/completeness.h"
#include <string.h>

#define FORMAT_VERSION 1 /* of the JSON; raised when the meaning of a member changes */

static uint64_t since_start(const struct gm_analysis *analysis, uint64_t time)
{
    return gm_clock_elapsed(&analysis->trace->clock, time);
}

static void write_counter(struct gm_json *json, const struct gm_analysis *analysis,
                          const struct gm_tally *tally, const char *key)
{
    gm_json_open_object(json, key);
    gm_json_number(json, "live", tally->live);
    gm_json_number(json, "peak", tally->peak.bytes);
    gm_json_number(json, "peak_time_ns", since_start(analysis, tally->peak.time));
    gm_json_number(json, "allocs", tally->allocs);
    gm_json_number(json, "frees", tally->frees);
    gm_json_number(json, "implicit_frees", tally->implicit_frees);
    gm_json_close_object(json);
}

static void write_holes(struct gm_json *json, const struct gm_holes *holes)
{
    gm_json_open_object(json, "fragmentation");
    gm_json_number(json, "allocations", holes->allocations);
    gm_json_number(json, "live", holes->live);
    gm_json_number(json, "span", holes->span);
    gm_json_number(json, "holes", holes->count);
    gm_json_number(json, "free", holes->free);
    gm_json_number(json, "largest_hole", holes->largest);
    gm_json_thousandths(json, "fragmentation", gm_holes_fragmentation(holes));
    gm_json_close_object(json);
}

static void write_header(struct gm_json *json, const struct gm_analysis *analysis)
{
    static const char *const endings[] = {"normal", "running", "cut"};
    const struct gm_trace *trace = analysis->trace;
    const struct gm_trace_header *header = &trace->header;
    size_t command = header->command_line_size;
    if (command > sizeof(header->command_line))
        command = sizeof(header->command_line);
    gm_json_number(json, "format", FORMAT_VERSION);
    gm_json_string(json, "trace", trace->path);
    gm_json_bool(json, "complete", gm_analysis_is_complete(analysis));
    gm_gaps_json(json, analysis);
    gm_json_string(json, "ending", endings[trace->ending]);
    gm_json_bool(json, "truncated", trace->truncated);
    gm_json_number(json, "damaged", trace->damaged);
    gm_json_number(json, "lost", analysis->lost);
    gm_json_bool(json, "simulated", (header->flags & GM_HEADER_SIMULATED) != 0);
    gm_json_bool(json, "bypassed", (header->flags & GM_HEADER_BYPASSED) != 0);
    gm_json_text(json, "tool_version",
                 gm_trace_field(header->tool_version, sizeof(header->tool_version)));
    gm_json_number(json, "pid", header->pid);
    gm_json_text(json, "host_name", gm_trace_field(header->host, sizeof(header->host)));
    gm_json_text(json, "executable",
                 gm_trace_field(header->executable, sizeof(header->executable)));
    gm_json_open_array(json, "command");
    for (size_t at = 0; at < command;) {
        struct gm_text argument = gm_trace_field(header->command_line + at, command - at);
        gm_json_text(json, NULL, argument);
        at += argument.size + 1;
    }
    gm_json_close_array(json);
    gm_json_number(json, "start_realtime_ns", header->clock_start.realtime_ns);
    gm_json_number(json, "duration_ns", analysis->duration);
    gm_json_number(json, "events", analysis->replay.ledger.events);
    gm_settings_json(json, trace);
    gm_json_string(json, "mode", header->flags & GM_HEADER_FLIGHT ? "flight" : "full");
    gm_flight_json(json, trace);
}

static void write_residual(struct gm_json *json, const struct gm_analysis *analysis,
                           const char *key, const struct gm_residual *residual)
{
    gm_json_open_object(json, key);
    gm_json_number(json, "bytes", residual->bytes);
    gm_json_number(json, "used", residual->used);
    gm_json_number(json, "tracked", residual->tracked);
    gm_json_number(json, "time_ns", since_start(analysis, residual->time));
    gm_json_bool(json, "estimated", residual->estimated);
    gm_json_close_object(json);
}

static void write_samples(struct gm_json *json, const struct gm_analysis *analysis,
                          const struct gm_device_facts *facts)
{
    if (facts->samples) {
        gm_json_number(json, "sampled_by_process", facts->used_by_process);
        gm_json_number(json, "sampled_by_all", facts->used_by_all);
    }
    if (facts->residuals) {
        gm_json_open_object(json, "residual");
        gm_json_number(json, "samples", facts->residuals);
        write_residual(json, analysis, "largest", &facts->largest);
        write_residual(json, analysis, "last", &facts->last);
        gm_json_close_object(json);
    }
}

static void write_devices(struct gm_json *json, const struct gm_analysis *analysis,
                          struct gm_stacks *stacks, size_t top)
{
    static const uint8_t kinds[] = {GM_KIND_DEVICE, GM_KIND_MANAGED, GM_KIND_ARRAY,
                                    GM_KIND_VMM,    GM_KIND_GRAPH,   GM_KIND_EXTERNAL};
    gm_json_open_array(json, "devices");
    for (int i = 0; i < GM_DEVICES; i++) {
        const struct gm_device_totals *totals = &analysis->replay.ledger.counters.device[i];
        const struct gm_device_facts *facts = &analysis->facts[i];
        if (!totals->seen && !facts->samples)
            continue;
        gm_json_open_object(json, NULL);
        gm_json_signed(json, "id", i - 1);
        if (facts->name.size)
            gm_json_text(json, "name", facts->name);
        if (facts->total)
            gm_json_number(json, "total", facts->total);
        gm_json_number(json, "live", totals->live);
        gm_json_number(json, "peak", totals->peak.bytes);
        gm_json_number(json, "peak_time_ns", since_start(analysis, totals->peak.time));
        gm_json_open_object(json, "kinds");
        for (size_t kind = 0; kind < sizeof(kinds); kind++)
            write_counter(json, analysis, &totals->kind[kinds[kind]], gm_kind_name(kinds[kind]));
        gm_json_close_object(json);
        const struct gm_snapshot *peak = gm_analysis_peak(analysis, i - 1);
        if (peak) {
            gm_json_open_object(json, "at_peak");
            gm_owners_json(json, analysis, stacks, &peak->owners, top);
            write_holes(json, &peak->holes);
            gm_json_close_object(json);
        }
        gm_json_open_object(json, "at_end");
        struct gm_holes holes = gm_holes_find(&analysis->replay.ledger.lives, i - 1);
        write_holes(json, &holes);
        gm_json_close_object(json);
        write_samples(json, analysis, facts);
        gm_libraries_json(json, analysis, i - 1);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

static void write_host(struct gm_json *json, const struct gm_analysis *analysis,
                       struct gm_stacks *stacks, size_t top)
{
    const struct gm_counters *counters = &analysis->replay.ledger.counters;
    gm_json_open_object(json, "host");
    write_counter(json, analysis, &counters->host[GM_KIND_PINNED], "pinned");
    write_counter(json, analysis, &counters->host[GM_KIND_REGISTERED], "registered");
    write_counter(json, analysis, &counters->host[GM_KIND_HOST_VMM], "vmm");
    gm_json_close_object(json);
    gm_json_open_object(json, "pinned_at_peak");
    gm_owners_json(json, analysis, stacks, &analysis->pinned_peak.owners, top);
    gm_json_close_object(json);
}

static void write_leaks(struct gm_json *json, const struct gm_analysis *analysis,
                        struct gm_stacks *stacks)
{
    gm_json_open_object(json, "leaked");
    for (unsigned leak_class = GM_LEAK; leak_class < GM_LEAK_CLASSES; leak_class++) {
        gm_json_open_object(json, gm_leak_class_name(leak_class));
        gm_json_number(json, "bytes", analysis->leaked[leak_class]);
        gm_json_number(json, "count", analysis->leaked_count[leak_class]);
        gm_json_close_object(json);
    }
    gm_json_close_object(json);
    gm_json_open_array(json, "leaks");
    for (size_t i = 0; i < analysis->leaks.count; i++) {
        const struct gm_site *site = &analysis->leaks.entries[i];
        gm_json_open_object(json, NULL);
        gm_json_number(json, "bytes", site->bytes);
        gm_json_number(json, "count", site->count);
        gm_json_string(json, "class", gm_leak_class_name(site->class));
        gm_json_kind(json, site->kind, site->device);
        gm_json_where(json, stacks, analysis, site->stack, site->api);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

/* By the layer that the program called. */
static const char *status_name(const struct gm_analysis *analysis, const struct gm_failure *failure)
{
    const char *api = gm_trace_api(analysis->trace, failure->api);
    return gm_cuda_error_name(failure->status, strncmp(api, "cuda", 4) == 0);
}

static void write_failures(struct gm_json *json, const struct gm_analysis *analysis,
                           struct gm_stacks *stacks, size_t top)
{
    static const char *const fragmented[] = {[GM_FRAGMENTATION_NONE] = "no",
                                             [GM_FRAGMENTATION_CERTAIN] = "yes",
                                             [GM_FRAGMENTATION_UNTOLD] = "unknown"};
    gm_json_open_array(json, "failed_allocations");
    for (size_t i = 0; i < analysis->failure_count; i++) {
        const struct gm_failure *failure = &analysis->failures[i];
        gm_json_open_object(json, NULL);
        gm_json_number(json, "request", failure->size);
        gm_json_number(json, "count", failure->count);
        gm_json_number(json, "status", failure->status);
        gm_json_string(json, "status_name", status_name(analysis, failure));
        gm_json_bool(json, "out_of_memory", failure->out_of_memory);
        gm_json_kind(json, failure->kind, failure->device);
        gm_json_number(json, "time_ns", since_start(analysis, failure->time));
        gm_json_where(json, stacks, analysis, failure->stack, failure->api);
        if (failure->snapshot.step) {
            gm_json_open_object(json, "live");
            gm_json_number(json, "bytes", failure->snapshot.owners.bytes);
            gm_owners_json(json, analysis, stacks, &failure->snapshot.owners, top);
            write_holes(json, &failure->snapshot.holes);
            gm_json_number(json, "used", failure->used);
            gm_json_string(json, "fragmented",
                           fragmented[gm_analysis_fragmentation(analysis, failure)]);
            gm_json_close_object(json);
        }
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

static void write_transfer(struct gm_json *json, const struct gm_transfer *transfer)
{
    gm_json_number(json, "bytes", transfer->bytes);
    gm_json_number(json, "count", transfer->count);
    gm_json_number(json, "call_ns", transfer->nanoseconds);
    gm_json_number(json, "tiny", transfer->tiny);
    gm_json_number(json, "pageable_bytes", transfer->pageable_bytes);
    gm_json_number(json, "pageable_count", transfer->pageable_count);
}

static void write_transfers(struct gm_json *json, const struct gm_analysis *analysis,
                            struct gm_stacks *stacks, size_t top)
{
    const struct gm_transfers *transfers = &analysis->transfers;
    gm_json_open_object(json, "transfers");
    gm_json_open_array(json, "directions");
    for (unsigned direction = 0; direction < GM_DIRECTIONS; direction++) {
        if (!transfers->total[direction].count)
            continue;
        gm_json_open_object(json, NULL);
        gm_json_string(json, "direction", gm_direction_name(direction));
        write_transfer(json, &transfers->total[direction]);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
    gm_json_number(json, "site_count", transfers->site_count);
    gm_json_open_array(json, "sites");
    for (size_t i = 0; i < transfers->site_count && i < top; i++) {
        const struct gm_transfer_site *site = &transfers->sites[i];
        gm_json_open_object(json, NULL);
        gm_json_string(json, "direction", gm_direction_name(site->direction));
        write_transfer(json, &site->sum);
        gm_json_where(json, stacks, analysis, site->stack, site->api);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
    gm_json_close_object(json);
}

static void write_contexts(struct gm_json *json, const struct gm_analysis *analysis,
                           struct gm_stacks *stacks)
{
    const struct gm_contexts *contexts = &analysis->replay.contexts;
    gm_json_open_array(json, "contexts");
    for (size_t i = 1; i < contexts->count; i++) {
        const struct gm_context *context = &contexts->entries[i];
        if (!context->known)
            continue;
        gm_json_open_object(json, NULL);
        gm_json_signed(json, "device", context->device);
        gm_json_bool(json, "primary", context->primary);
        gm_json_number(json, "time_ns", since_start(analysis, context->time));
        gm_json_where(json, stacks, analysis, context->stack, context->api);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

void gm_report_json(struct gm_json *json, const char *key, const struct gm_analysis *analysis,
                    struct gm_stacks *stacks, size_t top)
{
    const struct gm_replay *replay = &analysis->replay;
    gm_json_open_object(json, key);
    write_header(json, analysis);
    gm_verdict_json(json, analysis);
    gm_findings_json(json, analysis, stacks);
    write_devices(json, analysis, stacks, top);
    write_host(json, analysis, stacks, top);
    gm_json_number(json, "failed", replay->ledger.counters.failed);
    gm_json_number(json, "rejected", replay->ledger.counters.rejected);
    gm_json_number(json, "refused_by_runtime", replay->ledger.counters.refused_by_runtime);
    gm_json_number(json, "unknown_frees", replay->ledger.unknown_frees);
    gm_json_number(json, "lost_frees", replay->ledger.lost_frees);
    gm_json_number(json, "malformed", replay->ledger.malformed + analysis->blocks.malformed);
    gm_json_number(json, "not_understood", replay->not_understood);
    gm_json_number(json, "reserved_addresses_peak", replay->vmm.reserved_peak);
    gm_json_number(json, "graph_launches", replay->graphs.launches);
    gm_json_number(json, "marks", analysis->marks);
    gm_phases_json(json, analysis, top);
    gm_growth_json(json, analysis, stacks, top);
    gm_lifetimes_json(json, analysis, stacks, top);
    write_leaks(json, analysis, stacks);
    write_failures(json, analysis, stacks, top);
    write_transfers(json, analysis, stacks, top);
    write_contexts(json, analysis, stacks);
    gm_pools_json(json, analysis, stacks, top);
    gm_newer_abi_json(json, analysis->trace);
    gm_recorder_json(json, analysis);
    gm_json_close_object(json);
}
