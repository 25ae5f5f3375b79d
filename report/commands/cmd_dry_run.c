/* gpumem dry-run: runs a command on a simulated GPU and says whether it would fit a real one. */
#include "base/each.h"
#include "base/memory.h"
#include "base/size.h"
#include "commands/apart.h"
#include "commands/command.h"
#include "commands/session.h"
#include "tools/dryrun/judgement.h"
#include "tools/dryrun/launch.h"
#include "tools/dryrun/watch.h"
#include "tools/runs/kept.h"
#include "tools/runs/recording.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    DEVICE = GM_OPTION_FIRST,
    DEVICES,
    MEMORY,
    ONCE,
    JSON,
    MAX_STEPS,
    VALUES,
    BOUNDED,
    NO_KEEP,
    NO_WHOLE,
    UNTIL_READY
};

static const struct gm_option own_options[] = {
    {GM_ENDS_AT_COMMAND,
     "usage: gpumem dry-run [OPTION...] [--] COMMAND [ARGUMENT...]\n"
     "\n"
     "Runs COMMAND, unchanged, on a GPU that is simulated: its allocator runs, its\n"
     "kernels do not. Says whether it would fit, by how much, and what would take\n"
     "the room; then as gpumem report. No GPU is needed.\n"
     "\n"},
    {DEVICE, "      --device NAME|FILE  the GPU: h100 (as by default), h200, b200, a100-40,\n"
             "                          a100-80, l4, l40s, t4, rtx3090, rtx4090, rtx5090, or a\n"
             "                          file (docs/dry-run.md)\n"},
    {DEVICES, "      --devices N         how many of them the program sees (1)\n"},
    {MEMORY, "      --memory SIZE       of each, instead of what the GPU has\n"},
    {MAX_STEPS,
     "      --max-steps N       end a program of PyTorch after N steps of an optimizer, or\n"
     "                          N reads of a tensor's value at one line; auto: after steps\n"
     "                          of an optimizer by which the peak does not rise\n"},
    {UNTIL_READY,
     "      --until-ready       end a server in good order once it says that it serves, or\n"
     "                          once nothing has happened for 30 seconds\n"},
    {VALUES, "      --values            compute small operations of PyTorch on the CPU, for\n"
             "                          programs that decide by their results\n"},
    {BOUNDED,
     "      --bounds            run COMMAND twice more, for how much the cache of PyTorch\n"
     "                          can vary by addresses and by the time events take\n"},
    {ONCE, "      --once              run COMMAND once, also where a second run with larger\n"
           "                          workspaces for cuDNN's convolutions would tell more\n"},
    {NO_WHOLE,
     "      --no-whole          of what does not fit, leave out the run with more memory,\n"
     "                          which tells the whole need\n"},
    {'o', "  -o, --output PATTERN    keep the traces, by names as gpumem run gives them;\n"
          "                          without it gpumem report, export, info and whatif find\n"
          "                          those of the newest dry run of this folder\n"},
    {NO_KEEP, "      --no-keep           none of this run\n"},
    {'n', "  -n, --top N             rows of each list of the report, as there\n"},
    {JSON, "      --json              the report as JSON, with a member \"dry_run\"; what\n"
           "                          COMMAND prints goes to stderr\n"},
    GM_COMMON_OPTIONS,
    {GM_PROSE, "\n"
               "Exit codes: 0 it fits, 1 it does not, 5 cannot be told, 125 it could not be run\n"
               "dry; if COMMAND failed otherwise, its own.\n"},
    {GM_PROSE, NULL},
};

struct dry_run {
    struct gm_dry_device device;
    struct gm_dry_launch launch;
    struct gm_dry_settings settings;
    char scratch[256];
    const char *output;
    const char *top;
    bool json;
    bool once;
    bool bounds;
    bool no_keep;
    bool no_whole;
    bool until_ready;
    char **command;
};

/* ---- signals ------------------------------------------------------------------------------------------ */

static volatile sig_atomic_t told_to_end; /* the number of the signal; 0: it was not */

static void note_end(int number)
{
    told_to_end = number;
}

static const int ends[] = {SIGINT, SIGTERM, SIGHUP};

