/* gpumem check: the gate. Judges traces, or runs a command and judges what it left. */
#include "base/memory.h"
#include "base/size.h"
#include "commands/apart.h"
#include "commands/command.h"
#include "commands/session.h"
#include "render/text/sections.h"
#include "runs/recording.h"
#include "runs/runs.h"
#include "runs/trace_home.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_help(void)
{
    puts("usage: gpumem check [OPTION...] [TRACE...]\n"
         "       gpumem check [OPTION...] -- COMMAND [ARGUMENT...]\n"
         "\n"
         "Fails when memory leaked or a peak was too high. Without TRACE and COMMAND: all\n"
         "traces of the newest run in this folder.\n"
         "\n"
         "      --max-leak SIZE          bytes that may leak per trace (0)\n"
         "      --max-peak [DEVICE:]SIZE largest peak allowed on a device, or on each\n"
         "      --max-growth SIZE        bytes that places growing from mark to mark may\n"
         "                               have gained over the last marks (any)\n"
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
         "SIZE: 64M, 1.5GiB, ... in units of 1024. Memory freed too late, freed with its\n"
         "context, held by the vendor's libraries or cached by a framework (PyTorch, JAX,\n"
         "TensorFlow, CuPy) is noted and never fails the check; neither do findings.\n"
         "\n"
         "Exit codes: 0 passed, 1 failed, 2 wrong usage, 3 a trace is unreadable, cut,\n"
         "damaged or incomplete, 4 nothing was recorded. When COMMAND fails, its own code\n"
         "is returned.");
}

struct limit {
    int device; /* -1: each */
    uint64_t bytes;
};

struct gate {
    uint64_t max_leak;
    uint64_t max_growth;
    struct limit *limits;
    size_t limit_count;
    size_t limit_capacity;
    bool allow_empty;
    bool judge_cut;
    uint64_t top;
    const char *output;
    bool colour;
};

/* What a judgement over one trace or several comes to. */
struct outcome {
    bool unreadable;
    bool findings;
    bool anything; /* some trace has memory calls in it */
};

/* ---- judging one trace ----------------------------------------------------------------------- */

static void print_result(struct gm_page *page, bool good, const char *what, const char *text)
{
    gm_page_print(page, good ? GM_GOOD : GM_BAD, "  %-4s", good ? "ok" : "FAIL");
    gm_page_print(page, GM_PLAIN, "  %-16s %s\n", what, text);
}

static bool judge_leaks(const struct gate *gate, const struct gm_view *view)
{
    const struct gm_model_run *run = view->run;
    struct gm_model_living leaked = run->verdict.leaked;
    if (run->was_asked_to_end) /* its end gave all back; nothing tells what it would have kept */
        leaked = (struct gm_model_living){0};
    bool good = leaked.bytes <= gm_amount(gate->max_leak);
    char text[160];
    snprintf(text, sizeof(text), "%s in %s allocation%s, allowed %s", BYTES(leaked.bytes),
             NUMBER(leaked.count), gm_plural((uint64_t)leaked.count), SIZE(gate->max_leak));
    print_result(view->page, good, "leaks", text);
    if (!good)
        gm_leaks_text(view, GM_LEAK, GM_LEAKS_ALL);
    for (unsigned leak_class = GM_LEAK_LATE; leak_class < GM_LEAK_CLASSES; leak_class++)
        if (run->leaked_count[leak_class])
            gm_page_print(view->page, GM_DIM, "  note  %-16s %s in %s allocation%s\n",
                          gm_leak_class_name(leak_class), BYTES(run->leaked[leak_class]),
                          NUMBER(run->leaked_count[leak_class]),
                          gm_plural((uint64_t)run->leaked_count[leak_class]));
    return good;
}

static bool judge_peaks(const struct gate *gate, const struct gm_view *view)
{
    bool all_good = true;
    for (size_t i = 0; i < gate->limit_count; i++) {
        const struct limit *limit = &gate->limits[i];
        for (size_t at = 0; at < view->run->device_count; at++) {
            const struct gm_model_device *device = &view->run->devices[at];
            if (!device->seen || (limit->device >= 0 && limit->device != device->id))
                continue;
            bool good = device->all.peak <= gm_amount(limit->bytes);
            char what[32], text[96];
            snprintf(what, sizeof(what), "peak, device %d", device->id);
            snprintf(text, sizeof(text), "%s, allowed %s", BYTES(device->all.peak),
                     SIZE(limit->bytes));
            print_result(view->page, good, what, text);
            all_good &= good;
        }
    }
    return all_good;
}

static bool judge_growth(const struct gate *gate, const struct gm_view *view)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < view->run->growing_count; i++)
        bytes += gm_model_growth(&view->run->growing[i]);
    bool good = bytes <= gate->max_growth;
    char text[96];
    if (gate->max_growth == UINT64_MAX)
        return true;
    snprintf(text, sizeof(text), "%s over the last marks, allowed %s", SIZE(bytes),
             SIZE(gate->max_growth));
    print_result(view->page, good, "growth", text);
    if (!good)
        gm_growth_text(view);
    return good;
}

/* Peaks and growth are of all the history, of which a flight trace may have the end alone. */
static bool has_history(const struct gate *gate, const struct gm_view *view)
{
    bool matters = gate->limit_count != 0 || gate->max_growth != UINT64_MAX;
    if (!view->run->is_overwritten || !matters || gate->judge_cut)
        return true;
    gm_page_paragraph(view->page, GM_BAD, 0,
                      "Peaks and growth cannot be judged: the flight recorder has overwritten the "
                      "history before. --on-cut judge takes what is there.");
    return false;
}

