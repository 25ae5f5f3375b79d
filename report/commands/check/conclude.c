/* See check.h. */
#include "base/memory.h"
#include "commands/check/check.h"
#include "commands/command.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- all traces ------------------------------------------------------------------------------ */

/* What counts of all: one that failed or was not judged, and why. */
struct conclusion {
    bool unreadable, findings, anything;
    uint64_t limits_met;
    unsigned budgets_met;
    const struct gm_gate_trace *failed, *not_judged; /* the first; NULL */
    size_t failed_count, not_judged_count;
};

static struct conclusion conclude_traces(const struct gm_check *check)
{
    struct conclusion all = {0};
    for (size_t i = 0; i < check->trace_count; i++) {
        const struct gm_gate_outcome *one = &check->traces[i].outcome;
        all.anything |= one->anything;
        all.limits_met |= one->limits_met;
        all.budgets_met |= one->budgets_met;
        all.unreadable |= one->unreadable;
        all.findings |= one->findings;
        if (one->unreadable && !all.not_judged_count++)
            all.not_judged = &check->traces[i];
        if (one->findings && !all.failed_count++)
            all.failed = &check->traces[i];
    }
    return all;
}

/* "failed: run.trace: leaks: 12.0 MiB ..., allowed 0 B (and 2 more traces)". The caller frees. */
static char *sentence(const char *word, const struct gm_gate_trace *trace, size_t count)
{
    char more[48] = "", *text = NULL;
    const char *path = trace->is_kept ? trace->path : gm_name_behind_slash(trace->path);
    char *clean = gm_clean_copy((struct gm_text){path, strlen(path)});
    if (count > 1)
        snprintf(more, sizeof(more), " (and %zu more trace%s)", count - 1, count == 2 ? "" : "s");
    if (asprintf(&text, "%s: %s: %s%s%s", word, clean, trace->outcome.reason, more,
                 trace->is_kept ? "" : " (-o keeps traces)") < 0)
        text = gm_copy_text(word);
    free(clean);
    return text;
}

/* What a limit of peaks is of, that no trace had; NULL: some trace had it. */
static char *unmet_limit(const struct gm_gate_limit *limit)
{
    static const char *const names[] = {
        [GM_LIMIT_DEVICE] = "no trace knows of device",
        [GM_LIMIT_ALL] = "no trace has samples, which take NVML (GPUMEM_NVML=1), of",
        [GM_LIMIT_RANK] = "no trace is of rank",
        [GM_LIMIT_PHASE] = "no trace has the phase",
        [GM_LIMIT_CATEGORY] = "no trace has blocks of PyTorch's pools, so no category"};
    char *text = NULL, number[24];
    bool is_device = limit->of == GM_LIMIT_DEVICE;
    snprintf(number, sizeof(number), "%" PRId64, is_device ? limit->device : limit->rank);
    const char *which = limit->of == GM_LIMIT_ALL        ? "all"
                        : limit->of == GM_LIMIT_PHASE    ? limit->phase
                        : limit->of == GM_LIMIT_CATEGORY ? gm_category_name(limit->category)
                                                         : number;
    if (asprintf(&text, "not judged: --max-peak: %s '%s'", names[limit->of], which) < 0)
        text = gm_copy_text("not judged");
    gm_clean_text(text);
    return text;
}

/* A budget that no trace has anything for was not observed: that is no pass. The line that says so, for the
 * caller to free; NULL: there is none. */
static char *unmet_budget(const struct gm_gate *gate, const struct conclusion *all)
{
    const struct {
        enum gm_gate_budget budget;
        uint64_t allowed;
        const char *why;
    } budgets[] = {
        {GM_BUDGET_UNUSED, gate->max_unused, "no trace has a framework's pool"},
        {GM_BUDGET_GROWTH, gate->max_growth, "no trace has marks enough (six of a name)"},
        {GM_BUDGET_ROUND_GROWTH, gate->max_round_growth,
         "no trace has rounds: neither marks nor a line that allocates again and again"},
    };
    for (size_t i = 0; i < gate->limit_count; i++)
        if (!(all->limits_met >> i & 1))
            return unmet_limit(&gate->limits[i]);
    for (size_t i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++) {
        char *text = NULL;
        if (budgets[i].allowed == UINT64_MAX || (all->budgets_met >> budgets[i].budget & 1))
            continue;
        if (asprintf(&text, "not judged: --%s: %s", gm_gate_budget_code(budgets[i].budget),
                     budgets[i].why) < 0)
            text = gm_copy_text("not judged");
        return text;
    }
    return NULL;
}

/* The last line, in memory of the caller's, and the code that it stands for. */
static char *conclusion_of(const struct gm_check *check, const struct conclusion *all, int *code)
{
    char *unmet = all->anything ? unmet_budget(&check->gate, all) : NULL;
    *code = GM_EXIT_UNREADABLE;
    if (all->not_judged) {
        free(unmet);
        return sentence("not judged", all->not_judged, all->not_judged_count);
    }
    if (all->unreadable)
        return free(unmet), gm_copy_text("not judged: a trace cannot be read");
    if (unmet)
        return unmet;
    if (!all->anything && !check->gate.allow_empty) {
        *code = GM_EXIT_NOTHING;
        return gm_copy_text("not judged: nothing was recorded (--allow-empty passes that)");
    }
    if (all->findings && !check->updates_baseline) {
        *code = GM_EXIT_FINDINGS;
        return sentence("failed", all->failed, all->failed_count);
    }
    *code = GM_EXIT_FINE;
    return gm_copy_text("passed");
}

