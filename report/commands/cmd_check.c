/* gpumem check: the gate. Judges traces, or runs a command and judges what it left. */
#include "base/memory.h"
#include "base/size.h"
#include "commands/apart.h"
#include "commands/command.h"
#include "commands/session.h"
#include "gate/formats.h"
#include "runs/recording.h"
#include "runs/runs.h"
#include "runs/trace_home.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void print_help(void)
{
    puts("usage: gpumem check [OPTION...] [TRACE...]\n"
         "       gpumem check [OPTION...] -- COMMAND [ARGUMENT...]\n"
         "\n"
         "Fails when memory leaked or a budget was exceeded (docs/gate.md). Without TRACE\n"
         "and COMMAND: all traces of the newest run in this folder.\n"
         "\n"
         "      --max-leak SIZE          bytes that may leak per trace (0)\n"
         "      --max-leak-per-place SIZE\n"
         "                               bytes that may leak from one place (any)\n"
         "      --max-peak [DEVICE:]SIZE largest peak allowed on a device, or on each\n"
         "      --max-pinned SIZE        largest peak of pinned memory\n"
         "      --max-unused SIZE        most that a framework's pool may have reserved\n"
         "                               beyond what was in use\n"
         "      --max-residual SIZE      most that the driver may hold beside it\n"
         "      --max-growth SIZE        bytes that places growing from mark to mark may\n"
         "                               have gained over the last marks (any)\n"
         "      --fail-on LIST           what fails: leak, late, implicit, external,\n"
         "                               cached, codes of findings (docs/findings.md),\n"
         "                               findings, all, none (leak,retained)\n"
         "      --warn-on LIST           what is told as a warning, likewise\n"
         "                               (implicit,external,findings)\n"
         "      --suppressions FILE      rules for what is accepted; may be repeated\n"
         "      --baseline FILE          what is known and has not grown is accepted\n"
         "      --update-baseline        write what there is to the baseline, and pass\n"
         "      --new-only               what is known is accepted though it has grown\n"
         "      --max-increase HOW       how much of what is known may grow: 5% or 64MiB,\n"
         "                               the larger of both if both are given (0)\n"
         "      --format FORMAT=FILE     also write junit, sarif, gitlab or json to FILE,\n"
         "                               or github: annotations; may be repeated\n"
         "      --allow-empty            no CUDA call at all is fine\n"
         "      --on-cut HOW             a trace that is cut, damaged or incomplete, or of\n"
         "                               which the history was overwritten: fail (exit\n"
         "                               code 3) or judge what is there\n"
         "  -n, --top N                  leaks listed per trace (10)\n"
         "  -o, --output PATTERN         keep the traces of COMMAND under this name; see\n"
         "                               gpumem run --help\n"
         "  -h, --help\n"
         "      --version\n"
         "\n"
         "SIZE: 64M, 1.5GiB, ... in units of 1024. Findings fail as warnings or errors,\n"
         "never as notes.\n"
         "\n"
         "Exit codes: 0 passed, 1 failed, 2 wrong usage, 3 a trace is unreadable, cut,\n"
         "damaged or incomplete, 4 nothing was recorded. When COMMAND fails, its own code\n"
         "is returned.");
}

/* ---- judging traces -------------------------------------------------------------------------- */

/* The gate, and what came of all traces. */
struct check {
    struct gm_gate gate;
    const char **formats;
    size_t format_count, format_capacity;
    const char *baseline;
    bool updates_baseline;
    struct gm_gate_trace *traces;
    size_t trace_count, trace_capacity;
};