/* The first says that no further run is to begin: the answer is of what was seen until then. The second ends us. */
static void listen_for_the_end(void)
{
    struct sigaction action = {.sa_handler = note_end,
                               .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        sigaction(ends[i], &action, NULL);
}

/* ---- a run ------------------------------------------------------------------------------------------ */

/* How much of what PyTorch reserved is decided by addresses, on each device. */
static void place(struct gm_dry_outcome *outcome, struct gm_trace *trace)
{
    char error[256];
    for (int device = 0; device < GM_DRY_DEVICES; device++) {
        struct gm_history history = {0};
        if (!outcome->devices[device].reserved ||
            !gm_history_of_trace(&history, trace, device, error, sizeof(error)))
            continue;
        gm_history_guess(&history);
        gm_dry_outcome_place(outcome, &history);
        gm_history_free(&history);
    }
}

static void read_outcome(const char *path, const void *request, void *answer)
{
    static const struct gm_stacks_options options = {.names = true};
    struct gm_session session;
    (void)request;
    if (!gm_session_open(&session, path, &options, GM_NEEDS_MOMENTS | GM_NEEDS_HISTORY))
        return;
    gm_dry_outcome_add(answer, session.model);
    place(answer, session.trace);
    gm_session_close(&session);
}

static void read_traces(const struct gm_recording *recording, struct gm_dry_outcome *outcome)
{
    *outcome = (struct gm_dry_outcome){0};
    for (size_t i = 0; i < recording->trace_count; i++) {
        struct gm_dry_outcome one = {0};
        if (gm_apart(read_outcome, recording->traces[i], NULL, &one, sizeof(one)))
            gm_dry_outcome_unite(outcome, &one);
    }
}

/* Points a descriptor elsewhere; returns what it was, for back_to. */
static int redirect(int descriptor, int to)
{
    int saved = fcntl(descriptor, F_DUPFD_CLOEXEC, 10);
    fflush(NULL);
    if (to >= 0)
        dup2(to, descriptor);
    return saved;
}

static void back_to(int descriptor, int saved)
{
    fflush(NULL);
    if (saved >= 0) {
        dup2(saved, descriptor);
        close(saved);
    }
}

/* Runs the command with the settings as they are. False: not started, with the code that says why. */
static bool run_program(struct dry_run *dry, struct gm_recording *recording, const char *pattern,
                        int out, int *code)
{
    *recording = (struct gm_recording){0};
    if (told_to_end || !gm_dry_launch_set(&dry->launch, &dry->settings, dry->scratch) ||
        !gm_recording_begin(recording, pattern)) {
        *code = GM_EXIT_NOT_STARTED;
        return false;
    }
    int saved = redirect(STDOUT_FILENO, out);
    *code = gm_recording_run(recording, dry->command);
    back_to(STDOUT_FILENO, saved);
    if (recording->passed_on == SIGTERM || recording->passed_on == SIGHUP)
        told_to_end = recording->passed_on;
    else if (*code == GM_EXIT_SIGNAL + SIGINT) /* the terminal's, which the command gets, too */
        told_to_end = SIGINT;
    gm_recording_find(recording);
    return *code != GM_EXIT_NOT_FOUND && *code != GM_EXIT_NOT_EXECUTABLE;
}

/* The run again, with the settings as they are now. What it prints was printed already. */
static bool run_again(struct dry_run *dry, struct gm_dry_outcome *outcome)
{
    struct gm_recording recording;
    const char *folder = getenv("GPUMEM_DRY_AGAIN"); /* gpumem fit reads these traces, too */
    char pattern[PATH_MAX];
    int code, nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    int saved = redirect(STDERR_FILENO, nowhere);
    snprintf(pattern, sizeof(pattern), "%s/again.%%e.%%p.trace", folder ? folder : dry->scratch);
    bool ran = run_program(dry, &recording, pattern, nowhere, &code);
    back_to(STDERR_FILENO, saved);
    if (nowhere >= 0)
        close(nowhere);
    if (ran)
        read_traces(&recording, outcome);
    gm_recording_end(&recording);
    return ran && !told_to_end;
}

/* The same with workspaces of cuDNN as large as they were ever seen to matter: 4.5 times the bytes
 * of a convolution's tensors. */
static bool run_with_cudnn(struct dry_run *dry, struct gm_dry_outcome *outcome)
{
    dry->settings.cudnn = "4.5";
    bool ran = run_again(dry, outcome);
    dry->settings.cudnn = "0";
    return ran;
}

enum { BOUNDS = 2 };

/* The same with what the program does not decide: where new segments lie, and when an event that
 * PyTorch waits for has happened. Returns how many ran. */
static size_t run_bounds(struct dry_run *dry, struct gm_dry_outcome outcomes[BOUNDS])
{
    size_t ran = 0;
    dry->settings.from_top = true;
    ran += run_again(dry, &outcomes[ran]);
    dry->settings.from_top = false;
    dry->settings.late_events = true;
    ran += run_again(dry, &outcomes[ran]);
    dry->settings.late_events = false;
    return ran;
}

/* ---- the answer --------------------------------------------------------------------------------------- */

static void report(const struct dry_run *dry, const struct gm_recording *recording)
{
    size_t count = 0, room = recording->trace_count + 6;
    char **arguments = calloc(room, sizeof(*arguments));
    if (!arguments || !recording->trace_count) {
        free(arguments);
        return;
    }
    arguments[count++] = (char *)(uintptr_t) "report";
    if (dry->json)
        arguments[count++] = (char *)(uintptr_t) "--json";
    if (dry->top) {
        arguments[count++] = (char *)(uintptr_t) "--top";
        arguments[count++] = (char *)(uintptr_t)dry->top;
    }
    arguments[count++] = (char *)(uintptr_t) "--";
    for (size_t i = 0; i < recording->trace_count; i++)
        arguments[count++] = recording->traces[i];
    optind = 0; /* glibc: begins anew */
    gm_cmd_report((int)count, arguments);
    free(arguments);
}

/* The report's document without its last brace; then one more member. */
static void print_json(const struct dry_run *dry, const struct gm_recording *recording,
                       const struct gm_dry_judgement *judgement, const struct gm_dry_facts *facts)
{
    int document = memfd_create("gpumem-report", MFD_CLOEXEC);
    int saved = redirect(STDOUT_FILENO, document);
    report(dry, recording);
    back_to(STDOUT_FILENO, saved);
    FILE *file = document >= 0 ? fdopen(document, "r") : NULL;
    long size = file && fseek(file, 0, SEEK_END) == 0 ? ftell(file) : 0;
    bool has_members = size > 3 && fseek(file, 0, SEEK_SET) == 0;
    for (int c; has_members && size > 3 && (c = fgetc(file)) != EOF; size--)
        fputc(c, stdout); /* all but the line feed, the brace and the line feed at the end */
    if (!has_members)
        fputs("{", stdout);
    gm_dry_json(stdout, judgement, facts, has_members);
    fputs("\n}\n", stdout);
    if (file)
        fclose(file);
}

static int exit_code(const struct gm_dry_judgement *judgement, const struct gm_dry_facts *facts)
{
    if (facts->refused)
        return GM_EXIT_NOT_STARTED;
    if (judgement->verdict == GM_DRY_DOES_NOT_FIT)
        return GM_EXIT_FINDINGS;
    if (facts->command_exit != 0)
        return facts->command_exit;
    return judgement->verdict == GM_DRY_FITS ? GM_EXIT_FINE : GM_EXIT_UNDECIDED;
}

/* A run whose report is shown. */
struct shown_run {
    struct gm_recording recording;
    struct gm_dry_outcome outcome;
    struct gm_dry_told told;
    int code; /* of the command */
};

static bool has_failed(const struct gm_dry_outcome *outcome)
{
    int busiest = gm_dry_busiest(outcome);
    return busiest >= 0 && outcome->devices[busiest].has_failed;
}

static bool run_shown(struct dry_run *dry, struct shown_run *shown, int out)
{
    char pattern[sizeof(dry->scratch) + 32];
    snprintf(pattern, sizeof(pattern), "%s/%%e.%%p.trace", dry->scratch);
    if (!run_program(dry, &shown->recording, dry->output ? dry->output : pattern, out,
                     &shown->code))
        return false;
    read_traces(&shown->recording, &shown->outcome);
    gm_dry_launch_told(&dry->launch, &shown->told);
    gm_dry_outcome_printed(&shown->outcome, shown->told.printed, shown->told.printed_count);
    return true;
}

/* Whether the values that a program read, and that stood at zero, can be why it ended as it did. */
static bool may_depend_on_values(const struct shown_run *shown)
{
    enum { MANY = 256 }; /* reads at one line: a loop */
    const struct gm_dry_outcome *outcome = &shown->outcome;
    if (shown->told.refused[0])
        return false;
    if (shown->told.endless.count)
        return !shown->told.has_no_exit;
    if (has_failed(outcome))
        return outcome->uncertain_count && outcome->uncertain[0].count >= MANY;
    return shown->code != 0 && outcome->uncertain_reads;
}

/* A run of which nothing is printed, and which may be the one whose report is shown. */
static bool run_hidden(struct dry_run *dry, struct shown_run *again)
{
    int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC), saved = redirect(STDERR_FILENO, nowhere);
    *again = (struct shown_run){.code = 0};
    bool ran = run_shown(dry, again, nowhere);
    back_to(STDERR_FILENO, saved);
    if (nowhere >= 0)
        close(nowhere);
    return ran && !told_to_end && !again->told.refused[0] && !again->told.endless.count;
}

