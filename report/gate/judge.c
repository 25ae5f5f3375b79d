/* See gate.h. */
#include "base/memory.h"
#include "base/size.h"
#include "gate/gate.h"
#include "ledger/counters.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- codes ----------------------------------------------------------------------------------- */

static bool is_leak_class(const char *code)
{
    for (unsigned leak_class = GM_LEAK; leak_class < GM_LEAK_CLASSES; leak_class++)
        if (strcmp(code, gm_leak_class_name(leak_class)) == 0)
            return true;
    return false;
}

static bool is_finding(const char *code)
{
    for (unsigned number = 0; number < GM_FINDING_CODES; number++)
        if (strcmp(code, gm_finding_name(number)) == 0)
            return true;
    return false;
}

static bool is_in_list(const char *list, const char *code)
{
    const char *names[] = {code, "all", is_finding(code) ? "findings" : code};
    for (const char *at = list; *at; at += strspn(at, ",")) {
        size_t length = strcspn(at, ",");
        for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
            if (strlen(names[i]) == length && memcmp(at, names[i], length) == 0)
                return true;
        at += length;
    }
    return false;
}

static bool is_code(const char *name)
{
    return strcmp(name, "all") == 0 || strcmp(name, "findings") == 0 || strcmp(name, "none") == 0 ||
           is_leak_class(name) || is_finding(name);
}

bool gm_gate_codes_are_known(const char *option, const char *list)
{
    char *copy = gm_copy_text(list), *rest = copy, *one;
    bool known = true;
    while (known && (one = strsep(&rest, ",")))
        if (!(known = is_code(one)))
            fprintf(stderr, "gpumem: %s: '%s' is no class of leaks and no code of a finding\n",
                    option, one);
    free(copy);
    return known;
}

/* ---- issues ---------------------------------------------------------------------------------- */

struct judgement {
    const struct gm_gate *gate;
    const struct gm_view *view;
    struct gm_suppressions rules; /* the gate's, with what they matched in this trace */
    struct gm_issues issues;
    size_t *of_finding; /* [finding of the run] number of its issue */
    bool good;
};

static enum gm_issue_level level_of(const struct gm_gate *gate, const char *code,
                                    enum gm_severity severity)
{
    if (severity == GM_SEVERITY_NOTE)
        return GM_ISSUE_NOTE;
    if (is_in_list(gate->fail_on, code))
        return GM_ISSUE_FAILURE;
    return is_in_list(gate->warn_on, code) ? GM_ISSUE_WARNING : GM_ISSUE_NOTE;
}

static bool is_within(const struct gm_gate *gate, const struct gm_baseline_entry *entry,
                      int64_t bytes)
{
    int64_t share = (int64_t)((__int128)entry->bytes * gate->increase_share / 100); /* GNU */
    int64_t more = gm_amount(gate->increase_bytes);
    more = share > more ? share : more;
    return gate->new_only || bytes <= entry->bytes || bytes - entry->bytes <= more;
}

/* Adds an issue at a stack, to the one before if only lines differ: a reader would see it twice.
 * Returns its number. */
static size_t add_issue(struct judgement *judgement, struct gm_issue *issue, uint32_t stack,
                        const char *kind)
{
    const struct gm_model *model = judgement->view->model;
    issue->trace = (char *)judgement->view->run->path;
    gm_issue_place(issue, model, stack, kind);
    issue->rule = gm_suppressions_find(&judgement->rules, issue, model, stack);
    if (issue->rule != GM_NONE) {
        struct gm_rule *rule = &judgement->rules.rules[issue->rule];
        rule->used_bytes += issue->bytes;
        rule->used_count += issue->count;
        rule->used_issues++;
    }
    for (size_t i = 0; i < judgement->issues.count; i++) {
        struct gm_issue *before = &judgement->issues.entries[i];
        if (before->fingerprint == issue->fingerprint && before->device == issue->device &&
            before->rule == issue->rule && strcmp(before->code, issue->code) == 0) {
            before->bytes += issue->bytes;
            before->count += issue->count;
            free(issue->stack);
            return i;
        }
    }
    gm_issues_add(&judgement->issues, issue);
    free(issue->stack);
    return judgement->issues.count - 1;
}

