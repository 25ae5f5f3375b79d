/* See check.h. */
#include "base/memory.h"
#include "base/size.h"
#include "commands/check/check.h"
#include "commands/command.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum {
    MAX_LEAK = GM_OPTION_FIRST,
    MAX_LEAK_PER_PLACE,
    MAX_PEAK,
    MAX_PINNED,
    MAX_UNUSED,
    MAX_RESIDUAL,
    MAX_GROWTH,
    MAX_ROUND_GROWTH,
    FAIL_ON,
    WARN_ON,
    SUPPRESSIONS,
    GEN_SUPPRESSIONS,
    PRINT_SUPPRESSIONS,
    NO_VENDOR_SUPPRESSIONS,
    BASELINE,
    UPDATE_BASELINE,
    NEW_ONLY,
    MAX_INCREASE,
    REPEATS,
    ERROR_EXITCODE,
    FORMAT,
    ALLOW_EMPTY,
    ON_CUT
};

static const struct gm_option own_options[] = {
    {GM_PROSE, "usage: gpumem check [OPTION...] [TRACE...]\n"
               "       gpumem check [OPTION...] -- COMMAND [ARGUMENT...]\n"
               "\n"
               "Fails when memory leaked or a budget was exceeded (docs/gate.md). Without TRACE\n"
               "and COMMAND: all traces of the newest run in this folder.\n"
               "\n"},
    {MAX_LEAK, "      --max-leak SIZE          bytes that may leak per trace (0)\n"},
    {MAX_LEAK_PER_PLACE,
     "      --max-leak-per-place SIZE\n"
     "                               bytes that may leak from one place (any)\n"},
    {MAX_PEAK, "      --max-peak [WHERE:]SIZE  largest peak allowed on each device, of each\n"
               "                               process by itself; WHERE: a device's number,\n"
               "                               all (each device with all processes on it, as\n"
               "                               NVML tells), rank=N, phase=NAME or category=NAME\n"},
    {MAX_PINNED, "      --max-pinned SIZE        largest peak of pinned memory\n"},
    {MAX_UNUSED, "      --max-unused SIZE        most that a framework's pool may have reserved\n"
                 "                               beyond what was in use\n"},
    {MAX_RESIDUAL, "      --max-residual SIZE      most that the driver may hold beside it\n"},
    {MAX_GROWTH, "      --max-growth SIZE        bytes that places growing from mark to mark may\n"
                 "                               have gained over the last marks (any)\n"},
    {MAX_ROUND_GROWTH,
     "      --max-growth-per-round SIZE\n"
     "                               bytes that may stay from one round to the next\n"},
    {FAIL_ON, "      --fail-on LIST           what fails: leak, late, implicit, external,\n"
              "                               cached, codes of findings (docs/findings.md),\n"
              "                               unbounded (growth shown to have no bound),\n"
              "                               findings, all, none (leak,unbounded)\n"},
    {WARN_ON, "      --warn-on LIST           what is told as a warning, likewise\n"
              "                               (implicit,external,findings)\n"},
    {SUPPRESSIONS, "      --suppressions FILE      rules for what is accepted; may be repeated\n"},
    {GEN_SUPPRESSIONS, "      --gen-suppressions       print rules that accept what failed\n"},
    {PRINT_SUPPRESSIONS, "      --print-suppressions     print the built-in rules, and end\n"},
    {NO_VENDOR_SUPPRESSIONS, "      --no-vendor-suppressions  leave the built-in rules out\n"},
    {BASELINE, "      --baseline FILE          what is known and has not grown is accepted\n"},
    {UPDATE_BASELINE,
     "      --update-baseline        write what there is to the baseline, and pass\n"},
    {NEW_ONLY, "      --new-only               what is known is accepted though it has grown\n"},
    {MAX_INCREASE,
     "      --max-increase HOW       how much of what is known may grow: 5% or 64MiB,\n"
     "                               the larger of both if both are given (0); then\n"
     "                               the peaks in the baseline bound peaks, too\n"},
    {REPEATS, "      --repeats HOW            the traces repeat one run: judge the median or\n"
              "                               the min of each figure\n"},
    {FORMAT, "      --format FORMAT=FILE     also write junit, sarif, gitlab, metrics,\n"
             "                               suppressions or json to FILE, or github:\n"
             "                               annotations; may be repeated\n"},
    {ERROR_EXITCODE,
     "      --error-exitcode N       instead of 1, also where COMMAND fails itself\n"},
    {ALLOW_EMPTY, "      --allow-empty            no CUDA call at all is fine\n"},
    {ON_CUT, "      --on-cut HOW             a trace that is cut, damaged or incomplete, or of\n"
             "                               which the history was overwritten: fail (exit\n"
             "                               code 3) or judge what is there\n"},
    {'n', "  -n, --top N                  rows of each list (10); findings are not counted\n"},
    {'o', "  -o, --output PATTERN         keep the traces of COMMAND under this name; see\n"
          "                               gpumem run --help\n"},
    GM_STACK_OPTIONS,
    GM_COMMON_OPTIONS,
    {GM_PROSE, "\n"
               "SIZE: 64M, 1.5GiB, ... in units of 1024. Findings fail as warnings or errors,\n"
               "never as notes.\n"
               "\n"
               "Exit codes: 0 passed, 1 failed, 2 wrong usage, 3 a trace is unreadable, cut,\n"
               "damaged or incomplete, 4 nothing was recorded. When COMMAND fails, its own code\n"
               "is returned.\n"},
    {GM_PROSE, NULL},
};

