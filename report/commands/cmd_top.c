/* gpumem top: who holds the memory of a running process, now. */
#include "base/memory.h"
#include "commands/command.h"
#include "render/top/top.h"
#include "runs/runs.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TURN_NS UINT64_C(500000000) /* between two looks */
#define SHARE 20u /* of the time at most one in so many is spent looking: 5 % of a core */

static void print_help(void)
{
    puts("usage: gpumem top [OPTION...] [PID|TRACE]\n"
         "\n"
         "Follows the trace of a running process, twice a second: memory now and at its\n"
         "peak, by library, and the places that hold most of it or grew in the last\n"
         "minute. Nothing is asked of the process. Without an argument: the only trace of\n"
         "the newest run in this folder. It ends with the process, or with Ctrl-C.\n"
         "\n"
         "  -n, --top N        places shown (10)\n"
         "      --once         one look, then end\n"
         "      --json         each look as a line of JSON (docs/top.md)\n"
         "      --no-symbols, --sysroot DIR, --no-local-files  as for report\n"
         "  -h, --help\n"
         "      --version");
}

/* ---- the trace of a process ------------------------------------------------------------------ */

static bool ends_with(const char *text, const char *end)
{
    size_t size = strlen(text), wanted = strlen(end);
    return size >= wanted && strcmp(text + size - wanted, end) == 0;
}

/* A file that the process has mapped, by its name there: it may see another file system. */
static bool is_trace(const char *path)
{
    char magic[8];
    FILE *file = fopen(path, "re");
    bool is = file && fread(magic, 1, sizeof(magic), file) == sizeof(magic) &&
              memcmp(magic, GM_TRACE_MAGIC, sizeof(magic)) == 0;
    if (file)
        fclose(file);
    return is;
}

/* The trace that the process writes, in memory of the caller's; NULL after a complaint. */
static char *trace_of(const char *pid)
{
    char path[64], *line = NULL, *found = NULL;
    size_t capacity = 0;
    snprintf(path, sizeof(path), "/proc/%s/maps", pid);
    FILE *maps = fopen(path, "re");
    if (!maps) {
        gm_complain("top: process %s: %s", pid, strerror(errno));
        return NULL;
    }
    while (!found && getline(&line, &capacity, maps) > 0) {
        char *name = strchr(line, '/');
        line[strcspn(line, "\n")] = 0;
        if (!name || !strstr(line, "rw-s") || !ends_with(name, ".trace"))
            continue;
        size_t size = strlen(name) + 64;
        found = gm_allocate(size, 1);
        snprintf(found, size, "/proc/%s/root%s", pid, name);
        if (!is_trace(found)) {
            free(found);
            found = NULL;
        }
    }
    free(line);
    fclose(maps);
    if (!found)
        gm_complain("top: process %s writes no trace: was it started with gpumem run, and has it "
                    "called CUDA?",
                    pid);
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

static void rest(uint64_t spent_ns)
{
    uint64_t pause = spent_ns * (SHARE - 1) > TURN_NS ? spent_ns * (SHARE - 1) : TURN_NS;
    struct timespec time = {(time_t)(pause / 1000000000), (long)(pause % 1000000000)};
    nanosleep(&time, NULL);
}

static int follow(const char *path, const struct request *request)
{
    struct gm_follow follow;
    struct gm_top top;
    char error[256];
    int code = GM_EXIT_FINE;
    gm_follow_begin(&follow, path);
    gm_top_begin(&top, &request->options);
    for (bool goes_on = true; goes_on;) {
        uint64_t begun = now_ns();
        if (!gm_follow_look(&follow, error, sizeof(error))) {
            gm_complain("%s: %s", path, error);
            code = GM_EXIT_UNREADABLE;
            break;
        }
        gm_top_note(&top, &follow, begun);
        (request->options.json ? gm_top_json : gm_top_text)(stdout, &top, &follow);
        goes_on =
            !request->once && follow.trace->ending == GM_ENDING_RUNNING && fflush(stdout) == 0;
        if (goes_on)
            rest(now_ns() - begun);
    }
    gm_top_end(&top);
    gm_follow_end(&follow);
    return code;
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
    if (run.count > 1)
        code = gm_complain("top: one process at a time, not %zu: name it", run.count);
    else if (run.count)
        code = follow(run.paths[0], request);
    gm_run_free(&run);
    return code;
}

int gm_cmd_top(int count, char **arguments)
{
    enum { ONCE = GM_OPTION_FIRST, JSON };
    static const struct option options[] = {{"top", required_argument, NULL, 'n'},
                                            {"once", no_argument, NULL, ONCE},
                                            {"json", no_argument, NULL, JSON},
                                            GM_NAME_OPTIONS,
                                            GM_COMMON_OPTIONS};
    struct request request = {.options = {.top = 10, .stacks = {.names = true}}};
    for (int option; (option = gm_next_option(count, arguments, ":n:h", options)) != -1;) {
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
        case GM_OPTION_HELP:
            print_help();
            return GM_EXIT_FINE;
        case GM_OPTION_VERSION:
            gm_print_version();
            return GM_EXIT_FINE;
        default:
            if (!gm_take_stack_option(option, &request.options.stacks))
                return GM_EXIT_USAGE;
        }
    }
    request.options.clears = !request.once && !request.options.json && isatty(STDOUT_FILENO);
    return find_and_follow(&request, arguments + optind, (size_t)(count - optind));
}