static void collect_leaks(struct judgement *judgement)
{
    const struct gm_view *view = judgement->view;
    const struct gm_model_moment *end = gm_model_moment(view->run, view->run->end);
    for (size_t i = 0; end && i < end->sample_count; i++) {
        const struct gm_model_sample *sample = &end->samples[i];
        const struct gm_model_place *place = &view->model->places[sample->place];
        if (place->leak_class < GM_LEAK || place->is_block)
            continue;
        if (place->leak_class == GM_LEAK && view->run->was_asked_to_end)
            continue; /* its end gave all back; nothing tells what it would have kept */
        struct gm_issue issue = {.device = place->device,
                                 .bytes = sample->bytes,
                                 .count = sample->count,
                                 .code = (char *)gm_leak_class_name(place->leak_class)};
        issue.level = level_of(judgement->gate, issue.code, GM_SEVERITY_WARNING);
        add_issue(judgement, &issue, place->stack, gm_kind_name(place->kind));
    }
    for (size_t i = 0; i < judgement->issues.count; i++) {
        struct gm_issue *issue = &judgement->issues.entries[i];
        char text[128];
        snprintf(text, sizeof(text), "%s in %s allocation%s, never given back (%s).",
                 BYTES(issue->bytes), NUMBER(issue->count), gm_plural((uint64_t)issue->count),
                 issue->code);
        free(issue->message);
        issue->message = gm_copy_text(text);
    }
}

static void collect_findings(struct judgement *judgement)
{
    const struct gm_model_run *run = judgement->view->run;
    judgement->of_finding = gm_allocate(run->finding_count, sizeof(*judgement->of_finding));
    for (size_t i = 0; i < run->finding_count; i++) {
        const struct gm_model_finding *finding = &run->findings[i];
        struct gm_issue issue = {.device = finding->device,
                                 .bytes = gm_amount(finding->bytes),
                                 .code = (char *)gm_finding_name(finding->code),
                                 .message = (char *)finding->cause};
        issue.level = level_of(judgement->gate, issue.code, finding->severity);
        judgement->of_finding[i] = add_issue(judgement, &issue, finding->stack, "finding");
    }
}

/* A rule that has matched more than it accepts accepts nothing; the rest may be known. */
static void accept(struct judgement *judgement)
{
    const struct gm_gate *gate = judgement->gate;
    for (size_t i = 0; i < judgement->issues.count; i++) {
        struct gm_issue *issue = &judgement->issues.entries[i];
        const struct gm_baseline_entry *entry = gm_baseline_find(&gate->baseline, issue);
        if (issue->rule != GM_NONE && gm_rule_holds(&judgement->rules.rules[issue->rule]))
            issue->known = GM_ISSUE_SUPPRESSED;
        else if (entry && is_within(gate, entry, issue->bytes))
            issue->known = GM_ISSUE_IN_BASELINE;
    }
}

/* ---- the page -------------------------------------------------------------------------------- */

static void print_result(struct judgement *judgement, bool good, const char *what, const char *text)
{
    struct gm_page *page = judgement->view->page;
    gm_page_print(page, good ? GM_GOOD : GM_BAD, "  %-4s", good ? "ok" : "FAIL");
    gm_page_print(page, GM_PLAIN, "  %-16s %s\n", what, text);
    judgement->good &= good;
}

/* A budget has no place: it is an issue of its own for the other formats. */
static void judge_budget(struct judgement *judgement, const char *code, const char *what,
                         int device, int64_t bytes, uint64_t allowed)
{
    char text[128], sentence[256];
    bool good = bytes <= gm_amount(allowed);
    snprintf(text, sizeof(text), "%s, allowed %s", BYTES(bytes), SIZE(allowed));
    print_result(judgement, good, what, text);
    if (good)
        return;
    snprintf(sentence, sizeof(sentence), "%s: %s.", what, text);
    struct gm_issue issue = {.level = GM_ISSUE_FAILURE,
                             .device = device,
                             .bytes = bytes,
                             .code = (char *)code,
                             .message = sentence,
                             .rule = GM_NONE,
                             .trace = (char *)judgement->view->run->path};
    gm_issues_add(&judgement->issues, &issue);
}