static void read_issues(struct gm_check *check, struct gm_issues *issues)
{
    struct gm_issue issue;
    bool is_back = fseek(check->gate.channel, 0, SEEK_SET) == 0;
    while (is_back && gm_issue_read(check->gate.channel, &issue)) {
        gm_issues_add(issues, &issue);
        gm_issue_free(&issue);
    }
}

/* The rules, with what they matched in what several traces have together. */
static void match_rules(struct gm_suppressions *rules, const struct gm_issues *issues)
{
    for (size_t i = 0; i < rules->count; i++)
        rules->rules[i].used_bytes = rules->rules[i].used_count = rules->rules[i].used_issues = 0;
    for (size_t i = 0; i < issues->count; i++)
        if (issues->entries[i].rule < rules->count) {
            struct gm_rule *rule = &rules->rules[issues->entries[i].rule];
            rule->used_bytes += issues->entries[i].bytes;
            rule->used_count += issues->entries[i].count;
            rule->used_issues++;
        }
}

/* ---- repeats --------------------------------------------------------------------------------- */

static bool is_same_role(const struct gm_gate_outcome *a, const struct gm_gate_outcome *b)
{
    return a->rank == b->rank && strcmp(a->program, b->program) == 0;
}

/* The traces of one rank and program, as repeats. */
struct role {
    struct gm_gate_repeat *entries;
    struct gm_gate_repeats_of all;
};

/* Processes that have the same id of a run are of one run; one without an id is a run. Runs that lack this
 * rank or program do not count: what was not there was not seen to be sound. */
static struct role role_of(const struct gm_check *check, const struct gm_issues *issues,
                           size_t first)
{
    const struct gm_gate_trace *traces = check->traces;
    struct role role = {.entries = gm_allocate(check->trace_count, sizeof(*role.entries))};
    size_t issue = 0;
    for (size_t i = 0; i < check->trace_count; issue += traces[i++].outcome.issue_count) {
        const struct gm_gate_outcome *outcome = &traces[i].outcome;
        size_t before = 0;
        if (!is_same_role(outcome, &traces[first].outcome))
            continue;
        while (before < role.all.count &&
               (!*outcome->run_id ||
                strcmp(role.entries[before].outcome->run_id, outcome->run_id) != 0))
            before++;
        bool is_new = before == role.all.count;
        role.entries[role.all.count++] = (struct gm_gate_repeat){
            outcome, issues->entries ? issues->entries + issue : NULL, outcome->issue_count,
            is_new ? role.all.run_count : role.entries[before].run};
        role.all.run_count += is_new;
    }
    role.all.entries = role.entries;
    return role;
}

/* "median of 3 traces, rank 1". The caller frees it. */
static char *name_role(const struct gm_check *check, const struct role *role)
{
    const struct gm_gate_outcome *outcome = role->entries[0].outcome;
    bool has_ranks = false, has_programs = false;
    char rank[32] = "", *name;
    for (size_t i = 0; i < check->trace_count; i++) {
        has_ranks |= check->traces[i].outcome.rank != outcome->rank;
        has_programs |= strcmp(check->traces[i].outcome.program, outcome->program) != 0;
    }
    if (has_ranks && outcome->rank >= 0)
        snprintf(rank, sizeof(rank), ", rank %" PRId64, outcome->rank);
    if (asprintf(&name, "%s of %zu %s%s%s%s",
                 check->gate.repeats == GM_REPEATS_MEDIAN ? "median" : "minimum",
                 role->all.run_count, role->all.run_count == role->all.count ? "traces" : "runs",
                 rank, has_programs ? ", " : "", has_programs ? outcome->program : "") < 0)
        name = gm_copy_text("repeats");
    return name;
}

/* What the repeats of a rank and program come to, judged as one trace. Adds its issues to `judged`. */
static struct gm_gate_trace judge_role(struct gm_check *check, const struct role *role,
                                       struct gm_issues *judged)
{
    struct gm_page page = {
        .out = stdout, .colour = check->gate.colour, .columns = check->gate.columns};
    struct gm_gate_trace trace = {.path = name_role(check, role), .is_kept = true};
    struct gm_issues united = {0};
    gm_gate_unite(&check->gate, &role->all, &united, &trace.outcome);
    match_rules(&check->gate.suppressions, &united);
    gm_page_print(&page, GM_BOLD, "%s\n", trace.path);
    gm_gate_decide(&check->gate, &page, NULL, &check->gate.suppressions, &united, &trace.outcome);
    for (size_t i = 0; i < united.count; i++) {
        struct gm_issue issue = united.entries[i];
        issue.trace = (char *)trace.path;
        gm_issues_add(judged, &issue);
    }
    gm_issues_free(&united);
    return trace;
}

