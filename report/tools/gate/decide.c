/* See gate.h: budgets, rules, the baseline, and the page. */
#include "base/memory.h"
#include "base/size.h"
#include "tools/gate/gate.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define WHAT 64 /* bytes of what a budget is of */

struct decision {
    const struct gm_gate *gate;
    struct gm_page *page;
    const struct gm_view *view; /* NULL: of several traces together */
    const struct gm_suppressions *rules;
    struct gm_issues *issues;
    struct gm_gate_outcome *outcome;
};

/* ---- what is known --------------------------------------------------------------------------- */

static bool is_within(const struct gm_gate *gate, const struct gm_baseline_entry *entry,
                      int64_t bytes)
{
    int64_t share = (int64_t)((__int128)entry->bytes * gate->increase_share / 100); /* GNU */
    int64_t more = gm_amount(gate->increase_bytes);
    more = share > more ? share : more;
    return gate->new_only || bytes <= entry->bytes || bytes - entry->bytes <= more;
}

/* A rule that has matched more than it accepts accepts nothing; the rest may be known. */
static void accept(struct decision *decision)
{
    const struct gm_gate *gate = decision->gate;
    for (size_t i = 0; i < decision->issues->count; i++) {
        struct gm_issue *issue = &decision->issues->entries[i];
        const struct gm_baseline_entry *entry =
            gm_baseline_find(&gate->baseline, issue->fingerprint);
        if (issue->rule != GM_NONE && gm_rule_holds(&decision->rules->rules[issue->rule]))
            issue->known = GM_ISSUE_SUPPRESSED;
        else if (entry && is_within(gate, entry, issue->bytes))
            issue->known = GM_ISSUE_IN_BASELINE;
    }
}

/* ---- the page -------------------------------------------------------------------------------- */

static void print_result(struct decision *decision, bool good, const char *what, const char *text)
{
    gm_page_print(decision->page, good ? GM_GOOD : GM_BAD, "  %-4s", good ? "ok" : "FAIL");
    gm_page_print(decision->page, GM_PLAIN, "  %-*s %s\n",
                  gm_page_columns(decision->page) < GM_PAGE_COLUMNS ? 8 : 16, what, text);
    if (good)
        return;
    decision->outcome->findings = true;
    gm_gate_note_reason(decision->outcome, "%s: %s", what, text);
}

/* A place with its message: what there is of an issue where no single trace is behind it. */
static void print_issue(const struct decision *decision, const struct gm_issue *issue,
                        enum gm_style style, const char *what)
{
    gm_page_print(decision->page, style, "  %s  %s\n", what, issue->code);
    gm_page_paragraph(decision->page, GM_PLAIN, 8, "%s", issue->message);
    if (*issue->function)
        gm_page_paragraph(decision->page, GM_DIM, 8, "in %s%s%s", issue->function,
                          *issue->file ? "  " : "", issue->file);
}

static void print_leaks(const struct decision *decision, enum gm_leak_class leak_class)
{
    uint64_t shown = 0;
    for (unsigned from = GM_LEAK; decision->view && from < GM_LEAK_CLASSES; from++)
        if (gm_gate_class(decision->gate, decision->view->run, from) == leak_class)
            gm_leaks_text(decision->view, from);
    if (decision->view)
        return;
    for (size_t i = 0; i < decision->issues->count && shown < decision->gate->top; i++) {
        const struct gm_issue *issue = &decision->issues->entries[i];
        if (issue->known == GM_ISSUE_NEW && !issue->is_finding &&
            strcmp(issue->code, gm_leak_class_name(leak_class)) == 0) {
            print_issue(decision, issue, GM_BAD, "    ");
            shown++;
        }
    }
}

/* ---- budgets --------------------------------------------------------------------------------- */

