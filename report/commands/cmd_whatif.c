/* gpumem whatif: what PyTorch's allocator would have reserved under other settings. */
#include "base/limit.h"
#include "base/memory.h"
#include "base/size.h"
#include "commands/apart.h"
#include "commands/command.h"
#include "commands/session.h"
#include "commands/whatif_page.h"
#include "input/torch/open.h"
#include "input/torch/stacks.h"
#include "names/stacks/known_libraries.h"
#include "names/stacks/stacks.h"
#include "tools/runs/runs.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SET = GM_OPTION_FIRST, ADVISE, MEMORY, DEVICE, JSON, NO_LIMITS };

static const struct gm_option own_options[] = {
    {GM_PROSE, "usage: gpumem whatif [OPTION...] [TRACE]\n"
               "\n"
               "Replays the requests of a trace, or of a memory snapshot of PyTorch, through a\n"
               "replica of PyTorch's caching allocator (docs/what-if.md). Without TRACE: the\n"
               "only trace of the newest run in this folder.\n"
               "\n"},
    {SET, "      --set NAME=VALUE[,NAME=VALUE...]\n"
          "                     settings as in PYTORCH_ALLOC_CONF, on top of those recorded;\n"
          "                     can be given several times\n"},
    {ADVISE, "      --advise       all settings that make sense, the least risky first\n"},
    {MEMORY, "      --memory SIZE  on a device with so much memory (24G)\n"},
    {DEVICE, "      --device N     instead of the one that reserved most\n"},
    {JSON, "      --json         for tools\n"},
    {NO_LIMITS, "      --no-limits    read on where a trace asks for more than its size should\n"},
    GM_COMMON_OPTIONS,
    {GM_PROSE, NULL},
};

struct wish {
    const char **sets;
    size_t count, capacity;
    uint64_t memory;
    int device;
    bool advise, json, colour;
    gm_whatif_taker *take; /* instead of printing; NULL */
    void *argument;
};

/* What a history is of: one of both. */
struct source {
    struct gm_trace *trace;
    struct gm_pickle_source file;
    struct gm_torch_snapshot *snapshot;
};

static bool read_history(struct source *source, struct gm_history *history, const char *path,
                         int device)
{
    char error[256] = "";
    bool is_read = false;
    if (gm_torch_map(path, &source->file)) {
        source->snapshot = gm_torch_snapshot_read(&source->file, error, sizeof(error));
        is_read = source->snapshot &&
                  gm_history_of_snapshot(history, source->snapshot, device, error, sizeof(error));
    } else {
        source->trace = gm_trace_open(path, error, sizeof(error));
        if (source->trace)
            gm_say_running(source->trace);
        is_read = source->trace &&
                  gm_history_of_trace(history, source->trace, device, error, sizeof(error));
    }
    if (is_read)
        gm_history_guess(history);
    else
        gm_complain("%s: %s", path, error);
    return is_read;
}

static void close_source(struct source *source)
{
    gm_torch_snapshot_free(source->snapshot);
    if (source->file.bytes)
        gm_torch_unmap(&source->file);
    gm_trace_close(source->trace);
}

/* ---- places ---------------------------------------------------------------------------------- */

/* "file:line", cleaned. */
static char *place_text(struct gm_text file, uint64_t line)
{
    char text[4096];
    if (!file.size)
        return NULL;
    int size = snprintf(text, sizeof(text), "%.*s:%" PRIu64,
                        (int)(file.size < 4000 ? file.size : 4000), file.bytes, line);
    return gm_clean_copy((struct gm_text){text, (size_t)size});
}

static char *place_in_trace(void *stacks, const struct gm_step *step)
{
    const struct gm_frame *frame = gm_stack_telling_frame(gm_stacks_get(stacks, step->stack, 0));
    if (!frame)
        return NULL;
    if (frame->file)
        return place_text((struct gm_text){frame->file, strlen(frame->file)}, frame->line);
    return gm_clean_copy((struct gm_text){frame->function, strlen(frame->function)});
}

static bool is_python(struct gm_text file)
{
    return file.size > 3 && memcmp(file.bytes + file.size - 3, ".py", 3) == 0;
}

struct device_history {
    const struct gm_image *image;
    const struct gm_torch_event *events;
};

/* The innermost line of Python that is of no package; else the innermost of Python. */
static char *place_in_snapshot(void *of, const struct gm_step *step)
{
    const struct device_history *history = of;
    uint32_t stack = history->events[step->stack].stack, line, found_line = 0;
    struct gm_text file, found = {"", 0};
    while (stack) {
        stack = gm_torch_caller(history->image, stack, &file, &line);
        bool is_own = !gm_known_package(file) && !gm_is_generated(file);
        if (!is_python(file) || (found.size && !is_own))
            continue;
        found = file;
        found_line = line;
        if (is_own)
            break;
    }
    return found.size ? place_text(found, found_line) : NULL;
}

