/* gpumem run: records a command. */
#include "base/memory.h"
#include "base/text.h"
#include "commands/apart.h"
#include "commands/command.h"
#include "commands/session.h"
#include "output/amount.h"
#include "output/headline.h"
#include "tools/runs/reach.h"
#include "tools/runs/recording.h"
#include "tools/runs/run_note.h"
#include "tools/runs/trace_home.h"
#include <gpumem/settings.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH = GM_OPTION_FIRST, STACKS, ON_FULL, NVTX, FLIGHT };

static const struct gm_option own_options[] = {
    {GM_ENDS_AT_COMMAND,
     "usage: gpumem run [OPTION...] [--] COMMAND [ARGUMENT...]\n"
     "\n"
     "Runs COMMAND and records its GPU memory, and that of every process it starts.\n"
     "Nothing is written by processes that make no CUDA call.\n"
     "\n"},
    {'o', "  -o, --output PATTERN   name of the traces (gpumem.%e.%p.trace); %e program,\n"
          "                         %p process, %h host, %r rank in the job, %q{VARIABLE},\n"
          "                         %% a percent sign\n"},
    {DEPTH, "      --depth N          frames kept of a stack\n"},
    {STACKS, "      --stacks LIST      native, python or both (native,python), or none\n"},
    {ON_FULL, "      --on-full HOW      a full ring waits (block) or drops records (drop)\n"},
    {FLIGHT, "      --flight[=SIZE]    a trace that does not grow: what is live, and of the\n"
             "                         history the latest that fits in SIZE (64M)\n"},
    {NVTX, "      --nvtx             record NVTX marks and ranges, as phases\n"},
    {'q', "  -q, --quiet            do not end with the verdict and where the rest is\n"},
    GM_COMMON_OPTIONS,
    {GM_PROSE, "\n"
               "The exit code is that of COMMAND: 128+n if signal n ended it, 126 if it cannot\n"
               "be executed, 127 if it was not found, 125 if it could not be started or its\n"
               "output could not be written.\n"},
    {GM_PROSE, NULL},
};

/* ---- the last lines -------------------------------------------------------------------------- */

/* What one trace comes to. */
struct verdict {
    bool is_read;
    uint32_t pid;
    int64_t rank;
    bool simulated;
    struct gm_headline headline;
};

static void judge_trace(const char *path, const void *unused, void *verdict_of)
{
    struct verdict *verdict = verdict_of;
    struct gm_stacks_options options = {0};
    struct gm_session session;
    (void)unused;
    if (!gm_session_open(&session, path, &options, GM_NEEDS_FINDINGS | GM_NEEDS_MOMENTS))
        return;
    const struct gm_model_run *run = &session.model->runs[0];
    *verdict =
        (struct verdict){true, run->pid, run->rank.rank, run->simulated, gm_headline_of(run)};
    gm_session_close(&session);
}

static void print_verdict(const struct verdict *verdict, bool is_one_of_many)
{
    const struct gm_headline *headline = &verdict->headline;
    char who[64] = "";
    if (is_one_of_many && verdict->rank >= 0)
        snprintf(who, sizeof(who), "rank %" PRId64 ": ", verdict->rank);
    else if (is_one_of_many)
        snprintf(who, sizeof(who), "process %" PRIu32 ": ", verdict->pid);
    bool has_failed = headline->failure[0] != 0;
    fprintf(stderr, "gpumem: %s%s%s%s\n", who, has_failed ? headline->failure : headline->state,
            headline->findings[0] ? "; " : "", headline->findings);
    if (has_failed || headline->peaks[0])
        fprintf(stderr, "gpumem: %s%s%s%s\n", has_failed ? headline->state : "",
                has_failed && headline->peaks[0] ? ", " : "", headline->peaks,
                verdict->simulated ? " (SIMULATED)" : "");
}

/* The gravest of all, and of equal ones the largest peak. */
static bool is_worse(const struct gm_headline *a, const struct gm_headline *b)
{
    return a->gravity != b->gravity ? a->gravity > b->gravity : a->peak > b->peak;
}

/* Bytes of all traces. Of more than this the reader would wait for an answer that he has not asked
 * for. */
#define JUDGED_MAX (INT64_C(1) << 30)

static int64_t size_of(const struct gm_recording *recording)
{
    struct stat status;
    int64_t size = 0;
    for (size_t i = 0; i < recording->trace_count; i++)
        if (stat(recording->traces[i], &status) == 0)
            size += status.st_size;
    return size;
}