/* A budget has no place: it is an issue of its own for the other formats. */
static void fail_budget(struct decision *decision, const char *code, int device, int64_t bytes,
                        const char *what, const char *text)
{
    char sentence[256];
    snprintf(sentence, sizeof(sentence), "%s: %s.", what, text);
    struct gm_issue issue = {.level = GM_ISSUE_FAILURE,
                             .device = device,
                             .bytes = bytes,
                             .fingerprint = gm_issue_fingerprint(code, what),
                             .code = (char *)code,
                             .message = sentence,
                             .rule = GM_NONE,
                             .trace = (char *)(decision->view ? decision->view->run->path : "")};
    gm_issues_add(decision->issues, &issue);
}

static bool judge_budget(struct decision *decision, const struct gm_gate_figure *figure,
                         const char *what, uint64_t allowed)
{
    char text[128];
    bool good = figure->bytes <= gm_amount(allowed);
    snprintf(text, sizeof(text), "%s, allowed %s", BYTES(figure->bytes), SIZE(allowed));
    print_result(decision, good, what, text);
    if (!good)
        fail_budget(decision, gm_gate_budget_code(figure->budget), figure->device, figure->bytes,
                    what, text);
    return good;
}

static const char *name_peak(const struct gm_gate_figure *figure, const char *rest, char text[WHAT])
{
    char rank[32] = "";
    if (figure->rank >= 0)
        snprintf(rank, sizeof(rank), ", rank %" PRId64, figure->rank);
    if (figure->device >= 0)
        snprintf(text, WHAT, "%s, device %d%s", rest, figure->device, rank);
    else
        snprintf(text, WHAT, "%s%s", rest, rank);
    return text;
}

/* Peaks against the limits of devices and ranks. */
static void judge_peak(struct decision *decision, const struct gm_gate_figure *figure)
{
    char what[WHAT];
    for (size_t i = 0; i < decision->gate->limit_count; i++) {
        const struct gm_gate_limit *limit = &decision->gate->limits[i];
        bool is_of_device =
            limit->of == GM_LIMIT_DEVICE && (limit->device < 0 || limit->device == figure->device);
        bool is_of_rank = limit->of == GM_LIMIT_RANK && limit->rank == figure->rank;
        if (is_of_device || is_of_rank)
            judge_budget(decision, figure, name_peak(figure, "peak", what), limit->bytes);
    }
}

static void judge_limit(struct decision *decision, const struct gm_gate_figure *figure)
{
    const struct gm_gate_limit *limit = &decision->gate->limits[figure->limit];
    char what[WHAT];
    if (limit->of == GM_LIMIT_PHASE) {
        char *clean = gm_clean_copy((struct gm_text){limit->phase, strlen(limit->phase)});
        snprintf(what, sizeof(what), "peak, phase %.40s", clean);
        free(clean);
    } else if (limit->of == GM_LIMIT_ALL) {
        snprintf(what, sizeof(what), "peak, all processes");
    } else {
        snprintf(what, sizeof(what), "peak, %s", gm_category_name(limit->category));
    }
    judge_budget(decision, figure, what, limit->bytes);
}

/* Peaks against the baseline: a device that it lacks is told, and not judged. */
static void judge_increase(struct decision *decision, const struct gm_gate_figure *figure)
{
    const struct gm_gate *gate = decision->gate;
    const struct gm_baseline_entry *entry =
        gm_baseline_find(&gate->baseline, gm_peak_fingerprint(figure->rank, figure->device));
    char what[WHAT], text[160];
    if (!gate->has_increase || !gate->has_baseline)
        return;
    name_peak(figure, figure->budget == GM_BUDGET_PINNED ? "pinned" : "peak", what);
    if (!entry) {
        gm_page_print(decision->page, GM_DIM, "  note  %-16s %s, not in the baseline\n", what,
                      BYTES(figure->bytes));
        return;
    }
    bool good = is_within(gate, entry, figure->bytes);
    snprintf(text, sizeof(text), "%s, %s in the baseline", BYTES(figure->bytes),
             BYTES(entry->bytes));
    print_result(decision, good, what, text);
    if (!good)
        fail_budget(decision, "max-increase", figure->device, figure->bytes, what, text);
}