static bool ended_well(const struct shown_run *shown)
{
    return shown->code == 0 && !has_failed(&shown->outcome);
}

static void show_instead(struct shown_run *shown, const struct shown_run *again)
{
    gm_recording_end(&shown->recording);
    *shown = *again;
}

/* The run again, with small operations computed; with `rows` also what is not known chosen so that the program goes on.
 * It counts if it comes to a good end. False: it failed, not in a loop. */
static bool run_with_values(struct dry_run *dry, struct shown_run *shown, bool rows)
{
    struct shown_run again;
    dry->settings.values = true;
    dry->settings.rows = rows;
    bool counts = run_hidden(dry, &again) && ended_well(&again),
         is_endless = again.told.endless.count;
    dry->settings.values = counts;
    dry->settings.rows = counts && rows;
    if (counts)
        show_instead(shown, &again);
    else
        gm_recording_end(&again.recording);
    return counts || is_endless;
}

/* The run again, with masks computed: those of known values choose what they do on a GPU, others all.
 * If there are no others it is the run that counts, else `rows` is the other end of a range. */
static void run_with_rows(struct dry_run *dry, struct shown_run *shown, struct shown_run *rows)
{
    dry->settings.rows = true;
    bool counts = run_hidden(dry, rows) && !rows->told.values_ended &&
                  (rows->code == 0 || has_failed(&rows->outcome));
    if (!shown->outcome.row_reads && rows->outcome.sized_reads)
        counts = false; /* what was asked for is not known there either */
    dry->settings.rows = counts && !rows->told.chose_all && !rows->told.numbers_differ;
    if (dry->settings.rows) {
        show_instead(shown, rows);
        return;
    }
    gm_recording_end(&rows->recording);
    rows->code = counts ? 0 : GM_EXIT_UNDECIDED;
}

