/* Who ran, and how far the trace can be trusted. See builder.h. */
#include "base/each.h"
#include "input/trace/environment.h"
#include "judge/analysis/recorder_counters.h"
#include "judge/verdict/completeness.h"
#include "judge/verdict/ending.h"
#include "judge/verdict/newer_abi.h"
#include "judge/verdict/settings.h"
#include "judge/verdict/verdict.h"
#include "model/builder.h"
#include <gpumem/ranks.h>
#include <string.h>

/* ---- the place in a job ---------------------------------------------------------------------- */

/* A whole number that is not negative, -1 if the variable has none. */
static int64_t number_of_setting(const struct gm_trace *trace, const char *name)
{
    struct gm_text value;
    int64_t number = 0;
    if (!gm_environment_get(trace, name, &value) || value.size == 0 || value.size > 9)
        return -1;
    for (size_t i = 0; i < value.size; i++) {
        if (value.bytes[i] < '0' || value.bytes[i] > '9')
            return -1;
        number = 10 * number + (value.bytes[i] - '0');
    }
    return number;
}

static struct gm_model_rank rank_of(const struct gm_trace *trace)
{
    for (size_t i = 0; i < GM_RANK_LAUNCHERS; i++) {
        const char *const *names = gm_rank_variables[i];
        int64_t rank = number_of_setting(trace, names[0]);
        if (rank >= 0)
            return (struct gm_model_rank){rank, names[1] ? number_of_setting(trace, names[1]) : -1,
                                          names[2] ? number_of_setting(trace, names[2]) : -1};
    }
    return (struct gm_model_rank){-1, -1, -1};
}

static struct gm_text job_of(const struct gm_trace *trace)
{
    struct gm_text value;
    for (size_t i = 0; i < GM_JOB_VARIABLES; i++)
        if (gm_environment_get(trace, gm_job_variables[i], &value) && value.size &&
            !(value.size == 4 && memcmp(value.bytes, "none", 4) == 0)) /* torchrun's default */
            return value;
    return (struct gm_text){"", 0};
}

/* ---- trust ----------------------------------------------------------------------------------- */

static void build_gaps(struct gm_builder *builder)
{
    struct gm_model_run *run = builder->run;
    struct gm_gap gap;
    size_t count = 0;
    for (size_t at = 0; gm_gap_next(builder->analysis, &at, &gap);)
        count++;
    run->gaps = GM_BUILDER_ARRAY(builder, struct gm_model_gap, count);
    run->complete = true;
    for (size_t at = 0; gm_gap_next(builder->analysis, &at, &gap);) {
        run->gaps[run->gap_count++] = (struct gm_model_gap){
            .code = gap.code,
            .loss = gap.effect == GM_GAP_LOSS,
            .count = gap.count,
            .text = gm_arena_string(&builder->model->tables->arena, gap.text),
        };
        run->complete &= gap.effect != GM_GAP_LOSS;
    }
}

static void build_newer_abi(struct gm_builder *builder)
{
    struct gm_model_run *run = builder->run;
    run->newer_abi = GM_BUILDER_ARRAY(builder, struct gm_model_newer_abi, GM_NEWER_ABI_MAX);
    for (size_t i = 0; i < GM_NEWER_ABI_MAX; i++) {
        const struct gm_newer_abi *entry = &builder->trace->header.newer_abi[i];
        if (entry->api)
            run->newer_abi[run->newer_abi_count++] = (struct gm_model_newer_abi){
                gm_newer_abi_name(builder->trace, entry), entry->form, entry->version};
    }
}

static void build_settings(struct gm_builder *builder)
{
    struct gm_model_run *run = builder->run;
    struct gm_text rest = builder->trace->environment, one;
    size_t count = 0;
    while (gm_settings_next(&rest, &one))
        count++;
    run->settings_not_understood = GM_BUILDER_ARRAY(builder, struct gm_text, count);
    for (rest = builder->trace->environment; gm_settings_next(&rest, &one);)
        run->settings_not_understood[run->setting_count++] = one;
    if (!gm_environment_allocator(builder->trace, &run->allocator_variable,
                                  &run->allocator_settings))
        run->allocator_variable = NULL;
}