/* ---- values ---------------------------------------------------------------------------------- */

static bool parse_option_number(const char *text, size_t size, int64_t max, int64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || *number > max / 10)
            return false;
        *number = *number * 10 + (text[i] - '0');
    }
    return size && *number <= max;
}

static bool parse_category(const char *text, size_t size, enum gm_category *category)
{
    for (unsigned one = 0; one < GM_CATEGORIES; one++)
        if (strlen(gm_category_name(one)) == size &&
            memcmp(gm_category_name(one), text, size) == 0) {
            *category = one;
            return true;
        }
    return false;
}

/* "2", "all", "rank=3", "phase=step", "category=activation": what stands before the last colon. */
static bool parse_where(const char *text, size_t size, struct gm_gate_limit *limit)
{
    int64_t number;
    if (size == 3 && memcmp(text, "all", 3) == 0) {
        limit->of = GM_LIMIT_ALL;
        return true;
    }
    if (size > 5 && memcmp(text, "rank=", 5) == 0) {
        limit->of = GM_LIMIT_RANK;
        return parse_option_number(text + 5, size - 5, INT32_MAX, &limit->rank);
    }
    if (size > 6 && memcmp(text, "phase=", 6) == 0) {
        limit->of = GM_LIMIT_PHASE;
        limit->phase = gm_allocate(size, 1);
        memcpy(limit->phase, text + 6, size - 6);
        return true;
    }
    if (size > 9 && memcmp(text, "category=", 9) == 0) {
        limit->of = GM_LIMIT_CATEGORY;
        return parse_category(text + 9, size - 9, &limit->category);
    }
    if (!parse_option_number(text, size, INT8_MAX, &number))
        return false;
    limit->device = (int)number;
    return true;
}

static bool add_limit(struct gm_gate *gate, const char *text)
{
    struct gm_gate_limit limit = {.device = -1};
    const char *colon = strrchr(text, ':'), *size = colon ? colon + 1 : text;
    bool good = !colon || parse_where(text, (size_t)(colon - text), &limit);
    if (!good)
        gm_complain(
            "--max-peak: '%s' does not begin with a device's number, all, rank=N, phase=NAME "
            "or category=NAME (%s ...)",
            text, gm_category_name(GM_CATEGORY_PARAMETER));
    else if (!(good = gm_size_parse(size, &limit.bytes)))
        gm_complain("--max-peak: '%s' is not a size such as 64M or 1.5GiB", size);
    else if (!(good = gate->limit_count < GM_GATE_LIMITS))
        gm_complain("--max-peak: more than %u of them", GM_GATE_LIMITS);
    if (!good) {
        free(limit.phase);
        return false;
    }
    GM_APPEND(gate->limits, gate->limit_capacity, gate->limit_count, limit);
    return true;
}

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
    gate->has_increase = true;
    if (share && !*end) {
        gm_complain("--max-increase: '%s' of what? Say %s%% or a size such as 64MiB", optarg,
                    optarg);
        return false;
    }
    if (optarg[0] < '0' || optarg[0] > '9' || strcmp(end, "%") != 0)
        return take_size("max-increase", &gate->increase_bytes);
    gate->increase_share = share < 1000000 ? (unsigned)share : 1000000;
    return true;
}

static bool take_repeats(struct gm_gate *gate)
{
    gate->repeats = strcmp(optarg, "median") == 0 ? GM_REPEATS_MEDIAN : GM_REPEATS_MINIMUM;
    if (gate->repeats == GM_REPEATS_MEDIAN || strcmp(optarg, "min") == 0)
        return true;
    gm_complain("--repeats: '%s' is neither median nor min", optarg);
    return false;
}

