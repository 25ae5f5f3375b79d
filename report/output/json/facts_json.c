/* See sections.h. */
#include "output/json/sections.h"
#include <string.h>

#define FORMAT_VERSION 2 /* of the JSON; raised when the meaning of a member changes */

static void write_fact_gaps(struct gm_json_view *view)
{
    struct gm_json *json = view->json;
    gm_json_open_array(json, "gaps");
    for (size_t i = 0; i < view->run->gap_count; i++) {
        const struct gm_model_gap *gap = &view->run->gaps[i];
        GM_JSON_OBJECT(json, NULL, gap, code, loss, count, text);
    }
    gm_json_close_array(json);
}

static void write_fact_command(struct gm_json_view *view)
{
    struct gm_text rest = view->run->command_line;
    gm_json_open_array(view->json, "command");
    while (rest.size) {
        size_t size = strnlen(rest.bytes, rest.size);
        size_t step = size < rest.size ? size + 1 : size;
        gm_json_text(view->json, NULL, (struct gm_text){rest.bytes, size});
        rest = (struct gm_text){rest.bytes + step, rest.size - step};
    }
    gm_json_close_array(view->json);
}

/* What of the history a flight trace no longer has. */
static void write_overwritten(struct gm_json_view *view)
{
    const struct gm_model_run *run = view->run;
    struct gm_json *json = view->json;
    if (!run->is_overwritten) {
        gm_json_null(json, "overwritten");
        return;
    }
    gm_json_open_object(json, "overwritten");
    gm_json_number(json, "until_ns", run->overwritten_until_ns);
    GM_JSON_MEMBERS(json, &run->overwritten, events, allocs, frees, implicit_frees, failed, copies);
    gm_json_number(json, "copied_bytes", run->overwritten.copied);
    gm_json_close_object(json);
}

void gm_facts_json(struct gm_json_view *view)
{
    static const char *const endings[] = {"normal", "running", "cut", "failed"};
    const struct gm_model_run *run = view->run;
    struct gm_json *json = view->json;
    char signal_name[GM_SIGNAL_TEXT];
    gm_json_number(json, "format", FORMAT_VERSION);
    gm_json_string(json, "trace", run->path);
    if (run->base_path)
        gm_json_string(json, "base_trace", run->base_path);
    gm_json_bool(json, "complete", run->complete);
    write_fact_gaps(view);
    gm_json_string(json, "ending", endings[run->ending]);
    GM_JSON_IF(json, "as_of_ns", run->as_of_ns, run->as_of_ns);
    GM_JSON_IF(json, "exit_code", run->ended.exit_code >= 0, run->ended.exit_code);
    GM_JSON_IF(json, "signal", run->ended.signal, gm_signal_name(run->ended.signal, signal_name));
    if (run->device_failed.status) {
        gm_json_open_object(json, "device_failed");
        GM_JSON_MEMBERS(json, &run->device_failed, status, time_ns);
        gm_json_number(json, "refused_frees", run->device_failed.frees);
        gm_json_close_object(json);
    } else {
        gm_json_null(json, "device_failed");
    }
    GM_JSON_MEMBERS(json, run, truncated, damaged, lost, simulated, bypassed, tool_version, pid,
                    host_name);
    GM_JSON_IF(json, "rank", run->rank.rank >= 0, run->rank.rank);
    GM_JSON_IF(json, "local_rank", run->rank.local_rank >= 0, run->rank.local_rank);
    GM_JSON_IF(json, "world_size", run->rank.world_size >= 0, run->rank.world_size);
    GM_JSON_IF(json, "job", run->job.size, run->job);
    gm_json_text(json, "executable", run->executable);
    write_fact_command(view);
    GM_JSON_MEMBERS(json, run, start_realtime_ns, duration_ns, events);
    gm_json_open_array(json, "settings_not_understood");
    for (size_t i = 0; i < run->setting_count; i++)
        gm_json_text(json, NULL, run->settings_not_understood[i]);
    gm_json_close_array(json);
    gm_json_string(json, "mode", run->flight ? "flight" : "full");
    write_overwritten(view);
}

void gm_verdict_json(struct gm_json_view *view)
{
    static const char *const states[] = {[GM_VERDICT_NOTHING] = "nothing",
                                         [GM_VERDICT_LIVE] = "live",
                                         [GM_VERDICT_LEAKS] = "leaks",
                                         [GM_VERDICT_NO_LEAKS] = "no leaks",
                                         [GM_VERDICT_NO_LEAKS_SEEN] = "no leaks seen"};
    const struct gm_model_verdict *verdict = &view->run->verdict;
    struct gm_json *json = view->json;
    const struct {
        const char *name;
        const struct gm_model_living *living;
    } members[] = {{"on_devices", &verdict->on_devices},
                   {"on_host", &verdict->on_host},
                   {"leaked", &verdict->leaked}};
    gm_json_open_object(json, "verdict");
    gm_json_string(json, "state", states[verdict->state]);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        GM_JSON_OBJECT(json, members[i].name, members[i].living, bytes, count);
    }
    gm_json_close_object(json);
}

void gm_newer_abi_json(struct gm_json_view *view)
{
    struct gm_json *json = view->json;
    gm_json_open_array(json, "newer_abi");
    for (size_t i = 0; i < view->run->newer_abi_count; i++) {
        const struct gm_model_newer_abi *entry = &view->run->newer_abi[i];
        GM_JSON_OBJECT(json, NULL, entry, name, form, cuda_version);
    }
    gm_json_close_array(json);
}

void gm_recorder_json(struct gm_json_view *view)
{
    struct gm_json *json = view->json;
    gm_json_open_object(json, "recorder");
    for (unsigned i = 0; i < GM_COUNTERS; i++)
        if (view->run->recorder[i].name)
            gm_json_number(json, view->run->recorder[i].name, view->run->recorder[i].value);
    if (view->run->python.size)
        gm_json_text(json, "python", view->run->python);
    gm_json_close_object(json);
}
