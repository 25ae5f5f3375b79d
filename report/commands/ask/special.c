/* See special.h. */
#include "commands/ask/special.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "commands/job.h"
#include "commands/session.h"
#include "commands/whatif_page.h"
#include "model/merge.h"
#include "output/ask/answer.h"
#include "tools/diff/diff.h"
#include "tools/ranks/ranks_text.h"
#include <stdio.h>
#include <stdlib.h>

#define TOTALS_SHOWN 10u
#define FINDINGS_SHOWN 6u
#define NAME_BYTES 100u
#define PROCESS_STEPS 4u

/* ---- diff ------------------------------------------------------------------------------------ */

struct place_row {
    enum gm_diff_sections section;
    size_t number;
};

struct difference {
    struct gm_diff diff;
    struct place_row *rows;
};

/* Rows that differ: of a table of totals that has all, too. */
static void write_table(struct gm_answer *answer, struct gm_json *json, enum gm_diff_tables which,
                        const struct gm_diff_table *table, size_t most)
{
    gm_json_open_array(json, gm_diff_table_name(which));
    for (size_t i = 0; i < table->count && most; i++) {
        const struct gm_diff_row *row = &table->rows[i];
        if (row->before == row->after)
            continue;
        gm_json_open_object(json, NULL);
        gm_answer_text(answer, json, "name", row->name, NAME_BYTES);
        gm_json_signed(json, row->is_bytes ? "base_bytes" : "base_count", row->before);
        gm_json_signed(json, row->is_bytes ? "new_bytes" : "new_count", row->after);
        gm_json_close_object(json);
        most--;
    }
    gm_json_close_array(json);
}

static void diff_head(struct gm_answer *answer, struct gm_json *json)
{
    const struct difference *difference = answer->of;
    const struct gm_diff_table *tables = difference->diff.tables;
    gm_json_bool(json, "differs", difference->diff.differs);
    write_table(answer, json, GM_DIFF_TOTALS, &tables[GM_DIFF_TOTALS], TOTALS_SHOWN);
    write_table(answer, json, GM_DIFF_FINDINGS, &tables[GM_DIFF_FINDINGS], FINDINGS_SHOWN);
}

/* The id that a place has where it is: in the newer run, else in the base. */
static const char *special_site(const struct gm_diff *diff, uint32_t stack, char text[GM_ID_TEXT])
{
    const struct gm_stack *frames = gm_model_stack(diff->difference, stack);
    const struct gm_model *model = diff->newer;
    uint32_t number = gm_model_find_stack(model, frames);
    if (number == GM_NONE) {
        model = diff->base;
        number = gm_model_find_stack(model, frames);
    }
    return number == GM_NONE ? NULL : gm_id_text(gm_model_site_id(model, number), text);
}

static void diff_row(struct gm_answer *answer, struct gm_json *json, size_t row)
{
    const struct difference *difference = answer->of;
    const struct gm_diff *diff = &difference->diff;
    const struct place_row *at = &difference->rows[row];
    const struct gm_diff_place *place = &diff->places[at->section].entries[at->number];
    const struct gm_frame *frame =
        gm_stack_telling_frame(gm_model_stack(diff->difference, place->stack));
    gm_json_open_object(json, NULL);
    gm_json_string(json, "section", gm_diff_section_name(at->section));
    gm_json_string(json, "change", gm_diff_change(place->bytes_before, place->bytes_after));
    gm_json_signed(json, "base_bytes", place->bytes_before);
    gm_json_signed(json, "new_bytes", place->bytes_after);
    gm_json_string(json, "site", special_site(diff, place->stack, (char[GM_ID_TEXT]){0}));
    if (frame)
        gm_answer_frame(answer, json, frame);
    gm_json_close_object(json);
}