static void judge_run(const struct gate *gate, const struct gm_view *view, struct outcome *outcome)
{
    const struct gm_model_run *run = view->run;
    bool has_events = run->verdict.state != GM_VERDICT_NOTHING;
    outcome->anything |= has_events;
    gm_notes_text(view, "note: ");
    gm_losses_text(view);
    if (!run->is_recorded || (!run->complete && !gate->judge_cut) || !has_history(gate, view)) {
        outcome->unreadable = true;
    } else if (!has_events) {
        gm_page_print(view->page, GM_DIM, "  no CUDA memory call was seen\n");
        gm_bypass_text(view, 2);
    } else {
        bool leaks_good = judge_leaks(gate, view);
        bool peaks_good = judge_peaks(gate, view);
        bool growth_good = judge_growth(gate, view);
        gm_findings_notes(view);
        outcome->findings |= !leaks_good || !peaks_good || !growth_good;
    }
}

static void judge_here(const char *path, const void *gate_of, void *outcome_of)
{
    const struct gate *gate = gate_of;
    struct outcome *outcome = outcome_of;
    struct gm_page page = {.out = stdout, .colour = gate->colour};
    struct gm_stacks_options options = {.names = true};
    struct gm_session session;
    if (!gm_session_open(&session, path, &options, GM_NEEDS_FINDINGS)) {
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
    judge_run(gate, &view, outcome);
    outcome->unreadable |= !gm_session_close(&session);
}

static void judge(const struct gate *gate, const char *path, struct outcome *outcome)
{
    struct outcome one;
    outcome->unreadable |= !gm_apart(judge_here, path, gate, &one, sizeof(one)) || one.unreadable;
    outcome->findings |= one.findings;
    outcome->anything |= one.anything;
}

/* The last line, and the exit code. */
static int conclude(const struct gate *gate, const struct outcome *outcome)
{
    struct gm_page page = {.out = stdout, .colour = gate->colour};
    if (outcome->unreadable) {
        gm_page_print(&page, GM_BAD,
                      "not judged: a trace is unreadable, cut, damaged or incomplete\n");
        return GM_EXIT_UNREADABLE;
    }
    if (!outcome->anything && !gate->allow_empty) {
        gm_page_print(&page, GM_BAD, "not judged: nothing was recorded\n");
        return GM_EXIT_NOTHING;
    }
    if (outcome->findings) {
        gm_page_print(&page, GM_BAD, "failed\n");
        return GM_EXIT_FINDINGS;
    }
    gm_page_print(&page, GM_GOOD, "passed\n");
    return GM_EXIT_FINE;
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

static int check_command(const struct gate *gate, char **command)
{
    char *folder = NULL, *pattern = NULL;
    struct gm_recording recording;
    struct outcome outcome = {0};
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
        judge(gate, recording.traces[i], &outcome);
    int verdict = conclude(gate, &outcome);
    if (code)
        gm_complain("the command itself failed with exit code %d", code);
    if (folder)
        remove_traces(&recording, folder);
    gm_recording_end(&recording);
    free(pattern);
    return code ? code : verdict;
}

static int check_traces(const struct gate *gate, char **paths, size_t count)
{
    struct outcome outcome = {0};
    struct gm_run_traces run;
    int found = gm_run_find(&run, paths, count);
    for (size_t i = 0; i < run.count; i++)
        judge(gate, run.paths[i], &outcome);
    bool is_empty = run.count == 0;
    gm_run_free(&run);
    if (found == GM_EXIT_NOTHING && gate->allow_empty)
        found = GM_EXIT_FINE;
    if (is_empty && found != GM_EXIT_FINE)
        return found;
    outcome.unreadable |= found != GM_EXIT_FINE;
    return conclude(gate, &outcome);
}

/* ---- options --------------------------------------------------------------------------------- */

static bool add_limit(struct gate *gate, const char *text)
{
    struct limit limit = {.device = -1};
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

enum { MAX_LEAK = GM_OPTION_FIRST, MAX_PEAK, MAX_GROWTH, ALLOW_EMPTY, ON_CUT };

/* Takes one option. False after a complaint. */
static bool take_option(struct gate *gate, int option)
{
    switch (option) {
    case MAX_LEAK:
        if (gm_size_parse(optarg, &gate->max_leak))
            return true;
        gm_complain("--max-leak: '%s' is not a size such as 64M or 1.5GiB", optarg);
        return false;
    case MAX_GROWTH:
        if (gm_size_parse(optarg, &gate->max_growth))
            return true;
        gm_complain("--max-growth: '%s' is not a size such as 64M or 1.5GiB", optarg);
        return false;
    case MAX_PEAK:
        return add_limit(gate, optarg);
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

static int check(struct gate *gate, int count, char **arguments)
{
    static const struct option options[] = {{"max-leak", required_argument, NULL, MAX_LEAK},
                                            {"max-peak", required_argument, NULL, MAX_PEAK},
                                            {"max-growth", required_argument, NULL, MAX_GROWTH},
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
        if (!take_option(gate, option))
            return GM_EXIT_USAGE;
    }
    if (own == count)
        return check_traces(gate, arguments + optind, (size_t)(count - optind));
    if (own + 1 == count)
        return gm_complain("check: no command behind --");
    if (optind < own)
        return gm_complain("check: either traces or a command, not both: '%s'", arguments[optind]);
    return check_command(gate, arguments + own + 1);
}

int gm_cmd_check(int count, char **arguments)
{
    struct gate gate = {.max_growth = UINT64_MAX, .top = 10, .colour = gm_wants_colour()};
    int code = check(&gate, count, arguments);
    free(gate.limits);
    return code;
}
