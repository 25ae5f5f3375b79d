/* See gate.h: the issues of a run. */
#include "base/map.h"
#include "output/headline.h"
#include "tools/gate/gate.h"
#include <stdlib.h>

struct collection {
    const struct gm_gate *gate;
    const struct gm_view *view;
    struct gm_suppressions rules; /* the gate's, with what they matched in this trace */
    struct gm_issues issues;
    struct gm_map by_place; /* what makes issues the same -> number */
};

/* The number of the issue that is the same as this one; that of the next one, which is noted, if there is none. */
static size_t issue_number(struct collection *collection, const struct gm_issue *issue)
{
    const struct gm_issues *issues = &collection->issues;
    uint64_t key = issue->fingerprint ^ (uint64_t)issue->rule << 32 ^
                   (uint64_t)(uint8_t)issue->device << 8 ^ issue->is_finding;
    size_t at = gm_map_get(&collection->by_place, key);
    if (at == GM_NONE) {
        gm_map_set(&collection->by_place, key, (uint32_t)issues->count);
        return issues->count;
    }
    while (at < issues->count && !gm_issue_is_same(&issues->entries[at], issue))
        at++; /* of equal keys */
    return at;
}

/* Adds an issue at a stack, to the one before if only lines differ: a reader would see it twice. `frame`
 * is what it names as its place; NULL: the stack's frame that tells most. */
static void add_issue(struct collection *collection, struct gm_issue *issue, uint32_t stack,
                      const char *kind, const struct gm_frame *frame)
{
    const struct gm_model *model = collection->view->model;
    issue->trace = (char *)collection->view->run->path;
    gm_issue_place(issue, model, stack, kind);
    if (frame)
        gm_issue_name(issue, frame);
    issue->rule = gm_suppressions_find(&collection->rules, issue, model, stack);
    if (issue->rule != GM_NONE) {
        struct gm_rule *rule = &collection->rules.rules[issue->rule];
        rule->used_bytes += issue->bytes;
        rule->used_count += issue->count;
        rule->used_issues++;
    }
    if (collection->gate->makes_rules && stack != GM_NONE)
        issue->frames = gm_rule_frames_of(gm_model_stack(model, stack));
    size_t at = issue_number(collection, issue);
    if (at < collection->issues.count) {
        collection->issues.entries[at].bytes += issue->bytes;
        collection->issues.entries[at].count += issue->count;
    } else {
        gm_issues_add(&collection->issues, issue);
    }
    free(issue->stack);
    free(issue->frames);
}

static void collect_leaks(struct collection *collection)
{
    const struct gm_view *view = collection->view;
    const struct gm_model_moment *end = gm_model_moment(view->run, view->run->end);
    for (size_t i = 0; end && i < end->sample_count; i++) {
        const struct gm_model_sample *sample = &end->samples[i];
        const struct gm_model_place *place = &view->model->places[sample->place];
        if (place->leak_class < GM_LEAK || place->is_block)
            continue;
        unsigned leak_class = gm_gate_class(collection->gate, view->run, place->leak_class);
        struct gm_issue issue = {.device = place->device,
                                 .bytes = sample->bytes,
                                 .count = sample->count,
                                 .code = (char *)gm_leak_class_name(leak_class)};
        issue.level = gm_gate_class_level(collection->gate, issue.code);
        add_issue(collection, &issue, place->stack, gm_kind_name(place->kind),
                  gm_model_place_frame(view->model, place));
    }
    for (size_t i = 0; i < collection->issues.count; i++)
        gm_issue_tell_leak(&collection->issues.entries[i]);
}

static void collect_findings(struct collection *collection)
{
    const struct gm_model_run *run = collection->view->run;
    for (size_t i = 0; i < run->finding_count; i++) {
        const struct gm_model_finding *finding = &run->findings[i];
        struct gm_issue issue = {.device = finding->device,
                                 .bytes = gm_amount(finding->bytes),
                                 .code = (char *)gm_finding_name(finding->code),
                                 .message = (char *)finding->cause,
                                 .is_finding = true};
        issue.level = gm_gate_finding_level(collection->gate, issue.code, finding->severity);
        if (finding->is_unbounded &&
            gm_gate_has_code(collection->gate->fail_on, GM_CODE_UNBOUNDED, true))
            issue.level = GM_ISSUE_FAILURE;
        add_issue(collection, &issue, finding->stack, "finding",
                  gm_model_finding_frame(collection->view->model, finding));
    }
}

/* ---- what cannot be judged ------------------------------------------------------------------- */

/* Peaks and growth are of all the history, of which a flight trace may have the end alone. */
static bool has_history(const struct gm_gate *gate, const struct gm_view *view)
{
    bool matters = gate->limit_count != 0 || gate->max_growth != UINT64_MAX ||
                   gate->max_round_growth != UINT64_MAX || gate->max_pinned != UINT64_MAX ||
                   gate->max_unused != UINT64_MAX || gate->max_residual != UINT64_MAX ||
                   gate->has_increase;
    if (!view->run->is_overwritten || !matters || gate->judge_cut)
        return true;
    gm_page_paragraph(view->page, GM_BAD, 0,
                      "Peaks and growth cannot be judged: the flight recorder has overwritten the "
                      "history before. --on-cut judge takes what is there.");
    return false;
}

