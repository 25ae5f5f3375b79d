/* See ask.h. Here are also the questions about what was found. */
#include "output/ask/ask.h"
#include "output/ask/questions.h"
#include "output/json.h"
#include <stdlib.h>
#include <string.h>

#define CAUSE_BYTES 220u /* of a finding in a list */
#define SENTENCE_BYTES 600u
#define DEVICES_SHOWN 8u
#define FINDING_STEPS 3u
#define MOMENTS_SHOWN 8u

static void write_amount(struct gm_json *json, const char *key, int64_t value)
{
    gm_json_number(json, key, value > 0 ? (uint64_t)value : 0);
}

/* ---- verdict --------------------------------------------------------------------------------- */

static void write_ask_devices(const struct gm_model_run *run, struct gm_json *json)
{
    size_t shown = 0;
    gm_json_open_array(json, "devices");
    for (size_t i = 0; i < run->device_count; i++) {
        const struct gm_model_device *device = &run->devices[i];
        if (!device->is_listed || shown++ >= DEVICES_SHOWN)
            continue;
        gm_json_open_object(json, NULL);
        gm_ask_device(json, device->id);
        if (device->total)
            gm_json_number(json, "total_bytes", device->total);
        write_amount(json, "peak_bytes", device->all.peak);
        write_amount(json, "live_bytes", device->all.live);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

static void write_ask_gaps(struct gm_ask *ask, struct gm_json *json)
{
    gm_json_open_array(json, "losses");
    for (size_t i = 0; i < ask->run->gap_count; i++)
        if (ask->run->gaps[i].loss)
            gm_json_string(json, NULL, ask->run->gaps[i].code);
    gm_json_close_array(json);
}

static void verdict_head(struct gm_answer *answer, struct gm_json *json)
{
    struct gm_ask *ask = gm_ask_of(answer);
    const struct gm_model_run *run = ask->run;
    struct gm_headline headline = gm_headline_of(run);
    char *command = gm_command_text(run);
    gm_answer_path(answer, json, "trace", run->path, GM_ANSWER_PLACE_BYTES);
    gm_answer_text(answer, json, "command", command, GM_ANSWER_PLACE_BYTES);
    gm_json_string(json, "process", gm_process_text(run, (char[GM_PROCESS_TEXT]){0}));
    gm_json_string(json, "ending", gm_ending_text(run, (char[GM_ENDING_TEXT]){0}));
    GM_JSON_MEMBERS(json, run, simulated, complete);
    write_ask_gaps(ask, json);
    gm_json_string(json, "state", headline.state);
    gm_json_string(json, "failure", headline.failure[0] ? headline.failure : NULL);
    GM_JSON_MEMBERS(json, &headline, errors, warnings);
    write_amount(json, "leaked_bytes", run->verdict.leaked.bytes);
    write_amount(json, "leaked_allocations", run->verdict.leaked.count);
    gm_json_number(json, "duration_ns", run->duration_ns);
    write_ask_devices(run, json);
    free(command);
}

static void finding_members(struct gm_ask *ask, struct gm_json *json, size_t number, size_t most)
{
    const struct gm_model_finding *finding = &ask->run->findings[number];
    gm_json_string(json, "id", ID(gm_model_finding_id(ask->model, ask->run, finding)));
    gm_json_string(json, "severity", gm_severity_name(finding->severity));
    gm_json_string(json, "code", gm_finding_name(finding->code));
    gm_ask_device(json, finding->device);
    gm_json_number(json, "bytes", finding->bytes);
    gm_ask_where(ask, json, finding->stack, gm_model_finding_frame(ask->model, finding));
    gm_answer_text(&ask->answer, json, "cause", finding->cause, most);
}

static void verdict_row(struct gm_answer *answer, struct gm_json *json, size_t row)
{
    gm_json_open_object(json, NULL);
    finding_members(gm_ask_of(answer), json, row, CAUSE_BYTES);
    gm_json_close_object(json);
}

void gm_ask_verdict(struct gm_ask *ask)
{
    struct gm_answer *answer = &ask->answer;
    answer->write_head = verdict_head;
    answer->write_row = verdict_row;
    answer->row_count = ask->run->finding_count;
    gm_ask_step_findings(ask, UINT32_MAX, FINDING_STEPS);
    if (gm_refusal_of(ask->run).is_there)
        gm_answer_step(answer, "memory ran out", "oom");
    if (ask->run->verdict.state == GM_VERDICT_LEAKS)
        gm_answer_step(answer, "memory was never freed", "leaks");
    if (ask->run->verdict.state != GM_VERDICT_NOTHING)
        gm_answer_step(answer, "who held the memory at its peak", "peak");
}

/* ---- one finding ----------------------------------------------------------------------------- */

/* Places that bear it out: its own, and the one that reads the same and is not meant. */
static void write_evidence_ids(struct gm_ask *ask, struct gm_json *json,
                               const struct gm_model_finding *finding)
{
    const uint32_t stacks[] = {finding->stack, finding->unlike};
    gm_json_open_array(json, "evidence_ids");
    for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++)
        if (stacks[i] != GM_NONE)
            gm_json_string(json, NULL, ID(gm_model_site_id(ask->model, stacks[i])));
    gm_json_close_array(json);
}

static void finding_head(struct gm_answer *answer, struct gm_json *json)
{
    struct gm_ask *ask = gm_ask_of(answer);
    const struct gm_model_finding *finding = &ask->run->findings[ask->finding];
    const struct gm_frame *by = gm_model_finding_by(ask->model, finding);
    finding_members(ask, json, ask->finding, SENTENCE_BYTES);
    gm_answer_text(answer, json, "try", finding->remedy, SENTENCE_BYTES);
    gm_answer_text(answer, json, "evidence", finding->evidence, SENTENCE_BYTES);
    if (finding->bytes_per_round) {
        GM_JSON_MEMBERS(json, finding, bytes_per_round, is_unbounded);
    }
    if (by) {
        gm_json_open_object(json, "by");
        gm_ask_where(ask, json, finding->stack, by);
        gm_json_close_object(json);
    }
    write_evidence_ids(ask, json, finding);
}

static void frame_row(struct gm_answer *answer, struct gm_json *json, size_t row)
{
    struct gm_ask *ask = gm_ask_of(answer);
    const struct gm_frame *frame = &gm_model_stack(ask->model, ask->stack)->frames[row];
    gm_json_open_object(json, NULL);
    gm_answer_frame(answer, json, frame);
    if (frame->framework)
        gm_answer_text(answer, json, "of", frame->framework, GM_ANSWER_PLACE_BYTES);
    gm_json_close_object(json);
}

/* Rows are the frames of its stack, innermost first. */
static void list_frames(struct gm_ask *ask)
{
    ask->answer.write_row = frame_row;
    ask->answer.row_count =
        ask->stack == GM_NONE ? 0 : gm_model_stack(ask->model, ask->stack)->count;
}

void gm_ask_finding(struct gm_ask *ask)
{
    uint32_t number = gm_model_finding_of_id(ask->model, ask->run, ask->request->id);
    if (number == GM_NONE) {
        ask->error_code = "no-such-finding";
        ask->error = "there is no finding with this id: ask verdict lists them";
        return;
    }
    const struct gm_model_finding *finding = &ask->run->findings[number];
    ask->finding = number;
    ask->stack = finding->stack;
    ask->answer.write_head = finding_head;
    list_frames(ask);
    if (ask->stack != GM_NONE)
        gm_answer_step(&ask->answer, "all that is known of the place", "site %s",
                       ID(gm_model_site_id(ask->model, ask->stack)));
    if (finding->code == GM_FINDING_OUT_OF_MEMORY)
        gm_answer_step(&ask->answer, "what was refused, and who held the memory then", "oom");
    if (finding->code == GM_FINDING_RETAINED || finding->code == GM_FINDING_GROWING)
        gm_answer_step(&ask->answer, "what grows from round to round", "growth");
    if (finding->code == GM_FINDING_POOL_FRAGMENTATION || finding->code == GM_FINDING_CACHED)
        gm_answer_step(&ask->answer, "settings of PyTorch's allocator that help", "whatif");
    gm_answer_step(&ask->answer, "who held the memory at its peak", "peak");
}

/* ---- one place ------------------------------------------------------------------------------- */

static bool is_at_site(const struct gm_ask *ask, uint32_t stack)
{
    return stack != GM_NONE &&
           gm_model_same_stack(ask->model, stack) == gm_model_same_stack(ask->model, ask->stack);
}

static const char *moment_name(const struct gm_model_run *run, const struct gm_model_moment *moment)
{
    static const char *const names[] = {
        [GM_MODEL_PEAK] = "peak",
        [GM_MODEL_PINNED_PEAK] = "pinned peak",
        [GM_MODEL_FAILURE] = "refusal",
        [GM_MODEL_END] = "end",
        [GM_MODEL_POOL_PEAK] = "pool peak",
        [GM_MODEL_POOL_LAST] = "last use of the pool",
        [GM_MODEL_POOL_FAILURE] = "refusal of the pool",
        [GM_MODEL_POOL_END] = "end of the pool",
    };
    return moment->kind == GM_MODEL_END ? gm_when_left(run) : names[moment->kind];
}

/* False: the place held nothing then. */
static bool write_moment(struct gm_ask *ask, struct gm_json *json,
                         const struct gm_model_moment *moment)
{
    int64_t bytes = 0, count = 0;
    for (size_t i = 0; i < moment->sample_count; i++) {
        const struct gm_model_sample *sample = &moment->samples[i];
        bool is_here = is_at_site(ask, ask->model->places[sample->place].stack);
        bytes += is_here ? sample->bytes : 0;
        count += is_here ? sample->count : 0;
    }
    if (!count)
        return false;
    gm_json_open_object(json, NULL);
    gm_json_string(json, "at", moment_name(ask->run, moment));
    gm_ask_device(json, moment->device);
    gm_json_number(json, "time_ns", moment->time_ns);
    write_amount(json, "bytes", bytes);
    write_amount(json, "allocations", count);
    gm_json_close_object(json);
    return true;
}

static void write_kinds(struct gm_ask *ask, struct gm_json *json)
{
    uint32_t told = 0;
    gm_json_open_array(json, "kinds");
    for (size_t i = 0; i < ask->model->place_count; i++) {
        const struct gm_model_place *place = &ask->model->places[i];
        uint32_t bit = 1u << (place->is_block ? 31 : place->kind);
        if (told & bit || !is_at_site(ask, place->stack))
            continue;
        told |= bit;
        gm_json_string(json, NULL, place->is_block ? "block" : gm_kind_name(place->kind));
    }
    gm_json_close_array(json);
}

static void write_lifetimes(struct gm_ask *ask, struct gm_json *json)
{
    int64_t allocs = 0, bytes = 0, brief = 0;
    for (size_t i = 0; i < ask->run->lifetime_count; i++) {
        const struct gm_model_lifetime *life = &ask->run->lifetimes[i];
        if (!is_at_site(ask, ask->model->places[life->place].stack))
            continue;
        allocs += life->allocs;
        bytes += life->allocated;
        brief += life->short_lived;
    }
    write_amount(json, "allocations", allocs);
    write_amount(json, "allocated_bytes", bytes);
    write_amount(json, "short_lived_allocations", brief);
}

static void write_finding_ids(struct gm_ask *ask, struct gm_json *json)
{
    gm_json_open_array(json, "findings");
    for (size_t i = 0; i < ask->run->finding_count; i++)
        if (is_at_site(ask, ask->run->findings[i].stack))
            gm_json_string(json, NULL,
                           ID(gm_model_finding_id(ask->model, ask->run, &ask->run->findings[i])));
    gm_json_close_array(json);
}

static void site_head(struct gm_answer *answer, struct gm_json *json)
{
    struct gm_ask *ask = gm_ask_of(answer);
    size_t shown = 0;
    gm_ask_where(ask, json, ask->stack, NULL);
    write_kinds(ask, json);
    write_lifetimes(ask, json);
    gm_json_open_array(json, "held");
    for (size_t i = 0; i < ask->run->moment_count && shown < MOMENTS_SHOWN; i++)
        shown += write_moment(ask, json, &ask->run->moments[i]);
    gm_json_close_array(json);
    write_finding_ids(ask, json);
}

void gm_ask_site(struct gm_ask *ask)
{
    ask->stack = gm_model_stack_of_id(ask->model, ask->request->id);
    if (ask->stack == GM_NONE) {
        ask->error_code = "no-such-site";
        ask->error = "there is no place with this id: ask owners lists them";
        return;
    }
    ask->answer.write_head = site_head;
    list_frames(ask);
    for (size_t i = 0; i < ask->run->finding_count; i++)
        if (is_at_site(ask, ask->run->findings[i].stack))
            gm_answer_step(&ask->answer, gm_finding_name(ask->run->findings[i].code), "finding %s",
                           ID(gm_model_finding_id(ask->model, ask->run, &ask->run->findings[i])));
    gm_answer_step(&ask->answer, "who held the memory at its peak", "peak");
}

/* ---- all ------------------------------------------------------------------------------------- */

static const struct question {
    struct gm_ask_question question;
    void (*prepare)(struct gm_ask *ask);
} questions[] = {
    {{"verdict", false}, gm_ask_verdict}, {{"finding", true}, gm_ask_finding},
    {{"site", true}, gm_ask_site},        {{"peak", false}, gm_ask_peak},
    {{"owners", false}, gm_ask_owners},   {{"leaks", false}, gm_ask_leaks},
    {{"oom", false}, gm_ask_oom},         {{"growth", false}, gm_ask_growth},
};

static const struct question *find_question(const char *name)
{
    for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++)
        if (strcmp(questions[i].question.name, name) == 0)
            return &questions[i];
    return NULL;
}

const struct gm_ask_question *gm_ask_find(const char *name)
{
    const struct question *found = find_question(name);
    return found ? &found->question : NULL;
}

bool gm_ask_write(FILE *out, const struct gm_model *model, const struct gm_ask_request *request)
{
    struct gm_ask ask = {.model = model,
                         .run = &model->runs[0],
                         .request = request,
                         .stack = GM_NONE,
                         .answer = {.question = request->question,
                                    .subject = request->is_redacted ? "" : model->runs[0].path,
                                    .options = request->options}};
    ask.answer.of = &ask;
    find_question(request->question)->prepare(&ask);
    if (ask.error)
        gm_answer_refuse(out, request->question, ask.error_code, ask.error);
    else
        gm_answer_write(&ask.answer, out, request->first, request->size);
    gm_model_held_free(&ask.held);
    free(ask.owners);
    return !ask.error;
}
