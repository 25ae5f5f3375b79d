/* gpumem top: who holds the memory of a running process, now. */
#include "base/memory.h"
#include "commands/command.h"
#include "input/trace/trace_open.h"
#include "tools/runs/runs.h"
#include "tools/top/terminal.h"
#include "tools/top/top.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TURN_NS UINT64_C(500000000) /* between two looks */
#define CHOICES 16u                 /* processes that are named */
#define LONGEST_WAIT_MS 60000u
#define SHARE 22u /* of the time at most one part in so many is spent looking: 4.5 % of a core */
#define LOOK_NS UINT64_C(100000000) /* of CPU: a look takes no more, and the next goes on there */

enum { ONCE = GM_OPTION_FIRST, JSON };

static const struct gm_option own_options[] = {
    {GM_PROSE, "usage: gpumem top [OPTION...] [PID|TRACE]\n"
               "\n"
               "Follows the trace of a running process, twice a second: memory now and at its\n"
               "peak, by library, and the places that hold most of it or grew in the last\n"
               "minute. Nothing is asked of the process. Without an argument: the only trace of\n"
               "the newest run in this folder. It ends with the process, or with q or Ctrl-C;\n"
               "on a terminal h shows the keys.\n"
               "\n"},
    {'n', "  -n, --top N        rows of each list (10)\n"},
    {ONCE, "      --once         one look, then end\n"},
    {JSON, "      --json         each look as a line of JSON (docs/top.md)\n"},
    GM_NAME_OPTIONS,
    GM_COMMON_OPTIONS,
    {GM_PROSE, NULL},
};

/* ---- the trace of a process ------------------------------------------------------------------ */

/* A regular file alone is opened: to open a device may have an effect. */
static bool is_trace(const char *path)
{
    char magic[8];
    struct stat status;
    FILE *file = stat(path, &status) == 0 && S_ISREG(status.st_mode) ? fopen(path, "re") : NULL;
    bool is = file && fread(magic, 1, sizeof(magic), file) == sizeof(magic) &&
              memcmp(magic, GM_TRACE_MAGIC, sizeof(magic)) == 0;
    if (file)
        fclose(file);
    return is;
}

static char *path_if_trace(const char *format, const char *pid, const char *name)
{
    size_t size = strlen(pid) + strlen(name) + 64;
    char *path = gm_allocate(size, 1);
    snprintf(path, size, format, pid, name);
    if (is_trace(path))
        return path;
    free(path);
    return NULL;
}

/* A file that the process has mapped, by a line of /proc/PID/maps: by its name there, as the process may see
 * another file system, or, where the name is gone, by its addresses. NULL if it is no trace. */
static char *trace_of_line(const char *pid, char *line)
{
    char *name = strchr(line, '/'), *addresses_end = strchr(line, ' ');
    line[strcspn(line, "\n")] = 0;
    if (!name || !addresses_end || !strstr(line, "rw-s"))
        return NULL;
    *addresses_end = 0;
    char *path = path_if_trace("/proc/%s/root%s", pid, name);
    return path ? path : path_if_trace("/proc/%s/map_files/%s", pid, line);
}

/* The trace that the process writes, in memory of the caller's; NULL after a complaint. */
static char *trace_of(const char *pid)
{
    char path[64], *line = NULL, *found = NULL;
    size_t capacity = 0;
    snprintf(path, sizeof(path), "/proc/%.20s/maps", pid);
    FILE *maps = fopen(path, "re");
    int why = maps ? 0 : errno;
    errno = 0;
    while (maps && !found && getline(&line, &capacity, maps) > 0)
        found = trace_of_line(pid, line);
    if (!found && !why)
        why = errno; /* some kernels refuse at the first read */
    if (why == EACCES || why == EPERM)
        gm_complain("top: process %s belongs to another user: run top as that user, or name its "
                    "trace",
                    pid);
    else if (why)
        gm_complain("top: there is no process %s", pid);
    else if (!found)
        gm_complain("top: process %s writes no trace: was it started with gpumem run, and has it "
                    "called CUDA?",
                    pid);
    free(line);
    if (maps)
        fclose(maps);
    return found;
}

static bool is_pid(const char *text)
{
    return text[0] && strspn(text, "0123456789") == strlen(text) && access(text, F_OK) != 0;
}

/* ---- looking --------------------------------------------------------------------------------- */