/* A residual that nobody sampled is none that holds. */
static bool has_samples(const struct gm_gate *gate, const struct gm_view *view)
{
    if (gate->max_residual == UINT64_MAX || gate->judge_cut)
        return true;
    for (size_t i = 0; i < view->run->device_count; i++)
        if (view->run->devices[i].residuals)
            return true;
    gm_page_paragraph(view->page, GM_BAD, 0,
                      "The residual cannot be judged: no device was sampled, which takes NVML "
                      "(GPUMEM_NVML=1). --on-cut judge takes what is there.");
    return false;
}

/* What the last line says of a trace that is not judged. */
static const char *why_incomplete(const struct gm_model_run *run, char text[GM_ENDING_TEXT])
{
    if (run->ending == GM_ENDING_CUT && !run->was_asked_to_end)
        return gm_ending_text(run, text);
    if (run->ending == GM_ENDING_FAILED) {
        snprintf(text, GM_ENDING_TEXT, "the device failed: error %u", run->device_failed.status);
        return text;
    }
    if (run->damaged)
        return "damaged";
    if (run->lost)
        return "records were lost";
    for (size_t i = 0; i < run->gap_count; i++)
        if (run->gaps[i].loss) {
            snprintf(text, GM_ENDING_TEXT, "incomplete: %s", run->gaps[i].code);
            return text;
        }
    return run->ending == GM_ENDING_RUNNING ? "the process is still running" : "incomplete";
}

static bool is_judged(const struct gm_gate *gate, const struct gm_view *view, bool has_events,
                      struct gm_gate_outcome *outcome)
{
    const struct gm_model_run *run = view->run;
    char text[GM_ENDING_TEXT];
    if (run->is_recorded && !run->complete && !gate->judge_cut) {
        gm_page_paragraph(view->page, GM_BAD, 2,
                          "FAIL  What is missing could be a leak. --on-cut judge takes what is "
                          "there.");
        gm_gate_note_reason(outcome, "%s (--on-cut judge takes what is there)",
                            why_incomplete(run, text));
    } else if (!run->is_recorded) {
        gm_gate_note_reason(outcome, "it was not recorded");
    } else if (!has_history(gate, view)) {
        gm_gate_note_reason(outcome, "its history was overwritten (--on-cut judge)");
    } else if (has_events && !has_samples(gate, view)) {
        gm_gate_note_reason(outcome, "no device was sampled (--on-cut judge)");
    } else {
        return true;
    }
    outcome->unreadable = true;
    return false;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void judge_issues(const struct gm_gate *gate, const struct gm_view *view,
                         struct gm_gate_outcome *outcome)
{
    struct collection collection = {.gate = gate, .view = view, .rules = gate->suppressions};
    if (!gm_gate_figures(gate, view, outcome)) {
        gm_gate_note_reason(outcome, "more devices and limits than the gate can judge");
        outcome->unreadable = true;
        return;
    }
    collect_leaks(&collection);
    collect_findings(&collection);
    if (gate->repeats == GM_REPEATS_NONE)
        gm_gate_decide(gate, view->page, view, &collection.rules, &collection.issues, outcome);
    outcome->issue_count = collection.issues.count;
    for (size_t i = 0; gate->channel && i < collection.issues.count; i++)
        gm_issue_write(gate->channel, &collection.issues.entries[i]);
    gm_map_free(&collection.by_place);
    gm_issues_free(&collection.issues);
}

static void note_run(const struct gm_model_run *run, struct gm_gate_outcome *outcome)
{
    char *run_id = gm_clean_copy(run->run_id), *program = gm_clean_copy(run->executable);
    snprintf(outcome->run_id, sizeof(outcome->run_id), "%s", run_id);
    snprintf(outcome->program, sizeof(outcome->program), "%s", gm_name_behind_slash(program));
    outcome->rank = run->rank.rank;
    free(program);
    free(run_id);
}

void gm_gate_judge(const struct gm_gate *gate, const struct gm_view *view,
                   struct gm_gate_outcome *outcome)
{
    bool has_events = view->run->verdict.state != GM_VERDICT_NOTHING;
    outcome->anything |= has_events;
    note_run(view->run, outcome);
    gm_notes_text(view, "note: ");
    gm_losses_text(view);
    if (!is_judged(gate, view, has_events, outcome))
        return;
    if (has_events) {
        judge_issues(gate, view, outcome);
    } else {
        gm_page_print(view->page, GM_DIM, "  no CUDA memory call was seen\n");
        gm_bypass_text(view, 2);
    }
}