static void judge_leaks(struct judgement *judgement)
{
    const struct gm_gate *gate = judgement->gate;
    const struct gm_view *view = judgement->view;
    const struct gm_model_run *run = view->run;
    struct gm_model_living leaked = {0};
    bool fails = is_in_list(gate->fail_on, "leak"), one_is_larger = false;
    for (size_t i = 0; i < judgement->issues.count; i++) {
        const struct gm_issue *issue = &judgement->issues.entries[i];
        if (issue->known != GM_ISSUE_NEW || strcmp(issue->code, "leak") != 0)
            continue;
        leaked.bytes += issue->bytes;
        leaked.count += issue->count;
        one_is_larger |= issue->bytes > gm_amount(gate->max_leak_per_place);
    }
    bool good = (leaked.bytes <= gm_amount(gate->max_leak) && !one_is_larger) || !fails;
    char text[160];
    snprintf(text, sizeof(text), "%s in %s allocation%s, allowed %s", BYTES(leaked.bytes),
             NUMBER(leaked.count), gm_plural((uint64_t)leaked.count), SIZE(gate->max_leak));
    print_result(judgement, good, "leaks", text);
    if (one_is_larger && !good)
        gm_page_print(view->page, GM_BAD, "        from one place more than %s\n",
                      SIZE(gate->max_leak_per_place));
    if (!good)
        gm_leaks_text(view, GM_LEAK, GM_LEAKS_ALL);
    for (size_t i = 0; good && i < judgement->issues.count; i++) {
        struct gm_issue *issue = &judgement->issues.entries[i];
        if (strcmp(issue->code, "leak") == 0 && issue->level == GM_ISSUE_FAILURE)
            issue->level = GM_ISSUE_NOTE; /* the budget allows it */
    }
    for (unsigned leak_class = GM_LEAK_LATE; leak_class < GM_LEAK_CLASSES; leak_class++) {
        const char *name = gm_leak_class_name(leak_class);
        int64_t bytes = 0, count = 0;
        for (size_t i = 0; i < judgement->issues.count; i++) {
            const struct gm_issue *issue = &judgement->issues.entries[i];
            if (issue->known == GM_ISSUE_NEW && strcmp(issue->code, name) == 0) {
                bytes += issue->bytes;
                count += issue->count;
            }
        }
        enum gm_issue_level level = level_of(gate, name, GM_SEVERITY_WARNING);
        snprintf(text, sizeof(text), "%s in %s allocation%s", BYTES(bytes), NUMBER(count),
                 gm_plural((uint64_t)count));
        if (count && level == GM_ISSUE_FAILURE) {
            print_result(judgement, false, name, text);
            gm_leaks_text(view, leak_class, GM_LEAKS_ALL);
        } else if (run->leaked_count[leak_class]) {
            gm_page_print(view->page, GM_DIM, "  %s  %-16s %s\n",
                          level == GM_ISSUE_WARNING ? "warn" : "note", name, text);
        }
    }
}

static void judge_budgets(struct judgement *judgement)
{
    const struct gm_gate *gate = judgement->gate;
    const struct gm_model_run *run = judgement->view->run;
    char what[48];
    for (size_t i = 0; i < gate->limit_count; i++)
        for (size_t at = 0; at < run->device_count; at++) {
            const struct gm_model_device *device = &run->devices[at];
            const struct gm_gate_limit *limit = &gate->limits[i];
            if (!device->seen || (limit->device >= 0 && limit->device != device->id))
                continue;
            snprintf(what, sizeof(what), "peak, device %d", device->id);
            judge_budget(judgement, "max-peak", what, device->id, device->all.peak, limit->bytes);
        }
    for (size_t at = 0; gate->max_residual != UINT64_MAX && at < run->device_count; at++) {
        const struct gm_model_device *device = &run->devices[at];
        snprintf(what, sizeof(what), "beside, device %d", device->id);
        if (device->residuals)
            judge_budget(judgement, "max-residual", what, device->id,
                         gm_amount(device->largest.bytes), gate->max_residual);
    }
    if (gate->max_pinned != UINT64_MAX) {
        const struct gm_model_moment *moment = gm_model_moment(run, run->pinned_peak);
        judge_budget(judgement, "max-pinned", "pinned", -1, moment ? moment->bytes : 0,
                     gate->max_pinned);
    }
    for (size_t i = 0; gate->max_unused != UINT64_MAX && i < run->pool_count; i++) {
        const struct gm_model_pool *pool = &run->pools[i];
        snprintf(what, sizeof(what), "unused, device %d", pool->device);
        judge_budget(judgement, "max-unused", what, pool->device, pool->reserved_peak - pool->peak,
                     gate->max_unused);
    }
    if (gate->max_growth != UINT64_MAX) {
        uint64_t bytes = 0;
        for (size_t i = 0; i < run->growing_count; i++)
            bytes += gm_model_growth(&run->growing[i]);
        bool was_good = judgement->good;
        judgement->good = true;
        judge_budget(judgement, "max-growth", "growth", -1, gm_amount(bytes), gate->max_growth);
        if (!judgement->good)
            gm_growth_text(judgement->view);
        judgement->good &= was_good;
    }
}