/* What the program needs that was refused memory: the same with as much as it asks for. */
static bool run_without_limit(struct dry_run *dry, struct gm_dry_outcome *outcome)
{
    struct shown_run again;
    const uint64_t memory = dry->settings.memory;
    const char *output = dry->output;
    dry->settings.memory = GM_DRY_MEMORY_MOST;
    dry->output = NULL;
    bool tells = run_hidden(dry, &again) && ended_well(&again);
    dry->settings.memory = memory;
    dry->output = output;
    *outcome = again.outcome;
    gm_recording_end(&again.recording);
    return tells;
}

/* For the commands that are asked next. */
static void keep_traces(const struct dry_run *dry, struct shown_run *shown, struct timespec began)
{
    const struct gm_recording *recording = &shown->recording;
    if (dry->no_keep)
        return;
    const char *why =
        gm_kept_replace(recording->traces, dry->output ? 0 : recording->trace_count, began);
    if (why && !dry->output && recording->trace_count)
        fprintf(stderr, "gpumem: the trace of this run is not kept (%s): -o FILE keeps it\n", why);
}

static void print_answer(const struct dry_run *dry, const struct shown_run *shown,
                         const struct gm_dry_judgement *judgement, const struct gm_dry_facts *facts)
{
    if (dry->json) {
        print_json(dry, &shown->recording, judgement, facts);
        return;
    }
    gm_dry_text(stdout, judgement, facts);
    if (shown->recording.trace_count)
        putchar('\n');
    report(dry, &shown->recording);
}

