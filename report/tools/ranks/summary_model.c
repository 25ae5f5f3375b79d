/* See summary_model.h. */
#include "tools/ranks/summary_model.h"
#include "base/memory.h"
#include "model/tables.h"
#include <stdlib.h>
#include <string.h>

static struct gm_text kept_text(struct gm_model *model, const char *text)
{
    return gm_arena_text(&model->tables->arena, (struct gm_text){text, strlen(text)});
}

/* "forward  .../model.py:88": function, file and line. As a frame of a script: what is told of it has
 * no module. */
static uint32_t stack_of_place(struct gm_model *model, const char *place)
{
    char *function = gm_copy_text(place), *colon = strrchr(function, ':');
    char *blanks = colon ? strstr(function, "  ") : NULL;
    for (char *next; blanks && (next = strstr(blanks + 1, "  "));)
        blanks = next; /* the last ones */
    struct gm_frame frame = {.function = function};
    if (blanks && blanks < colon) {
        *blanks = *colon = 0;
        frame.file = blanks + 2;
        frame.line = (unsigned)strtoul(colon + 1, NULL, 10);
        frame.script = true;
    }
    uint32_t number = gm_model_add_stack(model, &(struct gm_stack){.frames = &frame, .count = 1});
    free(function);
    return number;
}

static void add_peak(struct gm_model *model, struct gm_model_run *run,
                     const struct gm_summary *summary, const struct gm_summary_device *device)
{
    struct gm_model_moment *moment = &run->moments[run->moment_count];
    *moment = (struct gm_model_moment){
        .kind = GM_MODEL_PEAK, .device = device->id, .time_ns = (uint64_t)device->peak_time_ns};
    moment->samples = GM_MODEL_ARRAY(model, struct gm_model_sample, summary->line_count);
    for (size_t i = 0; i < summary->line_count; i++) {
        struct gm_model_place place = {.stack = stack_of_place(model, summary->lines[i].place),
                                       .api = "",
                                       .library = "",
                                       .device = (int8_t)device->id,
                                       .unlike = GM_NONE,
                                       .kind = GM_KIND_NONE}; /* not told */
        moment->samples[moment->sample_count++] = (struct gm_model_sample){
            gm_model_add_place(model, &place), summary->lines[i].bytes, summary->lines[i].count};
        moment->bytes += summary->lines[i].bytes;
    }
    for (size_t i = 0; i < run->device_count; i++)
        if (run->devices[i].id == device->id)
            run->devices[i].peak = (uint32_t)run->moment_count;
    run->moment_count++;
}

static void add_summary_devices(struct gm_model *model, struct gm_model_run *run,
                                const struct gm_summary *summary)
{
    run->devices = GM_MODEL_ARRAY(model, struct gm_model_device, summary->device_count);
    run->pools = GM_MODEL_ARRAY(model, struct gm_model_pool, summary->device_count);
    for (size_t i = 0; i < summary->device_count; i++) {
        const struct gm_summary_device *from = &summary->devices[i];
        run->devices[run->device_count++] =
            (struct gm_model_device){.id = from->id,
                                     .is_listed = true,
                                     .seen = true,
                                     .name = {"", 0},
                                     .total = (uint64_t)from->total,
                                     .all = {.live = from->live, .peak = from->peak},
                                     .peak = GM_NONE};
        if (summary->leaked < 0)
            run->leaked[GM_LEAK] += from->leaked;
        if (from->reserved)
            run->pools[run->pool_count++] = (struct gm_model_pool){.device = from->id,
                                                                   .reserved_peak = from->reserved,
                                                                   .at_peak = GM_NONE,
                                                                   .last = GM_NONE,
                                                                   .at_end = GM_NONE};
    }
}

static void add_run(struct gm_model *model, const struct gm_summary *summary)
{
    struct gm_model_run *run = gm_model_add_run(model);
    const struct gm_summary_device *fullest = gm_summary_main(summary);
    run->path = gm_arena_string(&model->tables->arena, summary->trace);
    run->run_id = kept_text(model, summary->run_id);
    run->host_name = kept_text(model, summary->host);
    run->command_line = kept_text(model, summary->command);
    run->executable = (struct gm_text){run->command_line.bytes, strcspn(summary->command, " ")};
    run->tool_version = run->python = run->allocator_settings = (struct gm_text){"", 0};
    run->job = kept_text(model, summary->job);
    run->pid = (uint32_t)summary->pid;
    run->rank = (struct gm_model_rank){summary->rank, summary->local_rank, summary->world_size};
    run->start_realtime_ns = (uint64_t)summary->start_realtime_ns;
    run->duration_ns = (uint64_t)summary->duration_ns;
    run->events = (uint64_t)summary->events;
    run->complete = summary->complete;
    run->simulated = summary->simulated;
    run->pinned_peak = run->end = GM_NONE;
    run->pid_namespace = (uint32_t)summary->pid_namespace;
    run->generation = (uint32_t)summary->generation;
    run->ended = (struct gm_ended){.exit_code = (int)(int16_t)summary->exit_code,
                                   .signal = (int)(int16_t)summary->signal};
    run->is_recorded = true;
    run->as_of_ns = (uint64_t)summary->as_of_ns;
    if (summary->end >= 0 && summary->end <= GM_ENDING_CUT)
        run->ending = (enum gm_ending)summary->end;
    run->verdict.state = summary->device_count ? GM_VERDICT_NO_LEAKS : GM_VERDICT_NOTHING;
    if (summary->verdict >= 0 && summary->verdict <= GM_VERDICT_NO_LEAKS_SEEN)
        run->verdict.state = (enum gm_verdict_state)summary->verdict;
    if (summary->leaked >= 0) {
        run->leaked[GM_LEAK] = summary->leaked;
        run->leaked_count[GM_LEAK] = summary->leaked_count;
    }
    run->verdict.leaked =
        (struct gm_model_living){run->leaked[GM_LEAK], run->leaked_count[GM_LEAK]};
    run->moments = GM_MODEL_ARRAY(model, struct gm_model_moment, 1);
    add_summary_devices(model, run, summary);
    if (fullest && summary->line_count)
        add_peak(model, run, summary, fullest);
}

struct gm_model *gm_model_of_summaries(const struct gm_summaries *summaries)
{
    struct gm_model *model = gm_model_new();
    for (size_t i = 0; i < summaries->count; i++)
        add_run(model, &summaries->entries[i]);
    return model;
}