static void judge_figure(struct decision *decision, const struct gm_gate_figure *figure)
{
    const struct gm_gate *gate = decision->gate;
    char what[WHAT];
    switch (figure->budget) {
    case GM_BUDGET_PEAK:
        judge_peak(decision, figure);
        judge_increase(decision, figure);
        break;
    case GM_BUDGET_PINNED:
        if (gate->max_pinned != UINT64_MAX)
            judge_budget(decision, figure, "pinned", gate->max_pinned);
        judge_increase(decision, figure);
        break;
    case GM_BUDGET_LIMIT:
        judge_limit(decision, figure);
        break;
    case GM_BUDGET_UNUSED:
        judge_budget(decision, figure, name_peak(figure, "unused", what), gate->max_unused);
        break;
    case GM_BUDGET_RESIDUAL:
        judge_budget(decision, figure, name_peak(figure, "beside", what), gate->max_residual);
        break;
    case GM_BUDGET_GROWTH:
        if (!judge_budget(decision, figure, "growth", gate->max_growth) && decision->view)
            gm_growth_text(decision->view);
        break;
    case GM_BUDGET_ROUND_GROWTH:
        judge_budget(decision, figure, "growth per round", gate->max_round_growth);
        break;
    }
}

/* ---- leaks ----------------------------------------------------------------------------------- */

static struct gm_model_living sum_of_class(const struct gm_issues *issues, const char *code,
                                           int64_t *largest)
{
    struct gm_model_living sum = {0};
    for (size_t i = 0; i < issues->count; i++) {
        const struct gm_issue *issue = &issues->entries[i];
        if (issue->is_finding || issue->known != GM_ISSUE_NEW || strcmp(issue->code, code) != 0)
            continue;
        sum.bytes += issue->bytes;
        sum.count += issue->count;
        *largest = issue->bytes > *largest ? issue->bytes : *largest;
    }
    return sum;
}

static void judge_leaks(struct decision *decision)
{
    const struct gm_gate *gate = decision->gate;
    int64_t largest = 0;
    struct gm_model_living leaked = sum_of_class(decision->issues, "leak", &largest);
    bool one_is_larger = largest > gm_amount(gate->max_leak_per_place);
    bool good = (leaked.bytes <= gm_amount(gate->max_leak) && !one_is_larger) ||
                !gm_gate_has_code(gate->fail_on, "leak", false);
    char text[160];
    snprintf(text, sizeof(text), "%s in %s allocation%s, allowed %s", BYTES(leaked.bytes),
             NUMBER(leaked.count), gm_plural((uint64_t)leaked.count), SIZE(gate->max_leak));
    print_result(decision, good, "leaks", text);
    if (one_is_larger && !good)
        gm_page_print(decision->page, GM_BAD, "        from one place more than %s\n",
                      SIZE(gate->max_leak_per_place));
    if (!good)
        print_leaks(decision, GM_LEAK);
    for (size_t i = 0; good && i < decision->issues->count; i++) {
        struct gm_issue *issue = &decision->issues->entries[i];
        if (strcmp(issue->code, "leak") == 0 && issue->level == GM_ISSUE_FAILURE)
            issue->level = GM_ISSUE_NOTE; /* the budget allows it */
    }
}

/* Classes that are no leaks by default. */
static void judge_class(struct decision *decision, enum gm_leak_class leak_class)
{
    const char *name = gm_leak_class_name(leak_class);
    int64_t largest = 0;
    struct gm_model_living left = sum_of_class(decision->issues, name, &largest);
    enum gm_issue_level level = gm_gate_class_level(decision->gate, name);
    char text[160];
    snprintf(text, sizeof(text), "%s in %s allocation%s", BYTES(left.bytes), NUMBER(left.count),
             gm_plural((uint64_t)left.count));
    if (left.count && level == GM_ISSUE_FAILURE) {
        print_result(decision, false, name, text);
        print_leaks(decision, leak_class);
    } else if (decision->outcome->leaked[leak_class]) {
        gm_page_print(decision->page, GM_DIM, "  %s  %-16s %s\n",
                      level == GM_ISSUE_WARNING ? "warn" : "note", name, text);
    }
}