static int dry_run(struct dry_run *dry)
{
    struct shown_run shown = {.code = 0};
    struct shown_run rows = {.code = 0};
    struct gm_dry_outcome with_cudnn = {0}, whole, others[BOUNDS] = {{0}};
    struct gm_dry_judgement judgement;
    const bool asked_for_values = dry->settings.values;
    struct timespec began;
    clock_gettime(CLOCK_REALTIME_COARSE, &began); /* as file systems do */
    dry->settings.cudnn = "0";
    if (!run_shown(dry, &shown, dry->json ? STDERR_FILENO : -1)) {
        gm_recording_end(&shown.recording);
        return told_to_end ? GM_EXIT_SIGNAL + told_to_end : shown.code;
    }
    if (!dry->once && !asked_for_values && may_depend_on_values(&shown))
        (void)(run_with_values(dry, &shown, true) || run_with_values(dry, &shown, false));
    bool decides = shown.outcome.row_reads || shown.outcome.sized_reads ||
                   (shown.told.loop_decides && !shown.told.endless.count);
    bool looks_for_rows = !dry->once && !dry->settings.rows && decides && !shown.told.refused[0] &&
                          ended_well(&shown);
    if (looks_for_rows)
        run_with_rows(dry, &shown, &rows);
    const struct gm_dry_told *told = &shown.told;
    const struct gm_dry_outcome *const bounds[BOUNDS] = {&others[0], &others[1]};
    struct gm_dry_facts facts = {
        .device = &dry->device,
        .capacity = dry->settings.memory,
        .devices = dry->settings.devices,
        .command_exit = shown.code,
        GM_SAME(told, nccl, steps, endless, has_no_exit, grows, raised, exception),
        .has_values = dry->settings.values,
        .values_ended = told->values_ended,
        .is_second = dry->settings.values && !asked_for_values,
        .outcome = &shown.outcome,
        .with_rows = looks_for_rows && !dry->settings.rows && rows.code == 0 ? &rows.outcome : NULL,
        .rows_failed =
            looks_for_rows && shown.outcome.row_reads && rows.code != 0 ? &rows.told : NULL,
        .has_rows = dry->settings.rows,
        .chose_all = dry->settings.rows && told->chose_all,
        .numbers_differ = told->numbers_differ || (rows.code == 0 && rows.told.numbers_differ),
        .bounds = bounds,
        .refused = told->refused[0] ? told->refused : NULL,
    };
    if (!facts.refused && told->without_cuda[0] && gm_dry_busiest(&shown.outcome) < 0)
        facts.refused = told->without_cuda;
    bool is_sound = !facts.refused && ended_well(&shown);
    if (is_sound && told->has_convolutions && !dry->once && run_with_cudnn(dry, &with_cudnn))
        facts.with_cudnn = &with_cudnn;
    if (is_sound && dry->bounds)
        facts.bound_count = run_bounds(dry, others);
    if (!facts.refused && has_failed(&shown.outcome) && !dry->once && !dry->no_whole &&
        run_without_limit(dry, &whole))
        facts.whole = &whole;
    facts.has_unknown_workspaces = facts.whole && told->has_convolutions;
    if (told_to_end && shown.code == 0)
        fprintf(stderr,
                "gpumem: ended by signal %d: the answer is of the runs that were made until then\n",
                (int)told_to_end);
    gm_dry_judge(&judgement, &facts);
    keep_traces(dry, &shown, began);
    print_answer(dry, &shown, &judgement, &facts);
    gm_recording_end(&shown.recording);
    return exit_code(&judgement, &facts);
}

/* ---- the command line --------------------------------------------------------------------------------- */

static bool make_scratch(char *scratch, size_t size)
{
    const char *base = getenv("TMPDIR");
    int length = snprintf(scratch, size, "%s/gpumem-dry-run.XXXXXX", base && *base ? base : "/tmp");
    if (length < 0 || (size_t)length >= size)
        errno = ENAMETOOLONG;
    else if (mkdtemp(scratch))
        return true;
    gm_complain("%s: %s", scratch, strerror(errno));
    return false;
}

static bool read_memory(const char *text, uint64_t *memory)
{
    if (gm_size_parse(text, memory) && *memory >= 1 << 20 && *memory <= GM_DRY_MEMORY_MOST)
        return true;
    gm_complain("--memory: '%s' is no size from 1M to 1T", text);
    return false;
}