struct request {
    struct gm_top_options options;
    bool once;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void rest_until(uint64_t until_ns)
{
    uint64_t now = now_ns(), pause = until_ns > now ? until_ns - now : 0;
    struct timespec time = {(time_t)(pause / 1000000000), (long)(pause % 1000000000)};
    nanosleep(&time, NULL);
}

/* Changes what is shown; false: the user has seen enough. */
static bool obey_key(int key, struct gm_top *top, const struct gm_follow *follow)
{
    struct gm_top_shown *shown = &top->shown;
    switch (key) {
    case 'q':
    case GM_TERMINAL_CLOSED:
        return false;
    case 's':
        shown->order = (enum gm_top_order)((shown->order + 1) % GM_TOP_ORDERS);
        break;
    case 'd':
        shown->device = gm_top_next_device(top, follow);
        break;
    case 'p':
    case ' ':
        shown->is_paused = !shown->is_paused;
        break;
    case 'h':
    case '?':
        shown->is_help = !shown->is_help;
        break;
    default:
        break;
    }
    gm_top_choose(top, follow);
    gm_top_text(stdout, top, follow);
    return true;
}

/* Until the next look; false: the user has seen enough. */
static bool wait_for_keys(uint64_t until_ns, struct gm_top *top, const struct gm_follow *follow)
{
    for (uint64_t now = now_ns(); top->shown.is_paused || now < until_ns; now = now_ns()) {
        uint64_t left = now < until_ns ? (until_ns - now) / 1000000 + 1 : LONGEST_WAIT_MS;
        int key = gm_terminal_key((int)(left < LONGEST_WAIT_MS ? left : LONGEST_WAIT_MS));
        if (key != GM_TERMINAL_NO_KEY && !obey_key(key, top, follow))
            return false;
    }
    return true;
}

static int follow(const char *path, const struct request *request)
{
    struct gm_follow follow;
    struct gm_top top;
    char error[256];
    int code = GM_EXIT_FINE;
    gm_follow_begin(&follow, path);
    gm_top_begin(&top, &request->options);
    top.shown.has_keys = request->options.clears && gm_terminal_begin();
    for (bool goes_on = true; goes_on;) {
        uint64_t begun = now_ns(), cpu = gm_follow_cpu_ns();
        if (!gm_follow_look(&follow, LOOK_NS, error, sizeof(error))) {
            gm_complain("%s: %s", path, error);
            code = GM_EXIT_UNREADABLE;
            break;
        }
        gm_top_note(&top, &follow, begun);
        (request->options.json ? gm_top_json : gm_top_text)(stdout, &top, &follow);
        goes_on =
            !request->once && follow.trace->ending == GM_ENDING_RUNNING && fflush(stdout) == 0;
        if (!goes_on)
            break;
        uint64_t wanted = (gm_follow_cpu_ns() - cpu) * SHARE;
        uint64_t turn = wanted > TURN_NS ? wanted : TURN_NS;
        if (top.shown.has_keys)
            goes_on = wait_for_keys(begun + turn, &top, &follow);
        else
            rest_until(begun + turn);
    }
    gm_terminal_end();
    gm_top_end(&top);
    gm_follow_end(&follow);
    return code;
}

/* Of several traces those that grow are meant, if there are any. */
static void keep_running(struct gm_run_traces *run)
{
    size_t kept = 0;
    bool *runs = gm_allocate(run->count + 1, sizeof(*runs));
    for (size_t i = 0; run->count > 1 && i < run->count; i++) {
        char error[256];
        struct gm_trace *trace = gm_trace_open_at_once(run->paths[i], NULL, error, sizeof(error));
        runs[i] = trace && trace->ending == GM_ENDING_RUNNING;
        kept += runs[i];
        gm_trace_close(trace);
    }
    size_t count = kept ? run->count : 0;
    for (size_t i = kept = 0; i < count; i++)
        if (runs[i])
            run->paths[kept++] = run->paths[i];
        else
            free(run->paths[i]);
    run->count = count ? kept : run->count;
    free(runs);
}

static int choose_one(const struct gm_run_traces *run)
{
    gm_complain("top: one process at a time, not %zu: name one of", run->count);
    for (size_t i = 0; i < run->count && i < CHOICES; i++)
        gm_complain("  %s", run->paths[i]);
    return GM_EXIT_USAGE;
}

static int find_and_follow(const struct request *request, char **arguments, size_t count)
{
    struct gm_run_traces run = {0};
    if (count == 1 && is_pid(arguments[0])) {
        char *path = trace_of(arguments[0]);
        int code = path ? follow(path, request) : GM_EXIT_NOTHING;
        free(path);
        return code;
    }
    int code = gm_run_find(&run, arguments, count);
    keep_running(&run);
    if (run.count > 1)
        code = choose_one(&run);
    else if (run.count)
        code = follow(run.paths[0], request);
    gm_run_free(&run);
    return code;
}

int gm_cmd_top(int count, char **arguments)
{
    struct request request = {.options = {.top = 10, .stacks = {.names = true}}};
    for (int option; (option = gm_next_option(count, arguments, own_options)) != -1;) {
        switch (option) {
        case 'n':
            if (!gm_parse_count("--top", optarg, &request.options.top))
                return GM_EXIT_USAGE;
            break;
        case ONCE:
            request.once = true;
            break;
        case JSON:
            request.options.json = true;
            break;
        default:
            if (!gm_take_stack_option(option, &request.options.stacks))
                return GM_EXIT_USAGE;
        }
    }
    request.options.clears = !request.once && !request.options.json && isatty(STDOUT_FILENO);
    return find_and_follow(&request, arguments + optind, (size_t)(count - optind));
}