static void judge_here(const char *path, const void *gate_of, void *outcome_of)
{
    const struct gm_gate *gate = gate_of;
    struct gm_gate_outcome *outcome = outcome_of;
    struct gm_page page = {.out = stdout, .colour = gate->colour};
    struct gm_stacks_options options = {.names = true};
    struct gm_session session;
    bool asks_moments = gate->max_pinned != UINT64_MAX || gate->max_unused != UINT64_MAX;
    if (!gm_session_open(&session, path, &options,
                         GM_NEEDS_FINDINGS | (asks_moments ? GM_NEEDS_MOMENTS : 0u))) {
        outcome->unreadable = true;
        return;
    }
    struct gm_view view = {&page, session.model, &session.model->runs[0], gate->top};
    char *clean = gm_clean_copy((struct gm_text){path, strlen(path)});
    gm_page_print(&page, GM_BOLD, "%s", clean);
    if (view.run->simulated)
        gm_page_print(&page, GM_WARNING, "  SIMULATED device");
    putchar('\n');
    free(clean);
    gm_gate_judge(gate, &view, outcome);
    outcome->unreadable |= !gm_session_close(&session);
    if (gate->channel && fflush(gate->channel) != 0)
        outcome->unreadable = true;
}

static void judge(struct check *check, const char *path)
{
    GM_RESERVE(check->traces, check->trace_capacity, check->trace_count + 1);
    struct gm_gate_trace *trace = &check->traces[check->trace_count++];
    trace->path = gm_copy_text(path);
    bool is_read =
        gm_apart(judge_here, path, &check->gate, &trace->outcome, sizeof(trace->outcome));
    trace->outcome.unreadable |= !is_read;
}

static struct gm_gate_outcome outcome_of_all(const struct check *check)
{
    struct gm_gate_outcome all = {0};
    for (size_t i = 0; i < check->trace_count; i++) {
        const struct gm_gate_outcome *one = &check->traces[i].outcome;
        all.unreadable |= one->unreadable;
        all.findings |= one->findings;
        all.anything |= one->anything;
    }
    return all;
}

/* Rules that matched nothing in any trace, and those that are over: they want to be looked at. */
static void list_rules(const struct check *check, const struct gm_issues *issues)
{
    const struct gm_suppressions *rules = &check->gate.suppressions;
    bool *used = gm_allocate(rules->count + 1, sizeof(*used));
    for (size_t i = 0; i < issues->count; i++)
        if (issues->entries[i].rule < rules->count)
            used[issues->entries[i].rule] = true;
    for (size_t i = 0; i < rules->count; i++)
        if (rules->rules[i].expired)
            printf("rule '%s' expired, and accepts nothing\n", rules->rules[i].name);
        else if (!used[i])
            printf("rule '%s' matched nothing\n", rules->rules[i].name);
    free(used);
}

/* The last line, and the exit code; formats and baseline. `found`: why there is no trace, which was
 * said already; GM_EXIT_FINE. */
static int conclude(struct check *check, struct gm_gate_outcome outcome, int found)
{
    struct gm_page page = {.out = stdout, .colour = check->gate.colour};
    struct gm_gate_result result = {check->traces, check->trace_count, NULL, "passed",
                                    GM_EXIT_FINE};
    struct gm_issues issues = {0};
    struct gm_issue issue;
    bool is_back = fseek(check->gate.channel, 0, SEEK_SET) == 0;
    while (is_back && gm_issue_read(check->gate.channel, &issue)) {
        gm_issues_add(&issues, &issue);
        gm_issue_free(&issue);
    }
    result.issues = &issues;
    if (outcome.unreadable) {
        result.conclusion = "not judged: a trace is unreadable, cut, damaged or incomplete";
        result.code = GM_EXIT_UNREADABLE;
    } else if (!outcome.anything && !check->gate.allow_empty) {
        result.conclusion = "not judged: nothing was recorded (--allow-empty passes that)";
        result.code = GM_EXIT_NOTHING;
    } else if (outcome.findings && !check->updates_baseline) {
        result.conclusion = "failed";
        result.code = GM_EXIT_FINDINGS;
    }
    bool is_silent = check->trace_count == 0 && found != GM_EXIT_FINE;
    if (is_silent)
        result.code = found;
    else
        list_rules(check, &issues);
    bool is_written = true;
    for (size_t i = 0; i < check->format_count; i++)
        is_written &= gm_format_write(check->formats[i], &result);
    if (check->updates_baseline && result.code == GM_EXIT_FINE) {
        is_written &= gm_baseline_write(check->baseline, &issues);
        result.conclusion = "baseline written";
    }
    if (!is_silent)
        gm_page_print(&page, result.code ? GM_BAD : GM_GOOD, "%s\n", result.conclusion);
    gm_issues_free(&issues);
    return is_written ? result.code : GM_EXIT_UNREADABLE;
}