/* Puts what ends a server (sim/dry/until_ready.py) before the command. What is allocated lives as long as the process. */
static void start_until_ready(struct dry_run *dry, size_t count)
{
    static char script[PATH_MAX + 32];
    const char *const first[] = {"python3", "-I", "-B", script, "--"};
    const size_t first_count = sizeof(first) / sizeof(first[0]);
    char **command = gm_allocate(first_count + count + 1, sizeof(*command));
    snprintf(script, sizeof(script), "%s/until_ready.py", dry->launch.libraries);
    for (size_t i = 0; i < first_count; i++)
        command[i] = (char *)(uintptr_t)first[i];
    memcpy(command + first_count, dry->command, count * sizeof(*command));
    dry->command = command;
}

/* No signal ends us between: nobody would remove the folder. */
static bool begin(struct dry_run *dry, struct gm_dry_watch *watch)
{
    sigset_t held, before;
    sigemptyset(&held);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
        sigaddset(&held, ends[i]);
    sigprocmask(SIG_BLOCK, &held, &before);
    bool has_scratch = make_scratch(dry->scratch, sizeof(dry->scratch));
    if (has_scratch) {
        gm_dry_watch_begin(watch, dry->scratch);
        listen_for_the_end();
    }
    sigprocmask(SIG_SETMASK, &before, NULL);
    return has_scratch;
}

int gm_cmd_dry_run(int count, char **arguments)
{
    struct dry_run dry = {.settings = {.devices = 1}};
    const char *device = "h100", *memory = NULL;
    uint64_t number;
    for (int option; (option = gm_next_option(count, arguments, own_options)) != -1;) {
        switch (option) {
        case DEVICE:
            device = optarg;
            break;
        case DEVICES:
            if (!gm_parse_count("--devices", optarg, &number))
                return GM_EXIT_USAGE;
            if (number > GM_DRY_DEVICES)
                return gm_complain("--devices: at most %d", GM_DRY_DEVICES);
            dry.settings.devices = (unsigned)number;
            break;
        case MEMORY:
            memory = optarg;
            break;
        case MAX_STEPS:
            dry.settings.ends_steady = strcmp(optarg, "auto") == 0;
            if (dry.settings.ends_steady)
                break;
            if (!gm_parse_count("--max-steps", optarg, &number))
                return GM_EXIT_USAGE;
            if (number > 1000000000)
                return gm_complain("--max-steps: at most 1000000000");
            dry.settings.max_steps = (unsigned)number;
            break;
        case BOUNDED:
            dry.bounds = true;
            break;
        case VALUES:
            dry.settings.values = true;
            break;
        case NO_WHOLE:
            dry.no_whole = true;
            break;
        case UNTIL_READY:
            dry.until_ready = true;
            break;
        case NO_KEEP:
            dry.no_keep = true;
            break;
        case ONCE:
            dry.once = true;
            break;
        case 'o':
            dry.output = optarg;
            break;
        case 'n':
            if (!gm_parse_count("--top", optarg, &number))
                return GM_EXIT_USAGE;
            dry.top = optarg;
            break;
        case JSON:
            dry.json = true;
            break;
        default:
            return GM_EXIT_USAGE;
        }
    }
    if (optind == count)
        return gm_complain("dry-run: no command given; see gpumem dry-run --help");
    dry.command = arguments + optind;
    char devices[PATH_MAX + 16];
    if (!gm_dry_launch_find(&dry.launch))
        return GM_EXIT_NOT_STARTED;
    if (dry.until_ready)
        start_until_ready(&dry, (size_t)(count - optind));
    snprintf(devices, sizeof(devices), "%s/devices", dry.launch.libraries);
    if (!gm_dry_device_find(&dry.device, device, devices))
        return GM_EXIT_USAGE;
    dry.settings.device = &dry.device;
    dry.settings.memory = dry.device.memory;
    if (memory && !read_memory(memory, &dry.settings.memory))
        return GM_EXIT_USAGE;
    if (dry.device.context >= dry.settings.memory)
        dry.device.context = 0; /* a device of a test, too small for any context */
    struct gm_dry_watch watch;
    if (!begin(&dry, &watch))
        return GM_EXIT_NOT_STARTED;
    int code = dry_run(&dry);
    gm_dry_watch_end(&watch, dry.scratch, !told_to_end);
    return code;
}