static bool take_error_code(struct gm_check *check)
{
    uint64_t code;
    if (!gm_parse_count("--error-exitcode", optarg, &code))
        return false;
    check->error_code = code <= 255 ? (int)code : 256;
    check->asks_error_code = true;
    if (code <= 255)
        return true;
    gm_complain("--error-exitcode: '%s' is more than 255", optarg);
    return false;
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
static bool take_check_option(struct gm_check *check, int option)
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
    case MAX_ROUND_GROWTH:
        return take_size("max-growth-per-round", &gate->max_round_growth);
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
    case GEN_SUPPRESSIONS:
        gate->makes_rules = check->prints_rules = true;
        return true;
    case PRINT_SUPPRESSIONS:
        check->prints_vendor_rules = true;
        return true;
    case NO_VENDOR_SUPPRESSIONS:
        check->has_no_vendor_rules = true;
        return true;
    case REPEATS:
        return take_repeats(gate);
    case ERROR_EXITCODE:
        return take_error_code(check);
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
        GM_APPEND(check->formats, check->format_capacity, check->format_count, optarg);
        gate->makes_rules |= gm_format_asks_rules(optarg);
        gate->needs |= gm_format_asks_peaks(optarg) ? GM_NEEDS_MOMENTS : 0u;
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
        return gm_take_stack_option(option, &check->stacks);
    }
}

/* What of the models is asked for. */
static unsigned needs_of(const struct gm_check *check)
{
    const struct gm_gate *gate = &check->gate;
    unsigned needs = GM_NEEDS_FINDINGS;
    if (gate->max_pinned != UINT64_MAX || gate->max_unused != UINT64_MAX ||
        check->updates_baseline || gate->has_increase)
        needs |= GM_NEEDS_MOMENTS;
    for (size_t i = 0; i < gate->limit_count; i++)
        needs |= gate->limits[i].of == GM_LIMIT_PHASE      ? GM_NEEDS_HISTORY
                 : gate->limits[i].of == GM_LIMIT_CATEGORY ? GM_NEEDS_MOMENTS | GM_NEEDS_PURPOSES
                                                           : 0u;
    return needs;
}

int gm_check_take_options(struct gm_check *check, int count, char **arguments, bool *is_over)
{
    *is_over = true;
    for (int option; (option = gm_next_option(count, arguments, own_options)) != -1;)
        if (!take_check_option(check, option))
            return GM_EXIT_USAGE;
    if (check->prints_vendor_rules)
        fputs(gm_vendor_rules, stdout);
    *is_over = check->prints_vendor_rules;
    return GM_EXIT_FINE;
}

/* ---- all together ---------------------------------------------------------------------------- */

/* What options ask for together. */
bool gm_check_prepare(struct gm_check *check)
{
    struct gm_gate *gate = &check->gate;
    if (!check->baseline && (check->updates_baseline || gate->new_only || gate->has_increase)) {
        gm_complain("%s: needs --baseline FILE", gate->new_only            ? "--new-only"
                                                 : check->updates_baseline ? "--update-baseline"
                                                                           : "--max-increase");
        return false;
    }
    if (check->baseline && !check->updates_baseline &&
        !gm_baseline_load(&gate->baseline, check->baseline, false))
        return false;
    gate->has_baseline = check->baseline && !check->updates_baseline;
    if (!check->has_no_vendor_rules)
        gm_suppressions_add_vendor(&gate->suppressions);
    gm_suppressions_finish(&gate->suppressions);
    gate->needs |= needs_of(check);
    int channel = memfd_create("gpumem-issues", MFD_CLOEXEC);
    gate->channel = channel < 0 ? NULL : fdopen(channel, "w+");
    if (!gate->channel)
        gm_complain("no memory for the issues: %s", strerror(errno));
    return gate->channel != NULL;
}

struct gm_check gm_check_default(void)
{
    return (struct gm_check){.gate = {.fail_on = "leak," GM_CODE_UNBOUNDED,
                                      .warn_on = "implicit,external,findings",
                                      .max_leak_per_place = UINT64_MAX,
                                      .max_growth = UINT64_MAX,
                                      .max_round_growth = UINT64_MAX,
                                      .max_pinned = UINT64_MAX,
                                      .max_unused = UINT64_MAX,
                                      .max_residual = UINT64_MAX,
                                      .top = 10,
                                      .colour = gm_wants_colour(),
                                      .columns = gm_terminal_columns()},
                             .stacks = {.names = true},
                             .error_code = GM_EXIT_FINDINGS};
}

void gm_check_free(struct gm_check *check)
{
    for (size_t i = 0; i < check->trace_count; i++)
        free((char *)check->traces[i].path);
    if (check->gate.channel)
        fclose(check->gate.channel);
    gm_suppressions_free(&check->gate.suppressions);
    gm_baseline_free(&check->gate.baseline);
    for (size_t i = 0; i < check->gate.limit_count; i++)
        free(check->gate.limits[i].phase);
    free(check->gate.limits);
    free(check->formats);
    free(check->traces);
}