/* ---- a command, or traces -------------------------------------------------------------------- */

/* A pattern in a folder of its own, removed afterwards. */
static char *temporary_pattern(char **folder)
{
    const char *base = getenv("TMPDIR");
    size_t size = strlen(base && *base ? base : "/tmp") + 64;
    char *pattern = gm_allocate(size, 1);
    *folder = gm_allocate(size, 1);
    snprintf(*folder, size, "%s/gpumem-check-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(*folder)) {
        gm_complain("cannot make a temporary folder %s", *folder);
        free(*folder);
        free(pattern);
        *folder = NULL;
        return NULL;
    }
    snprintf(pattern, size, "%s/%%e.%%p.trace", *folder);
    return pattern;
}

static void remove_traces(const struct gm_recording *recording, char *folder)
{
    for (size_t i = 0; i < recording->trace_count; i++)
        gm_remove_trace(recording->traces[i]);
    rmdir(folder);
    free(folder);
}

static int check_command(struct check *check, char **command)
{
    const struct gm_gate *gate = &check->gate;
    char *folder = NULL, *pattern = NULL;
    struct gm_recording recording;
    if (!gate->output && !(pattern = temporary_pattern(&folder)))
        return GM_EXIT_NOT_STARTED;
    if (!gm_recording_begin(&recording, gate->output ? gate->output : pattern)) {
        gm_recording_end(&recording);
        free(pattern);
        return GM_EXIT_NOT_STARTED;
    }
    int code = gm_recording_run(&recording, command);
    gm_recording_find(&recording);
    for (size_t i = 0; i < recording.trace_count; i++)
        judge(check, recording.traces[i]);
    int verdict = conclude(check, outcome_of_all(check), GM_EXIT_FINE);
    if (code)
        gm_complain("the command itself failed with exit code %d", code);
    if (folder)
        remove_traces(&recording, folder);
    gm_recording_end(&recording);
    free(pattern);
    return code ? code : verdict;
}

static int check_traces(struct check *check, char **paths, size_t count)
{
    struct gm_run_traces run;
    int found = gm_run_find(&run, paths, count);
    for (size_t i = 0; i < run.count; i++)
        judge(check, run.paths[i]);
    gm_run_free(&run);
    if (found == GM_EXIT_NOTHING && check->gate.allow_empty)
        found = GM_EXIT_FINE;
    struct gm_gate_outcome outcome = outcome_of_all(check);
    outcome.unreadable |= found != GM_EXIT_FINE && found != GM_EXIT_NOTHING;
    return conclude(check, outcome, found);
}

/* ---- options --------------------------------------------------------------------------------- */

static bool add_limit(struct gm_gate *gate, const char *text)
{
    struct gm_gate_limit limit = {.device = -1};
    const char *colon = strchr(text, ':'), *size = text;
    if (colon) {
        char *end;
        long device = strtol(text, &end, 10);
        if (end != colon || text[0] < '0' || text[0] > '9' || device > INT8_MAX) {
            gm_complain("--max-peak: '%s' does not begin with a device number", text);
            return false;
        }
        limit.device = (int)device;
        size = colon + 1;
    }
    if (!gm_size_parse(size, &limit.bytes)) {
        gm_complain("--max-peak: '%s' is not a size such as 64M or 1.5GiB", size);
        return false;
    }
    GM_RESERVE(gate->limits, gate->limit_capacity, gate->limit_count + 1);
    gate->limits[gate->limit_count++] = limit;
    return true;
}

