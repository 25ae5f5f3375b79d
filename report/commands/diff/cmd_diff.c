/* gpumem diff: what changed between two runs. */
#include "base/each.h"
#include "base/memory.h"
#include "base/size.h"
#include "commands/apart.h"
#include "commands/command.h"
#include "commands/job.h"
#include "commands/session.h"
#include "model/merge.h"
#include "output/export/export.h"
#include "output/html/html.h"
#include "output/output_file.h"
#include "tools/diff/print.h"
#include "tools/ranks/summary_model.h"
#include "tools/runs/runs.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOP 10u       /* rows of a section */
#define HTML_TOP 100u /* of a table in the page */

enum { MIN_SIZE = GM_OPTION_FIRST, AS_JSON, AS_HTML, EXIT_CODE };

static const struct gm_option own_options[] = {
    {GM_PROSE,
     "usage: gpumem diff [OPTION...] BASE NEW\n"
     "\n"
     "Says what changed from BASE to NEW: totals, findings, places that came, went, grew\n"
     "or shrank, and who holds memory by process, library, category and phase\n"
     "(docs/diff.md). Either can be a trace, a memory snapshot of PyTorch, a file of\n"
     "gpumem summarize, or a folder or a quoted pattern: the newest run in it, with all\n"
     "its processes. Places are matched by function, file and module, not by line.\n"
     "\n"},
    {'n', "  -n, --top N        rows of each list (10)\n"},
    {MIN_SIZE, "      --min-size SIZE  changes of less are none (any change is one)\n"},
    {AS_JSON, "      --json         everything, as JSON; the same as --format json\n"},
    {AS_HTML, "      --html FILE    both as a page to look at, one compared with the other\n"},
    {'f', "  -f, --format FORMAT  text, json, or pprof: a profile for go tool pprof, in which\n"
          "                     BASE counts down\n"},
    {'o', "  -o, --output FILE  instead of stdout\n"},
    {EXIT_CODE, "      --exit-code    1 if there is a difference\n"},
    GM_STACK_OPTIONS,
    GM_COMMON_OPTIONS,
    {GM_PROSE,
     "\n"
     "Exit codes: 0 compared, 1 different (--exit-code), 2 wrong usage, 3 a trace is\n"
     "unreadable, or with --exit-code incomplete, 4 nothing was recorded in BASE or NEW.\n"},
    {GM_PROSE, NULL},
};

enum format { TEXT, JSON, PPROF, HTML };
enum { BASE, NEWER, SIDES };

struct request {
    struct gm_stacks_options stacks;
    struct gm_output_options options;
    enum format format;
    uint64_t least; /* bytes that a change has */
    struct gm_run_traces traces[SIDES];
    bool is_of_summaries;
};

/* What the process that compares answers. */
struct answer {
    bool is_done;
    bool is_whole; /* each trace was read to its end */
    bool is_complete;
    bool differs;
    bool is_empty[SIDES];
};

/* One side, as it is read. */
struct loading {
    struct gm_model **models; /* of one trace each */
    size_t count;
    bool is_whole;
};

/* ---- reading --------------------------------------------------------------------------------- */

/* The run that the page compares the one just read with; -1: none. */
static int counterpart(const struct loading *base, const struct gm_model_run *run, size_t number)
{
    for (size_t i = 0; i < base->count; i++)
        if (base->models[i]->runs[0].rank.rank == run->rank.rank && run->rank.rank >= 0)
            return (int)i;
    return number < base->count ? (int)number : -1;
}

/* Reads a trace, keeps a model that does not depend on it, and adds its part to the page. */
static void load_trace(const struct request *request, struct loading sides[SIDES], unsigned side,
                       const char *path, FILE *parts)
{
    struct gm_session session;
    struct loading *own = &sides[side];
    if (!gm_session_open(&session, path, &request->stacks, GM_NEEDS_ALL)) {
        own->is_whole = false;
        return;
    }
    const struct gm_model *const one[] = {session.model};
    if (parts)
        gm_html_run(parts, session.model, &session.model->runs[0], &request->options,
                    side == BASE ? -1
                                 : counterpart(&sides[BASE], &session.model->runs[0], own->count));
    own->models[own->count++] = gm_model_merge(one, 1);
    own->is_whole &= gm_session_close(&session);
}