static void name_places(struct gm_whatif *whatif, const struct source *source)
{
    if (source->trace) {
        static const struct gm_stacks_options options = {.names = true};
        struct gm_stacks *stacks = gm_stacks_new(source->trace, &options);
        gm_whatif_name_places(whatif, place_in_trace, stacks);
        gm_stacks_free(stacks);
    } else {
        const struct gm_torch_device *device =
            gm_history_device(source->snapshot, whatif->history.device);
        struct device_history history = {&source->snapshot->image, device->events};
        gm_whatif_name_places(whatif, place_in_snapshot, &history);
    }
}

/* ---- the answer ------------------------------------------------------------------------------ */

static void print(const struct wish *wish, const struct gm_whatif *whatif)
{
    struct gm_page page = {.out = stdout, .colour = wish->colour};
    if (wish->take)
        wish->take(whatif, wish->argument);
    else if (wish->json)
        gm_whatif_json(stdout, whatif);
    else
        gm_whatif_text(&page, whatif, wish->advise);
}

/* Adds the settings that were wished for. */
static bool add_settings(const struct wish *wish, struct gm_whatif *whatif)
{
    char error[256];
    for (size_t i = 0; i < wish->count; i++) {
        if (gm_whatif_add(whatif, wish->sets[i], error, sizeof(error)))
            continue;
        gm_complain("--set: %s", error);
        return false;
    }
    if (wish->advise)
        gm_whatif_add_all(whatif);
    else if (!wish->count)
        gm_whatif_add(whatif, "", error, sizeof(error));
    return true;
}

static void run_all(const struct wish *wish, struct gm_whatif *whatif, const struct source *source)
{
    whatif->recorded = gm_replay_recorded(&whatif->history);
    whatif->bounds = gm_replay_bounds(&whatif->history);
    gm_whatif_run(whatif);
    if (wish->advise)
        gm_whatif_rank(whatif);
    name_places(whatif, source);
}

static enum gm_exit_code answer_from(const struct wish *wish, struct source *source,
                                     const char *path)
{
    struct gm_whatif whatif = {0};
    if (!read_history(source, &whatif.history, path, wish->device))
        return GM_EXIT_UNREADABLE;
    whatif.memory = wish->memory ? wish->memory : whatif.history.capacity;
    whatif.total = wish->memory ? wish->memory : whatif.history.total;
    whatif.as_recorded = gm_replay_as_recorded(&whatif.history);
    enum gm_exit_code code = GM_EXIT_USAGE;
    if (add_settings(wish, &whatif)) {
        run_all(wish, &whatif, source);
        print(wish, &whatif);
        code = gm_limits_reached() ? GM_EXIT_UNREADABLE : GM_EXIT_FINE;
        if (code != GM_EXIT_FINE)
            gm_complain("%s: asks for more memory or work than a trace of its size should, and was "
                        "read in part (whatif --no-limits reads on)",
                        path);
    }
    gm_whatif_free_settings(&whatif);
    gm_history_free(&whatif.history);
    return code;
}

/* The exit code is the answer. */
static void answer_trace(const char *path, const void *wish, void *code)
{
    struct source source = {0};
    *(int *)code = answer_from(wish, &source, path);
    close_source(&source);
}

int gm_whatif_advise(const char *path, gm_whatif_taker *take, void *argument)
{
    struct wish wish = {
        .device = GM_ANY_DEVICE, .advise = true, .take = take, .argument = argument};
    int code;
    answer_trace(path, &wish, &code);
    return code;
}

static int answer_one(const struct wish *wish, char **arguments, size_t count)
{
    struct gm_run_traces run;
    int code = gm_run_find_any(&run, arguments, count), answered = GM_EXIT_UNREADABLE;
    if (run.count > 1)
        code = gm_complain("whatif: one trace at a time, not %zu: name it", run.count);
    else if (run.count)
        code = gm_apart(answer_trace, run.paths[0], wish, &answered, sizeof(answered))
                   ? answered
                   : GM_EXIT_UNREADABLE;
    gm_run_free(&run);
    return code;
}

static bool take_whatif_option(struct wish *wish, int option)
{
    switch (option) {
    case SET:
        GM_APPEND(wish->sets, wish->capacity, wish->count, optarg);
        return true;
    case ADVISE:
        return wish->advise = true;
    case MEMORY:
        if (gm_size_parse(optarg, &wish->memory) && wish->memory)
            return true;
        gm_complain("--memory: '%s' is not a size such as 24G", optarg);
        return false;
    case DEVICE:
        return gm_parse_device(optarg, &wish->device);
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
    struct wish wish = {.device = GM_ANY_DEVICE, .colour = gm_wants_colour()};
    int code = -1;
    for (int option; code < 0 && (option = gm_next_option(count, arguments, own_options)) != -1;)
        if (!take_whatif_option(&wish, option))
            code = GM_EXIT_USAGE;
    if (code < 0)
        code = answer_one(&wish, arguments + optind, (size_t)(count - optind));
    free(wish.sets);
    return code;
}