/* Traces that repeat a run become one for each rank and program, with the median or the minimum of
 * what they have. */
static void unite_repeats(struct gm_check *check, struct gm_issues *issues)
{
    struct gm_gate_trace *united = gm_allocate(check->trace_count, sizeof(*united));
    struct gm_issues judged = {0};
    size_t count = 0;
    for (size_t i = 0; i < check->trace_count; i++) {
        size_t first = 0;
        while (!is_same_role(&check->traces[first].outcome, &check->traces[i].outcome))
            first++;
        if (first != i)
            continue;
        struct role role = role_of(check, issues, i);
        united[count++] = judge_role(check, &role, &judged);
        free(role.entries);
    }
    for (size_t i = 0; i < check->trace_count; i++)
        free((char *)check->traces[i].path);
    gm_issues_free(issues);
    free(check->traces);
    *issues = judged;
    check->traces = united;
    check->trace_capacity = check->trace_count;
    check->trace_count = count;
}

/* ---- rules, the baseline --------------------------------------------------------------------- */

/* Rules that matched nothing in any trace, and those that are over: they want to be looked at. */
static void list_rules(const struct gm_check *check, const struct gm_issues *issues)
{
    const struct gm_suppressions *rules = &check->gate.suppressions;
    bool *used = gm_allocate(rules->count + 1, sizeof(*used));
    for (size_t i = 0; i < issues->count; i++)
        if (issues->entries[i].rule < rules->count)
            used[issues->entries[i].rule] = true;
    for (size_t i = 0; i < rules->count; i++)
        if (rules->rules[i].expired)
            printf("rule '%s' expired, and accepts nothing\n", rules->rules[i].name);
        else if (!used[i] && !rules->rules[i].is_built_in)
            printf("rule '%s' matched nothing\n", rules->rules[i].name);
    free(used);
}

static bool write_baseline(const struct gm_check *check, const struct gm_issues *issues)
{
    struct gm_baseline baseline = {0};
    gm_baseline_add_issues(&baseline, issues);
    for (size_t i = 0; i < check->trace_count; i++) {
        const struct gm_gate_outcome *outcome = &check->traces[i].outcome;
        for (size_t at = 0; at < outcome->figure_count; at++) {
            const struct gm_gate_figure *figure = &outcome->figures[at];
            if (figure->budget == GM_BUDGET_PEAK ||
                (figure->budget == GM_BUDGET_PINNED && figure->bytes))
                gm_baseline_add_peak(&baseline, figure->rank, figure->device, figure->bytes);
        }
    }
    bool is_written = gm_baseline_write(check->baseline, &baseline);
    gm_baseline_free(&baseline);
    return is_written;
}

/* Formats, rules that were made, the baseline. False if one could not be written. */
static bool write_results(const struct gm_check *check, struct gm_gate_result *result)
{
    bool is_written = true;
    for (size_t i = 0; i < check->format_count; i++)
        is_written &= gm_format_write(check->formats[i], result);
    if (check->prints_rules && result->code == GM_EXIT_FINDINGS) {
        putchar('\n');
        gm_rules_write(stdout, result->issues);
    }
    if (check->updates_baseline && result->code == GM_EXIT_FINE) {
        is_written &= write_baseline(check, result->issues);
        result->conclusion = "baseline written";
    }
    return is_written;
}

/* The exit code of the process. What fails the gate comes before a command that failed only if its
 * code was asked for: a script that runs the command under the gate tests for the command's codes. */
static int exit_code_of(const struct gm_check *check, int code, int command_code)
{
    if (command_code && !(check->asks_error_code && code == GM_EXIT_FINDINGS))
        return command_code;
    return code == GM_EXIT_FINDINGS ? check->error_code : code;
}

int gm_check_conclude(struct gm_check *check, int found, int command_code)
{
    struct gm_page page = {
        .out = stdout, .colour = check->gate.colour, .columns = check->gate.columns};
    struct gm_issues issues = {0};
    struct conclusion all = conclude_traces(check);
    read_issues(check, &issues);
    if (check->gate.repeats != GM_REPEATS_NONE && check->trace_count && !all.unreadable) {
        unite_repeats(check, &issues);
        all = conclude_traces(check);
    }
    all.unreadable |= found != GM_EXIT_FINE && found != GM_EXIT_NOTHING;
    int code;
    char *conclusion = conclusion_of(check, &all, &code);
    bool is_silent = check->trace_count == 0 && found != GM_EXIT_FINE;
    code = is_silent ? found : code;
    struct gm_gate_result result = {.traces = check->traces,
                                    .trace_count = check->trace_count,
                                    .issues = &issues,
                                    .conclusion = conclusion,
                                    .code = code,
                                    .exit_code = exit_code_of(check, code, command_code)};
    if (!is_silent)
        list_rules(check, &issues);
    bool is_written = write_results(check, &result);
    if (!is_silent)
        gm_page_print(&page, result.code ? GM_BAD : GM_GOOD, "%s\n", result.conclusion);
    free(conclusion);
    gm_issues_free(&issues);
    return is_written || command_code ? result.exit_code : GM_EXIT_UNREADABLE;
}