static struct gm_model *load_traces(const struct gm_run_traces *traces,
                                    const struct gm_stacks_options *stacks, bool *is_whole)
{
    struct gm_model **models = gm_allocate(traces->count + 1, sizeof(struct gm_model *));
    size_t count = 0;
    for (size_t i = 0; i < traces->count; i++) {
        struct gm_session session;
        if (!gm_session_open(&session, traces->paths[i], stacks, GM_NEEDS_ALL)) {
            *is_whole = false;
            continue;
        }
        const struct gm_model *const one[] = {session.model};
        models[count++] = gm_model_merge(one, 1);
        *is_whole &= gm_session_close(&session);
    }
    struct gm_model *merged =
        count ? gm_model_merge((const struct gm_model *const *)models, count) : NULL;
    for (size_t i = 0; i < count; i++)
        gm_model_free(models[i]);
    free(models);
    return merged;
}

/* The trace that the commands name, if it is one. */
static const char *subject_of(const struct gm_run_traces *traces,
                              const struct gm_ask_request *request)
{
    return traces->count != 1 ? NULL : request->is_redacted ? "" : traces->paths[0];
}

static void answer_difference(const struct gm_run_traces *newer, const struct gm_model *base,
                              const struct gm_model *now, const struct gm_ask_request *request)
{
    struct difference difference = {0};
    struct gm_answer answer = {.question = "diff",
                               .subject = subject_of(newer, request),
                               .options = request->options,
                               .write_head = diff_head,
                               .write_row = diff_row,
                               .of = &difference};
    size_t count = 0, capacity = 0;
    gm_diff_make(&difference.diff, base, now, 0);
    for (unsigned section = 0; section < GM_DIFF_SECTIONS; section++)
        for (size_t i = 0; i < difference.diff.places[section].count; i++)
            GM_APPEND(difference.rows, capacity, count, (struct place_row){section, i});
    answer.row_count = count;
    if (answer.subject)
        gm_answer_step(&answer, "what is left to be found in the newer run", "verdict");
    gm_answer_write(&answer, stdout, request->first, request->size);
    free(difference.rows);
    gm_diff_free(&difference.diff);
}

int gm_ask_diff(const struct gm_run_traces *base, const struct gm_run_traces *newer,
                const struct gm_stacks_options *stacks, const struct gm_ask_request *request)
{
    bool is_whole = true;
    struct gm_model *before = load_traces(base, stacks, &is_whole),
                    *now = load_traces(newer, stacks, &is_whole);
    if (before && now)
        answer_difference(newer, before, now, request);
    else
        gm_answer_refuse(stdout, "diff", "unreadable", gm_last_complaint());
    gm_model_free(before);
    gm_model_free(now);
    return is_whole ? GM_EXIT_FINE : GM_EXIT_UNREADABLE;
}

/* ---- whatif ---------------------------------------------------------------------------------- */

struct advice {
    const struct gm_whatif *whatif;
    const char *path;
    const struct gm_ask_request *request;
};

static void whatif_head(struct gm_answer *answer, struct gm_json *json)
{
    const struct gm_whatif *whatif = ((const struct advice *)answer->of)->whatif;
    struct gm_whatif_loss loss = gm_whatif_loss(whatif);
    gm_json_signed(json, "device", whatif->history.device);
    gm_json_number(json, "reserved_peak_bytes", whatif->recorded.reserved_peak);
    gm_json_number(json, "refused", whatif->recorded.out_of_memory);
    gm_json_number(json, "live_peak_bytes", whatif->bounds.live_peak);
    gm_json_number(json, "best_packing_bytes", whatif->bounds.best_packing);
    gm_json_number(json, "fragmentation_bytes", loss.fragmentation);
    gm_json_number(json, "avoidable_bytes", loss.avoidable);
}

static void whatif_row(struct gm_answer *answer, struct gm_json *json, size_t row)
{
    const struct gm_whatif *whatif = ((const struct advice *)answer->of)->whatif;
    const struct gm_whatif_setting *one = &whatif->settings[row];
    gm_json_open_object(json, NULL);
    gm_answer_text(answer, json, "PYTORCH_ALLOC_CONF", one->set, GM_ANSWER_PLACE_BYTES);
    gm_json_bool(json, "helps", gm_whatif_helps(whatif, one));
    gm_json_number(json, "reserved_peak_bytes", one->outcome.reserved_peak);
    gm_json_number(json, "refused", one->outcome.out_of_memory);
    gm_json_close_object(json);
}