static void judge_findings(struct judgement *judgement)
{
    const struct gm_view *view = judgement->view;
    for (size_t i = 0; i < view->run->finding_count; i++) {
        const struct gm_issue *issue = &judgement->issues.entries[judgement->of_finding[i]];
        bool fails = issue->level == GM_ISSUE_FAILURE && issue->known == GM_ISSUE_NEW;
        if (issue->known == GM_ISSUE_NEW)
            gm_finding_note(view, i, fails ? GM_BAD : GM_DIM,
                            fails                              ? "FAIL"
                            : issue->level == GM_ISSUE_WARNING ? "warn"
                                                               : "note");
        judgement->good &= !fails;
    }
}

static void print_accepted(const struct judgement *judgement)
{
    struct gm_page *page = judgement->view->page;
    int64_t bytes = 0, count = 0;
    for (size_t i = 0; i < judgement->rules.count; i++) {
        const struct gm_rule *rule = &judgement->rules.rules[i];
        if (!rule->used_issues)
            continue;
        bool holds = gm_rule_holds(rule);
        gm_page_print(page, holds ? GM_DIM : GM_BAD, "  %s  %s of rule '%.60s'\n",
                      holds ? "note" : "FAIL", BYTES(rule->used_bytes), rule->name);
        if (!holds)
            gm_page_paragraph(page, GM_BAD, 8,
                              "It accepts %s bytes in %s allocations at most, and with more "
                              "nothing.",
                              rule->bytes == INT64_MAX ? "any" : NUMBER(rule->bytes),
                              rule->count == INT64_MAX ? "any" : NUMBER(rule->count));
    }
    for (size_t i = 0; i < judgement->issues.count; i++)
        if (judgement->issues.entries[i].known == GM_ISSUE_IN_BASELINE) {
            bytes += judgement->issues.entries[i].bytes;
            count++;
        }
    if (count)
        gm_page_print(page, GM_DIM, "  note  %-16s %s in %s place%s\n", "in the baseline",
                      BYTES(bytes), NUMBER(count), gm_plural((uint64_t)count));
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* Peaks and growth are of all the history, of which a flight trace may have the end alone. */
static bool has_history(const struct gm_gate *gate, const struct gm_view *view)
{
    bool matters = gate->limit_count != 0 || gate->max_growth != UINT64_MAX ||
                   gate->max_pinned != UINT64_MAX || gate->max_unused != UINT64_MAX ||
                   gate->max_residual != UINT64_MAX;
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

static void judge(const struct gm_gate *gate, const struct gm_view *view,
                  struct gm_gate_outcome *outcome)
{
    struct judgement judgement = {
        .gate = gate, .view = view, .rules = gate->suppressions, .good = true};
    collect_leaks(&judgement);
    collect_findings(&judgement);
    accept(&judgement);
    judge_leaks(&judgement);
    judge_budgets(&judgement);
    judge_findings(&judgement);
    print_accepted(&judgement);
    outcome->findings |= !judgement.good;
    for (size_t i = 0; gate->channel && i < judgement.issues.count; i++)
        gm_issue_write(gate->channel, &judgement.issues.entries[i]);
    free(judgement.of_finding);
    gm_issues_free(&judgement.issues);
}

void gm_gate_judge(const struct gm_gate *gate, const struct gm_view *view,
                   struct gm_gate_outcome *outcome)
{
    const struct gm_model_run *run = view->run;
    bool has_events = run->verdict.state != GM_VERDICT_NOTHING;
    outcome->anything |= has_events;
    gm_notes_text(view, "note: ");
    gm_losses_text(view);
    if (run->is_recorded && !run->complete && !gate->judge_cut)
        gm_page_paragraph(view->page, GM_BAD, 2,
                          "FAIL  What is missing could be a leak. --on-cut judge takes what is "
                          "there.");
    if (!run->is_recorded || (!run->complete && !gate->judge_cut) || !has_history(gate, view) ||
        (has_events && !has_samples(gate, view))) {
        outcome->unreadable = true;
    } else if (!has_events) {
        gm_page_print(view->page, GM_DIM, "  no CUDA memory call was seen\n");
        gm_bypass_text(view, 2);
    } else {
        judge(gate, view, outcome);
    }
}