static void say_verdict(const struct gm_recording *recording)
{
    if (size_of(recording) > JUDGED_MAX) {
        fprintf(stderr, "gpumem: recorded %s, too much to judge in passing\n",
                BYTES(size_of(recording)));
        return;
    }
    struct verdict worst = {0};
    size_t active = 0;
    for (size_t i = 0; i < recording->trace_count; i++) {
        struct verdict one;
        if (!gm_apart(judge_trace, recording->traces[i], NULL, &one, sizeof(one)) || !one.is_read)
            continue;
        active += one.headline.gravity != GM_GRAVITY_IDLE;
        if (!worst.is_read || is_worse(&one.headline, &worst.headline))
            worst = one;
    }
    if (worst.is_read)
        print_verdict(&worst, active > 1);
}

/* The third line: what to ask next. */
static void say_where(const struct gm_recording *recording)
{
    char *first = gm_copy_text(recording->traces[0]), *slash = strrchr(first, '/');
    bool is_link = gm_is_link(first);
    gm_clean_text(first);
    if (recording->trace_count == 1) {
        fprintf(stderr, "gpumem: more: gpumem report %s%s\n", first,
                is_link ? " (a link: the trace is where it leads)" : "");
    } else {
        slash[slash == first] = 0;
        fprintf(stderr, "gpumem: more, of all %zu processes: gpumem report %s\n",
                recording->trace_count, first);
    }
    free(first);
}

static void say_reach(const struct gm_recording *recording, enum gm_reach reach)
{
    if (recording->trace_count == 0 && reach == GM_REACH_STATIC) {
        fputs("gpumem: there is no trace: the program is linked statically, and LD_PRELOAD does "
              "not reach it\n",
              stderr);
        return;
    }
    if (recording->trace_count == 0) {
        fputs("gpumem: there is no trace: no CUDA call was seen, or no file could be made (disk "
              "full?)\n",
              stderr);
        return;
    }
    say_verdict(recording);
    say_where(recording);
}

/* ---- options --------------------------------------------------------------------------------- */

int gm_cmd_run(int count, char **arguments)
{
    const char *output = NULL;
    bool quiet = false;
    bool native, python;
    uint32_t depth;
    uint64_t size;
    for (int option; (option = gm_next_option(count, arguments, own_options)) != -1;) {
        switch (option) {
        case 'o':
            output = optarg;
            break;
        case 'q':
            quiet = true;
            break;
        case DEPTH:
            if (!gm_setting_depth(optarg, &depth))
                return gm_complain("--depth: '%s' is no number from 1 to %u", optarg, GM_DEPTH_MAX);
            setenv("GPUMEM_DEPTH", optarg, 1);
            break;
        case STACKS:
            if (!gm_setting_stacks(optarg, &native, &python))
                return gm_complain("--stacks: '%s' is no list of native and python, nor none",
                                   optarg);
            setenv("GPUMEM_STACKS", optarg, 1);
            break;
        case ON_FULL:
            if (strcmp(optarg, "block") != 0 && strcmp(optarg, "drop") != 0)
                return gm_complain("--on-full: '%s' is neither block nor drop", optarg);
            setenv("GPUMEM_ON_FULL", optarg, 1);
            break;
        case NVTX:
            setenv("GPUMEM_NVTX", "1", 1);
            break;
        case FLIGHT:
            if (optarg && !gm_setting_flight_size(optarg, &size))
                return gm_complain("--flight: '%s' is no size from 16K to 64G", optarg);
            setenv("GPUMEM_MODE", "flight", 1);
            if (optarg)
                setenv("GPUMEM_FLIGHT_SIZE", optarg, 1);
            break;
        default:
            return GM_EXIT_USAGE;
        }
    }
    if (optind == count)
        return gm_complain("run: no command given; see gpumem run --help");
    enum gm_reach reach = gm_reach_of(arguments[optind]);
    if (reach == GM_REACH_MUSL) {
        gm_complain(
            "%s is a program of musl (Alpine), which cannot load the recorder: it needs glibc",
            arguments[optind]);
        return GM_EXIT_NOT_STARTED;
    }
    struct gm_recording recording;
    if (!gm_recording_begin(&recording, output)) {
        gm_recording_end(&recording);
        return GM_EXIT_NOT_STARTED;
    }
    int code = gm_recording_run(&recording, arguments + optind);
    if (code != GM_EXIT_NOT_FOUND && code != GM_EXIT_NOT_EXECUTABLE) {
        gm_recording_find(&recording);
        gm_run_note_leave(arguments + optind, code, recording.traces, recording.trace_count);
        if (!quiet)
            say_reach(&recording, reach);
    }
    gm_recording_end(&recording);
    return code;
}