static struct gm_model *load_traces(const struct request *request, struct loading sides[SIDES],
                                    unsigned side, FILE *parts)
{
    const struct gm_run_traces *traces = &request->traces[side];
    struct loading *own = &sides[side];
    *own = (struct loading){.models = gm_allocate(traces->count + 1, sizeof(*own->models)),
                            .is_whole = true};
    for (size_t i = 0; i < traces->count; i++)
        load_trace(request, sides, side, traces->paths[i], parts);
    return own->count ? gm_model_merge((const struct gm_model *const *)own->models, own->count)
                      : NULL;
}

static struct gm_model *load_summaries(const struct request *request, unsigned side, bool *is_whole)
{
    struct gm_job_request job = {.stacks = request->stacks};
    struct gm_summaries summaries = {0};
    const struct gm_run_traces *traces = &request->traces[side];
    *is_whole &= gm_job_load(&summaries, traces->paths, traces->count, &job);
    gm_summaries_sort(&summaries);
    struct gm_model *model = summaries.count ? gm_model_of_summaries(&summaries) : NULL;
    gm_summaries_free(&summaries);
    return model;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void write_page(const struct gm_diff *diff, const char *parts, size_t size)
{
    gm_html_begin(stdout);
    gm_diff_html(stdout, diff, HTML_TOP);
    fwrite(parts, 1, size, stdout);
    gm_html_end(stdout);
}

static void write_diff(const struct request *request, const struct gm_diff *diff, const char *parts,
                       size_t size)
{
    struct gm_page page = {.out = stdout,
                           GM_SAME(&request->options, colour, all_frames, columns, ascii)};
    switch (request->format) {
    case TEXT:
        gm_diff_text(&page, diff, request->options.top);
        break;
    case JSON:
        gm_diff_json(stdout, diff);
        break;
    case PPROF:
        gm_pprof_write_difference(stdout, diff->base, diff->newer);
        break;
    case HTML:
        write_page(diff, parts, size);
        break;
    }
}

static bool is_complete(const struct gm_model *model)
{
    for (size_t i = 0; i < model->run_count; i++)
        if (!model->runs[i].complete || model->runs[i].is_overwritten)
            return false;
    return true;
}

static bool is_empty(const struct gm_model *model)
{
    for (size_t i = 0; i < model->run_count; i++)
        if (model->runs[i].verdict.state != GM_VERDICT_NOTHING)
            return false;
    return true;
}

/* Both sides are read in one process: the difference needs both. */
static void compare(const char *unused, const void *request_of, void *answer_of)
{
    const struct request *request = request_of;
    struct answer *answer = answer_of;
    struct gm_model *models[SIDES];
    struct loading sides[SIDES] = {{.is_whole = true}, {.is_whole = true}};
    char *parts = NULL;
    size_t size = 0;
    FILE *page = request->format == HTML ? open_memstream(&parts, &size) : NULL;
    (void)unused;
    for (unsigned side = 0; side < SIDES; side++)
        models[side] = request->is_of_summaries
                           ? load_summaries(request, side, &sides[side].is_whole)
                           : load_traces(request, sides, side, page);
    if (page)
        fclose(page);
    answer->is_whole = sides[BASE].is_whole && sides[NEWER].is_whole;
    if (models[BASE] && models[NEWER]) {
        struct gm_diff diff;
        gm_diff_make(&diff, models[BASE], models[NEWER], request->least);
        write_diff(request, &diff, parts, size);
        answer->is_done = true;
        answer->differs = diff.differs;
        answer->is_complete = is_complete(models[BASE]) && is_complete(models[NEWER]);
        for (unsigned side = 0; side < SIDES; side++)
            answer->is_empty[side] = is_empty(models[side]);
        gm_diff_free(&diff);
    }
    for (unsigned side = 0; side < SIDES; side++) {
        for (size_t i = 0; i < sides[side].count; i++)
            gm_model_free(sides[side].models[i]);
        free(sides[side].models);
        gm_model_free(models[side]);
    }
    free(parts);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int code_of(const struct answer *answer, bool asks_difference)
{
    if (!answer->is_done || !answer->is_whole)
        return GM_EXIT_UNREADABLE;
    for (unsigned side = 0; side < SIDES; side++)
        if (answer->is_empty[side]) {
            gm_complain("diff: nothing was recorded in %s", side == BASE ? "BASE" : "NEW");
            return GM_EXIT_NOTHING;
        }
    if (asks_difference && !answer->is_complete)
        return GM_EXIT_UNREADABLE;
    return asks_difference && answer->differs ? GM_EXIT_FINDINGS : GM_EXIT_FINE;
}

static int find_and_compare(struct request *request, char **arguments, const char *output,
                            bool asks_difference)
{
    struct gm_output_file file;
    struct answer answer = {0};
    int code = GM_EXIT_FINE;
    size_t count = 1;
    for (unsigned side = 0; side < SIDES; side++) {
        int found = gm_run_find(&request->traces[side], arguments + side, 1);
        struct gm_run_traces *traces = &request->traces[side];
        code = code ? code : found;
        count += traces->count;
        for (size_t i = 0; i < traces->count; i++)
            request->is_of_summaries |= gm_run_is_summary(traces->paths[i]);
    }
    if (!code && request->stacks.redact && request->is_of_summaries)
        code = gm_complain(
            "--redact: a summary is redacted when it is written: gpumem summarize --redact");
    request->options.page_size = GM_HTML_PAGE_SIZE / count + 1;
    if (!code && !gm_output_file_open(&file, output))
        code = GM_EXIT_USAGE;
    if (!code) {
        if (!gm_apart(compare, arguments[NEWER], request, &answer, sizeof(answer)))
            answer = (struct answer){0};
        bool is_written = gm_output_file_close(&file, answer.is_done);
        code = is_written ? code_of(&answer, asks_difference) : GM_EXIT_UNREADABLE;
    }
    for (unsigned side = 0; side < SIDES; side++)
        gm_run_free(&request->traces[side]);
    return code;
}

static bool take_format(struct request *request, const char *text)
{
    static const char *const names[] = {[TEXT] = "text", [JSON] = "json", [PPROF] = "pprof"};
    for (unsigned format = TEXT; format <= PPROF; format++)
        if (strcmp(text, names[format]) == 0) {
            request->format = format;
            return true;
        }
    gm_complain("--format: '%s' is none of text, json and pprof", text);
    return false;
}

int gm_cmd_diff(int count, char **arguments)
{
    struct request request = {.stacks = {.names = true}, .options = {.colour = gm_wants_colour()}};
    const char *output = "-";
    bool asks_difference = false;
    uint64_t top = TOP;
    for (int option; (option = gm_next_option(count, arguments, own_options)) != -1;) {
        switch (option) {
        case 'n':
            if (!gm_parse_count("--top", optarg, &top))
                return GM_EXIT_USAGE;
            break;
        case MIN_SIZE:
            if (!gm_size_parse(optarg, &request.least))
                return gm_complain("--min-size: '%s' is not a size such as 64M or 1.5GiB", optarg);
            break;
        case AS_JSON:
            request.format = JSON;
            break;
        case AS_HTML:
            request.format = HTML;
            output = optarg;
            break;
        case 'f':
            if (!take_format(&request, optarg))
                return GM_EXIT_USAGE;
            break;
        case 'o':
            output = optarg;
            break;
        case EXIT_CODE:
            asks_difference = true;
            break;
        default:
            if (!gm_take_stack_option(option, &request.stacks))
                return GM_EXIT_USAGE;
        }
    }
    if (count - optind != SIDES)
        return gm_complain("diff: needs two runs, BASE and NEW; see gpumem diff --help");
    request.options.top = top < SIZE_MAX - 1 ? top : SIZE_MAX - 1;
    request.options.all_frames = request.stacks.all_frames;
    gm_fit_terminal(&request.options);
    return find_and_compare(&request, arguments + optind, output, asks_difference);
}