enum {
    MAX_LEAK = GM_OPTION_FIRST,
    MAX_LEAK_PER_PLACE,
    MAX_PEAK,
    MAX_PINNED,
    MAX_UNUSED,
    MAX_RESIDUAL,
    MAX_GROWTH,
    FAIL_ON,
    WARN_ON,
    SUPPRESSIONS,
    BASELINE,
    UPDATE_BASELINE,
    NEW_ONLY,
    MAX_INCREASE,
    FORMAT,
    ALLOW_EMPTY,
    ON_CUT
};

static bool take_size(const char *name, uint64_t *size)
{
    if (gm_size_parse(optarg, size))
        return true;
    gm_complain("--%s: '%s' is not a size such as 64M or 1.5GiB", name, optarg);
    return false;
}

/* "5%", or a size. */
static bool take_increase(struct gm_gate *gate)
{
    char *end;
    unsigned long share = strtoul(optarg, &end, 10);
    if (optarg[0] < '0' || optarg[0] > '9' || strcmp(end, "%") != 0)
        return take_size("max-increase", &gate->increase_bytes);
    gate->increase_share = share < 1000000 ? (unsigned)share : 1000000;
    return true;
}

static uint32_t today(void)
{
    time_t now = time(NULL);
    struct tm day;
    if (!gmtime_r(&now, &day))
        return 0;
    return (uint32_t)((day.tm_year + 1900) * 10000 + (day.tm_mon + 1) * 100 + day.tm_mday);
}

/* Takes one option. False after a complaint. */
static bool take_option(struct check *check, int option)
{
    struct gm_gate *gate = &check->gate;
    switch (option) {
    case MAX_LEAK:
        return take_size("max-leak", &gate->max_leak);
    case MAX_LEAK_PER_PLACE:
        return take_size("max-leak-per-place", &gate->max_leak_per_place);
    case MAX_PINNED:
        return take_size("max-pinned", &gate->max_pinned);
    case MAX_UNUSED:
        return take_size("max-unused", &gate->max_unused);
    case MAX_RESIDUAL:
        return take_size("max-residual", &gate->max_residual);
    case MAX_GROWTH:
        return take_size("max-growth", &gate->max_growth);
    case MAX_PEAK:
        return add_limit(gate, optarg);
    case FAIL_ON:
        gate->fail_on = optarg;
        return gm_gate_codes_are_known("--fail-on", optarg);
    case WARN_ON:
        gate->warn_on = optarg;
        return gm_gate_codes_are_known("--warn-on", optarg);
    case SUPPRESSIONS:
        return gm_suppressions_load(&gate->suppressions, optarg, today());
    case BASELINE:
        check->baseline = optarg;
        return true;
    case UPDATE_BASELINE:
        check->updates_baseline = true;
        return true;
    case NEW_ONLY:
        gate->new_only = true;
        return true;
    case MAX_INCREASE:
        return take_increase(gate);
    case FORMAT:
        GM_RESERVE(check->formats, check->format_capacity, check->format_count + 1);
        check->formats[check->format_count++] = optarg;
        return gm_format_is_known(optarg);
    case ALLOW_EMPTY:
        gate->allow_empty = true;
        return true;
    case ON_CUT:
        gate->judge_cut = strcmp(optarg, "judge") == 0;
        if (gate->judge_cut || strcmp(optarg, "fail") == 0)
            return true;
        gm_complain("--on-cut: '%s' is neither fail nor judge", optarg);
        return false;
    case 'n':
        return gm_parse_count("--top", optarg, &gate->top);
    case 'o':
        gate->output = optarg;
        return true;
    default:
        return false;
    }
}