static void take_advice(const struct gm_whatif *whatif, void *advice_of)
{
    struct advice *advice = advice_of;
    struct gm_answer answer = {.question = "whatif",
                               .subject = advice->request->is_redacted ? "" : advice->path,
                               .options = advice->request->options,
                               .write_head = whatif_head,
                               .write_row = whatif_row,
                               .of = advice,
                               .row_count = whatif->count};
    advice->whatif = whatif;
    gm_answer_step(&answer, "what the trace comes to", "verdict");
    gm_answer_write(&answer, stdout, advice->request->first, advice->request->size);
}

int gm_ask_whatif(const char *path, const struct gm_ask_request *request)
{
    struct advice advice = {.path = path, .request = request};
    int code = gm_whatif_advise(path, take_advice, &advice);
    if (!advice.whatif)
        gm_answer_refuse(stdout, "whatif", "no-pool", gm_last_complaint());
    return code;
}

/* ---- several processes ----------------------------------------------------------------------- */

static void write_process(struct gm_answer *answer, struct gm_json *json,
                          const struct gm_summary *summary, bool is_redacted)
{
    gm_json_signed(json, "pid", summary->pid);
    if (summary->rank >= 0)
        gm_json_signed(json, "rank", summary->rank);
    if (summary->path && !is_redacted)
        gm_answer_path(answer, json, "trace", summary->path, GM_ANSWER_PLACE_BYTES);
    gm_answer_text(answer, json, "ending", summary->ending, NAME_BYTES);
    gm_answer_text(answer, json, "state", summary->state, NAME_BYTES);
    if (summary->failure && *summary->failure)
        gm_answer_text(answer, json, "failure", summary->failure, NAME_BYTES);
    GM_JSON_MEMBERS(json, summary, errors, warnings);
    const struct gm_summary_device *device = gm_summary_main(summary);
    if (!device)
        return;
    gm_json_signed(json, "device", device->id);
    gm_json_signed(json, "peak_bytes", device->peak);
}

struct job {
    const struct gm_summaries *summaries;
    const struct gm_summary **order; /* worst first */
    const struct gm_ask_request *request;
};

static void job_head(struct gm_answer *answer, struct gm_json *json)
{
    const struct gm_summaries *summaries = ((const struct job *)answer->of)->summaries;
    gm_json_number(json, "processes", summaries->count);
    gm_json_number(json, "active", gm_ranks_active(summaries));
}

static void job_row(struct gm_answer *answer, struct gm_json *json, size_t row)
{
    const struct job *job = answer->of;
    gm_json_open_object(json, NULL);
    write_process(answer, json, job->order[row], job->request->is_redacted);
    gm_json_close_object(json);
}

static void answer_of_job(const struct gm_summaries *summaries,
                          const struct gm_ask_request *request)
{
    struct job job = {summaries, gm_ranks_by_gravity(summaries), request};
    struct gm_answer answer = {.question = "verdict",
                               .options = request->options,
                               .write_head = job_head,
                               .write_row = job_row,
                               .of = &job,
                               .row_count = summaries->count};
    for (size_t i = 0; i < summaries->count && i < PROCESS_STEPS; i++)
        if (job.order[i]->path)
            gm_answer_step_on(&answer, request->is_redacted ? "" : job.order[i]->path,
                              i ? "the process that is next" : "the process that is worst",
                              "verdict");
    gm_answer_write(&answer, stdout, request->first, request->size);
    free(job.order);
}

int gm_ask_job(const struct gm_run_traces *traces, const struct gm_stacks_options *stacks,
               const struct gm_ask_request *request)
{
    struct gm_job_request job = {.stacks = *stacks};
    struct gm_summaries summaries = {0};
    bool is_whole = gm_job_load(&summaries, traces->paths, traces->count, &job);
    gm_summaries_sort(&summaries);
    if (summaries.count)
        answer_of_job(&summaries, request);
    else
        gm_answer_refuse(stdout, "verdict", "unreadable", gm_last_complaint());
    gm_summaries_free(&summaries);
    return is_whole ? GM_EXIT_FINE : GM_EXIT_UNREADABLE;
}
