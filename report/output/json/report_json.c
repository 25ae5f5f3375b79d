/* See report_json.h. */
#include "output/json/report_json.h"
#include "output/json/sections.h"
#include <stdlib.h>

static void write_report_run(struct gm_json *json, const struct gm_model *model,
                             const struct gm_model_run *run, size_t top)
{
    struct gm_json_view view = {.json = json, .model = model, .run = run, .top = top};
    gm_json_open_object(json, NULL);
    gm_facts_json(&view);
    gm_verdict_json(&view);
    gm_findings_json(&view);
    gm_devices_json(&view);
    gm_host_json(&view);
    GM_JSON_MEMBERS(json, run, failed, rejected, refused_by_runtime, unknown_frees, lost_frees,
                    malformed, not_understood, reserved_addresses_peak, graph_launches, marks);
    gm_phases_json(&view);
    gm_growth_json(&view);
    gm_lifetimes_json(&view);
    gm_leaks_json(&view);
    gm_failures_json(&view);
    gm_transfers_json(&view);
    gm_contexts_json(&view);
    gm_pools_json(&view);
    gm_newer_abi_json(&view);
    gm_recorder_json(&view);
    gm_json_stacks(&view);
    gm_json_close_object(json);
    gm_map_free(&view.numbers);
    free(view.stacks);
}

static void open_traces(struct gm_json *json)
{
    gm_json_open_object(json, NULL);
    gm_json_open_array(json, "traces");
}

static void close_traces(struct gm_json *json)
{
    gm_json_close_array(json);
    gm_json_close_object(json);
    gm_json_end(json);
}

/* Where the objects of several traces stand, as if they had been written before. */
static struct gm_json among_traces(FILE *out, bool follows)
{
    struct gm_json json = {.out = out, .depth = 2};
    json.has_members[1] = true;
    json.has_members[2] = follows;
    return json;
}

static void write_json(FILE *out, const struct gm_model *model,
                       const struct gm_output_options *options)
{
    struct gm_json json = {.out = out};
    bool has_own_array = !options->many && model->run_count != 1;
    if (options->many)
        json = among_traces(out, options->follows);
    if (has_own_array)
        open_traces(&json);
    for (size_t i = 0; i < model->run_count; i++)
        write_report_run(&json, model, &model->runs[i], options->top ? options->top : SIZE_MAX);
    if (has_own_array)
        close_traces(&json);
    else if (!options->many)
        gm_json_end(&json);
}

static void begin_many(FILE *out)
{
    struct gm_json json = {.out = out};
    open_traces(&json);
}

static void end_many(FILE *out, bool follows)
{
    struct gm_json json = among_traces(out, follows);
    close_traces(&json);
}

const struct gm_output gm_output_json = {.name = "json",
                                         .needs = GM_NEEDS_ALL,
                                         .write = write_json,
                                         .begin_many = begin_many,
                                         .end_many = end_many};
