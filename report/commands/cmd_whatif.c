/* gpumem whatif: what PyTorch's allocator would have reserved under other settings. */
#include "base/limit.h"
#include "base/memory.h"
#include "base/size.h"
#include "commands/apart.h"
#include "commands/command.h"
#include "render/whatif_page.h"
#include "runs/runs.h"
#include "torch/open.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_help(void)
{
    puts("usage: gpumem whatif [OPTION...] [TRACE]\n"
         "\n"
         "Replays the requests of a trace, or of a memory snapshot of PyTorch, through a\n"
         "replica of PyTorch's caching allocator (docs/what-if.md). Without TRACE: the\n"
         "only trace of the newest run in this folder.\n"
         "\n"
         "      --set NAME=VALUE[,NAME=VALUE...]\n"
         "                     settings as in PYTORCH_ALLOC_CONF, on top of those recorded;\n"
         "                     can be given several times\n"
         "      --advise       all settings that make sense, the least risky first\n"
         "      --memory SIZE  on a device with so much memory (24G)\n"
         "      --device N     instead of the one that reserved most\n"
         "      --json         for tools\n"
         "      --no-limits    read on where a trace asks for more than its size should\n"
         "  -h, --help\n"
         "      --version");
}

struct wish {
    const char **sets;
    size_t count, capacity;
    uint64_t memory;
    int device;
    bool advise, json, colour;
};

static bool read_history(struct gm_history *history, const char *path, int device)
{
    char error[256] = "";
    struct gm_torch_file file;
    bool is_read = false;
    if (gm_torch_map(path, &file)) {
        struct gm_torch_snapshot *snapshot =
            gm_torch_snapshot_read(file.bytes, file.size, error, sizeof(error));
        is_read =
            snapshot && gm_history_of_snapshot(history, snapshot, device, error, sizeof(error));
        gm_torch_snapshot_free(snapshot);
        gm_torch_unmap(&file);
    } else {
        struct gm_trace *trace = gm_trace_open(path, error, sizeof(error));
        is_read = trace && gm_history_of_trace(history, trace, device, error, sizeof(error));
        if (is_read)
            gm_history_guess(history);
        gm_trace_close(trace);
    }
    if (!is_read)
        gm_complain("%s: %s", path, error);
    return is_read;
}

static void print(const struct wish *wish, const struct gm_whatif *whatif)
{
    struct gm_page page = {.out = stdout, .colour = wish->colour};
    if (wish->json)
        gm_whatif_json(stdout, whatif);
    else
        gm_whatif_text(&page, whatif, wish->advise);
}

/* The exit code is the answer: 0 before anything was read. */
static void answer(const char *path, const void *wish_of, void *code)
{
    const struct wish *wish = wish_of;
    struct gm_whatif whatif = {0};
    char error[256];
    *(int *)code = GM_EXIT_UNREADABLE;
    if (!read_history(&whatif.history, path, wish->device))
        return;
    whatif.memory = wish->memory ? wish->memory : whatif.history.capacity;
    whatif.total = wish->memory ? wish->memory : whatif.history.total;
    whatif.as_recorded = gm_replay_as_recorded(&whatif.history);
    bool good = true;
    for (size_t i = 0; i < wish->count && good; i++)
        good = gm_whatif_add(&whatif, wish->sets[i], error, sizeof(error));
    if (!good) {
        gm_complain("--set: %s", error);
        *(int *)code = GM_EXIT_USAGE;
    } else {
        if (wish->advise)
            gm_whatif_add_all(&whatif);
        else if (!wish->count)
            gm_whatif_add(&whatif, "", error, sizeof(error));
        whatif.recorded = gm_replay_recorded(&whatif.history);
        whatif.bounds = gm_replay_bounds(&whatif.history);
        gm_whatif_run(&whatif);
        if (wish->advise)
            gm_whatif_rank(&whatif);
        print(wish, &whatif);
        bool is_whole = !gm_limits_reached();
        if (!is_whole)
            gm_complain("%s: asks for more memory or work than a trace of its size should, and was "
                        "read in part "
                        "(whatif --no-limits reads on)",
                        path);
        *(int *)code = is_whole ? GM_EXIT_FINE : GM_EXIT_UNREADABLE;
    }
    free(whatif.settings);
    gm_history_free(&whatif.history);
}

static int answer_one(const struct wish *wish, char **arguments, size_t count)
{
    struct gm_run_traces run;
    int code = gm_run_find(&run, arguments, count), answered = GM_EXIT_UNREADABLE;
    if (run.count > 1)
        code = gm_complain("whatif: one trace at a time, not %zu: name it", run.count);
    else if (run.count)
        code = gm_apart(answer, run.paths[0], wish, &answered, sizeof(answered))
                   ? answered
                   : GM_EXIT_UNREADABLE;
    gm_run_free(&run);
    return code;
}

enum { SET = GM_OPTION_FIRST, ADVISE, MEMORY, DEVICE, JSON, NO_LIMITS };

static bool take_option(struct wish *wish, int option)
{
    uint64_t number;
    char *stop;
    switch (option) {
    case SET:
        GM_RESERVE(wish->sets, wish->capacity, wish->count + 1);
        wish->sets[wish->count++] = optarg;
        return true;
    case ADVISE:
        return wish->advise = true;
    case MEMORY:
        if (gm_size_parse(optarg, &wish->memory) && wish->memory)
            return true;
        gm_complain("--memory: '%s' is not a size such as 24G", optarg);
        return false;
    case DEVICE:
        number = strtoul(optarg, &stop, 10);
        wish->device = (int)number;
        if (optarg[0] >= '0' && optarg[0] <= '9' && !*stop && number <= INT8_MAX)
            return true;
        gm_complain("--device: '%s' is not the number of a device", optarg);
        return false;
    case JSON:
        return wish->json = true;
    case NO_LIMITS:
        gm_limits_lift();
        return true;
    default:
        return false;
    }
}

int gm_cmd_whatif(int count, char **arguments)
{
    static const struct option options[] = {{"set", required_argument, NULL, SET},
                                            {"advise", no_argument, NULL, ADVISE},
                                            {"memory", required_argument, NULL, MEMORY},
                                            {"device", required_argument, NULL, DEVICE},
                                            {"json", no_argument, NULL, JSON},
                                            {"no-limits", no_argument, NULL, NO_LIMITS},
                                            GM_COMMON_OPTIONS};
    struct wish wish = {.device = GM_ANY_DEVICE, .colour = gm_wants_colour()};
    int code = -1;
    for (int option;
         code < 0 && (option = gm_next_option(count, arguments, ":h", options)) != -1;) {
        if (option == GM_OPTION_HELP || option == GM_OPTION_VERSION) {
            if (option == GM_OPTION_HELP)
                print_help();
            else
                gm_print_version();
            code = GM_EXIT_FINE;
        } else if (!take_option(&wish, option)) {
            code = GM_EXIT_USAGE;
        }
    }
    if (code < 0)
        code = answer_one(&wish, arguments + optind, (size_t)(count - optind));
    free(wish.sets);
    return code;
}