/* What options ask for together. */
static bool prepare(struct check *check)
{
    struct gm_gate *gate = &check->gate;
    if (!check->baseline && (check->updates_baseline || gate->new_only)) {
        gm_complain("%s: needs --baseline FILE",
                    gate->new_only ? "--new-only" : "--update-baseline");
        return false;
    }
    if (check->baseline && !check->updates_baseline &&
        !gm_baseline_load(&gate->baseline, check->baseline, false))
        return false;
    int channel = memfd_create("gpumem-issues", MFD_CLOEXEC);
    gate->channel = channel < 0 ? NULL : fdopen(channel, "w+");
    if (!gate->channel)
        gm_complain("no memory for the issues: %s", strerror(errno));
    return gate->channel != NULL;
}

static int check(struct check *check, int count, char **arguments)
{
    static const struct option options[] = {
        {"max-leak", required_argument, NULL, MAX_LEAK},
        {"max-leak-per-place", required_argument, NULL, MAX_LEAK_PER_PLACE},
        {"max-peak", required_argument, NULL, MAX_PEAK},
        {"max-pinned", required_argument, NULL, MAX_PINNED},
        {"max-unused", required_argument, NULL, MAX_UNUSED},
        {"max-residual", required_argument, NULL, MAX_RESIDUAL},
        {"max-growth", required_argument, NULL, MAX_GROWTH},
        {"fail-on", required_argument, NULL, FAIL_ON},
        {"warn-on", required_argument, NULL, WARN_ON},
        {"suppressions", required_argument, NULL, SUPPRESSIONS},
        {"baseline", required_argument, NULL, BASELINE},
        {"update-baseline", no_argument, NULL, UPDATE_BASELINE},
        {"new-only", no_argument, NULL, NEW_ONLY},
        {"max-increase", required_argument, NULL, MAX_INCREASE},
        {"format", required_argument, NULL, FORMAT},
        {"allow-empty", no_argument, NULL, ALLOW_EMPTY},
        {"on-cut", required_argument, NULL, ON_CUT},
        {"top", required_argument, NULL, 'n'},
        {"output", required_argument, NULL, 'o'},
        GM_COMMON_OPTIONS};
    /* Behind "--" stands a command, whose arguments are none of ours. */
    int own = 1;
    while (own < count && strcmp(arguments[own], "--") != 0)
        own++;
    for (int option; (option = gm_next_option(own, arguments, ":n:o:h", options)) != -1;) {
        if (option == GM_OPTION_HELP || option == GM_OPTION_VERSION) {
            if (option == GM_OPTION_HELP)
                print_help();
            else
                gm_print_version();
            return GM_EXIT_FINE;
        }
        if (!take_option(check, option))
            return GM_EXIT_USAGE;
    }
    if (own + 1 == count)
        return gm_complain("check: no command behind --");
    if (own < count && optind < own)
        return gm_complain("check: either traces or a command, not both: '%s'", arguments[optind]);
    if (!prepare(check))
        return GM_EXIT_USAGE;
    return own == count ? check_traces(check, arguments + optind, (size_t)(count - optind))
                        : check_command(check, arguments + own + 1);
}

int gm_cmd_check(int count, char **arguments)
{
    struct check all = {.gate = {.fail_on = "leak,retained",
                                 .warn_on = "implicit,external,findings",
                                 .max_leak_per_place = UINT64_MAX,
                                 .max_growth = UINT64_MAX,
                                 .max_pinned = UINT64_MAX,
                                 .max_unused = UINT64_MAX,
                                 .max_residual = UINT64_MAX,
                                 .top = 10,
                                 .colour = gm_wants_colour()}};
    int code = check(&all, count, arguments);
    for (size_t i = 0; i < all.trace_count; i++)
        free((char *)all.traces[i].path);
    if (all.gate.channel)
        fclose(all.gate.channel);
    gm_suppressions_free(&all.gate.suppressions);
    gm_baseline_free(&all.gate.baseline);
    free(all.gate.limits);
    free(all.formats);
    free(all.traces);
    return code;
}