static void build_overwritten(struct gm_builder *builder)
{
    const struct gm_checkpoint *checkpoint = builder->trace->checkpoint;
    struct gm_model_run *run = builder->run;
    if (!checkpoint)
        return;
    run->is_overwritten = true;
    run->overwritten_until_ns = gm_builder_time(builder, checkpoint->time);
    GM_COPY_MEMBERS(&run->overwritten, &checkpoint->before, events, allocs, frees, implicit_frees,
                    failed, copies, copied);
}

/* Whether the program survived every refusal that is known. */
static bool went_on(const struct gm_analysis *analysis)
{
    for (size_t i = 0; i < analysis->failure_count; i++)
        if (analysis->failures[i].out_of_memory && !analysis->failures[i].survived)
            return false;
    for (size_t i = 0; i < analysis->pool_failures.count; i++)
        if (!analysis->pool_failures.entries[i].survived)
            return false;
    return true;
}

/* ---- all ------------------------------------------------------------------------------------- */

static struct gm_model_living living_of(struct gm_living living)
{
    return (struct gm_model_living){gm_amount(living.bytes), gm_amount(living.count)};
}

static struct gm_model_verdict verdict_of(const struct gm_analysis *analysis)
{
    struct gm_verdict verdict = gm_verdict_of(analysis);
    return (struct gm_model_verdict){verdict.state, living_of(verdict.on_devices),
                                     living_of(verdict.on_host), living_of(verdict.leaked)};
}

/* Who, where and with what: numbers stay. */
static void hide_facts(struct gm_builder *builder)
{
    static const struct gm_text nothing = {"", 0}, program = {"program", 7};
    struct gm_model_run *run = builder->run;
    run->path = "redacted";
    run->run_id = run->host_name = run->job = nothing;
    run->executable = run->command_line = program;
    run->allocator_settings = (struct gm_text){"redacted", 8};
    for (size_t i = 0; i < run->setting_count; i++) {
        struct gm_text *setting = &run->settings_not_understood[i];
        const char *end = memchr(setting->bytes, '=', setting->size);
        setting->size = end ? (size_t)(end - setting->bytes) : 0;
    }
}

#define FIELD(field) gm_trace_field((field), sizeof(field))

void gm_build_facts(struct gm_builder *builder)
{
    const struct gm_analysis *analysis = builder->analysis;
    const struct gm_trace *trace = builder->trace;
    const struct gm_trace_header *header = &trace->header;
    struct gm_model_run *run = builder->run;
    run->path = trace->path;
    run->run_id = FIELD(header->run_id);
    run->host_name = FIELD(header->host);
    run->executable = FIELD(header->executable);
    run->tool_version = FIELD(header->tool_version);
    run->python = gm_trace_string(trace, header->python_state);
    run->command_line = (struct gm_text){header->command_line, header->command_line_size};
    if (run->command_line.size > sizeof(header->command_line))
        run->command_line.size = sizeof(header->command_line);
    GM_COPY_MEMBERS(run, header, pid, pid_namespace, generation);
    run->rank = rank_of(trace);
    run->job = job_of(trace);
    run->start_realtime_ns = header->clock_start.realtime_ns;
    run->duration_ns = analysis->duration;
    run->events = analysis->replay.ledger.events;
    run->ending = trace->ending;
    run->as_of_ns = trace->as_of_ns;
    run->ended = gm_ended_of(header);
    if (trace->failed.status) {
        run->device_failed.status = trace->failed.status;
        run->device_failed.time_ns = gm_builder_time(builder, trace->failed.time);
        run->device_failed.frees = trace->failed.frees;
    }
    run->was_asked_to_end = trace->ending == GM_ENDING_CUT && gm_was_asked_to_end(&trace->header);
    run->is_recorded = !(header->flags & GM_HEADER_NOT_RECORDED);
    run->truncated = trace->truncated;
    run->simulated = (header->flags & GM_HEADER_SIMULATED) != 0;
    run->bypassed = (header->flags & GM_HEADER_BYPASSED) != 0;
    run->flight = (header->flags & GM_HEADER_FLIGHT) != 0;
    run->damaged = trace->damaged;
    run->lost = analysis->lost;
    run->verdict = verdict_of(analysis);
    run->went_on = went_on(analysis);
    for (unsigned i = 0; i < GM_COUNTERS; i++)
        run->recorder[i] = (struct gm_model_counter){gm_counter_rule(i)->name, header->counters[i]};
    build_gaps(builder);
    build_newer_abi(builder);
    build_settings(builder);
    build_overwritten(builder);
    if (trace->redaction)
        hide_facts(builder);
}