/* ---- findings -------------------------------------------------------------------------------- */

/* The finding of the run that an issue is of: the first of its code with its words. */
static size_t finding_of(const struct gm_model_run *run, const struct gm_issue *issue)
{
    size_t i = 0;
    while (i < run->finding_count &&
           !(strcmp(gm_finding_name(run->findings[i].code), issue->code) == 0 &&
             strcmp(run->findings[i].cause, issue->message) == 0))
        i++;
    return i;
}

static void judge_findings(struct decision *decision)
{
    for (size_t i = 0; i < decision->issues->count; i++) {
        const struct gm_issue *issue = &decision->issues->entries[i];
        bool fails = issue->level == GM_ISSUE_FAILURE;
        const char *word = fails ? "FAIL" : issue->level == GM_ISSUE_WARNING ? "warn" : "note";
        enum gm_style style = fails ? GM_BAD : GM_DIM;
        if (!issue->is_finding || issue->known != GM_ISSUE_NEW)
            continue;
        if (decision->view)
            gm_finding_note(decision->view, finding_of(decision->view->run, issue), style, word);
        else
            print_issue(decision, issue, style, word);
        if (!fails)
            continue;
        decision->outcome->findings = true;
        gm_gate_note_reason(decision->outcome, "%s%s%.100s", issue->code,
                            *issue->function ? " in " : "", issue->function);
    }
}

/* ---- what was accepted ----------------------------------------------------------------------- */

static void print_rules(const struct decision *decision)
{
    for (size_t i = 0; i < decision->rules->count; i++) {
        const struct gm_rule *rule = &decision->rules->rules[i];
        if (!rule->used_issues)
            continue;
        bool holds = gm_rule_holds(rule);
        gm_page_print(decision->page, holds ? GM_DIM : GM_BAD, "  %s  %s of %s '%.60s'\n",
                      holds ? "note" : "FAIL", BYTES(rule->used_bytes),
                      rule->is_built_in ? "the built-in rule" : "rule", rule->name);
        if (!holds)
            gm_page_paragraph(decision->page, GM_BAD, 8,
                              "It accepts %s bytes in %s allocations at most, and with more "
                              "nothing.",
                              rule->bytes == INT64_MAX ? "any" : NUMBER(rule->bytes),
                              rule->count == INT64_MAX ? "any" : NUMBER(rule->count));
    }
}

static void print_accepted(const struct decision *decision)
{
    int64_t bytes = 0, count = 0;
    print_rules(decision);
    for (size_t i = 0; i < decision->issues->count; i++)
        if (decision->issues->entries[i].known == GM_ISSUE_IN_BASELINE) {
            bytes += decision->issues->entries[i].bytes;
            count++;
        }
    if (count)
        gm_page_print(decision->page, GM_DIM, "  note  %-16s %s in %s place%s\n", "in the baseline",
                      BYTES(bytes), NUMBER(count), gm_plural((uint64_t)count));
}

void gm_gate_decide(const struct gm_gate *gate, struct gm_page *page, const struct gm_view *view,
                    const struct gm_suppressions *rules, struct gm_issues *issues,
                    struct gm_gate_outcome *outcome)
{
    struct decision decision = {gate, page, view, rules, issues, outcome};
    accept(&decision);
    judge_leaks(&decision);
    for (unsigned leak_class = GM_LEAK_LIVE; leak_class < GM_LEAK_CLASSES; leak_class++)
        judge_class(&decision, leak_class);
    for (size_t i = 0; i < outcome->figure_count; i++)
        judge_figure(&decision, &outcome->figures[i]);
    judge_findings(&decision);
    print_accepted(&decision);
}
