/* gpumem export: what a trace says, in the formats of other programs. */
#include "commands/apart.h"
#include "commands/command.h"
#include "commands/outputs.h"
#include "commands/session.h"
#include "output/headline.h"
#include "output/output_file.h"
#include "tools/runs/runs.h"
#include <stdio.h>
#include <stdlib.h>

enum { AT = GM_OPTION_FIRST };

static const struct gm_option own_options[] = {
    {GM_PROSE, "usage: gpumem export --format FORMAT [OPTION...] [TRACE]\n"
               "\n"
               "Writes one trace in the format of another program (docs/export.md). Without\n"
               "TRACE: the only trace of the newest run in this folder.\n"
               "\n"},
    {'f', "  -f, --format FORMAT\n"
          "         collapsed    stacks with bytes, for flamegraph.pl and inferno\n"
          "         csv          a row for each allocation and block\n"
          "         memory_viz   a snapshot as PyTorch's, for pytorch.org/memory_viz\n"
          "         ndjson       the same and the stacks as JSON lines, for DuckDB and jq\n"
          "         openmetrics  totals, for Prometheus and GitLab\n"
          "         perfetto     counters and heap profiles, for ui.perfetto.dev\n"
          "         pprof        for go tool pprof, Grafana, Datadog\n"
          "         speedscope   for speedscope.app\n"
          "         sqlite       SQL that makes a database: ... | sqlite3 run.db\n"},
    {AT, "      --at MOMENT    peak, oom (the last refusal), end (what was left) or a time\n"
         "                     since the start: 1.5s, 250ms, 1000ns; csv and ndjson then\n"
         "                     have places instead of all allocations\n"},
    {'o', "  -o, --output FILE  instead of stdout\n"},
    GM_STACK_OPTIONS,
    GM_COMMON_OPTIONS,
    {GM_PROSE, NULL},
};

struct request {
    struct gm_stacks_options stacks;
    struct gm_output_options options;
    const struct gm_output *output;
};

/* What a reader answers. */
struct answer {
    bool is_written;
    bool lacks_moment; /* that was asked for */
};

static void read_export_trace(const char *path, const void *request_of, void *answer_of)
{
    const struct request *request = request_of;
    struct answer *answer = answer_of;
    struct gm_session session;
    if (!gm_session_open(&session, path, &request->stacks,
                         request->output->needs | GM_NEEDS_MOMENTS))
        return;
    gm_say_running(session.trace);
    char *why_not = gm_no_moment_text(&session.model->runs[0], &request->options.when);
    if (why_not)
        gm_complain("%s: %s", path, why_not);
    else
        request->output->write(stdout, session.model, &request->options);
    answer->lacks_moment = why_not != NULL;
    answer->is_written = gm_session_close(&session) && !why_not;
    free(why_not);
}

static int write_export(const struct request *request, const char *path, const char *output)
{
    struct gm_output_file file;
    struct answer answer = {0};
    if (!gm_output_file_open(&file, output))
        return GM_EXIT_USAGE;
    bool is_read = gm_apart(read_export_trace, path, request, &answer, sizeof(answer));
    /* What could not be read to its end is told, but is worth having. */
    bool is_whole = gm_output_file_close(&file, is_read && answer.is_written);
    bool is_good = is_read && answer.is_written && is_whole;
    return is_good ? GM_EXIT_FINE : answer.lacks_moment ? GM_EXIT_USAGE : GM_EXIT_UNREADABLE;
}

static int export_one(const struct request *request, char **arguments, size_t count,
                      const char *output)
{
    struct gm_run_traces run;
    int code = gm_run_find_any(&run, arguments, count);
    if (run.count > 1 || count > 1)
        code = gm_complain("export: one trace at a time, not %zu: name it",
                           run.count > count ? run.count : count);
    else if (run.count)
        code = write_export(request, run.paths[0], output);
    gm_run_free(&run);
    return code;
}

int gm_cmd_export(int count, char **arguments)
{
    struct request request = {.stacks = {.names = true}};
    const char *output = "-";
    for (int option; (option = gm_next_option(count, arguments, own_options)) != -1;) {
        switch (option) {
        case 'f':
            request.output = gm_export_find(optarg);
            if (!request.output)
                return gm_complain("--format: '%s' is none; see gpumem export --help", optarg);
            break;
        case 'o':
            output = optarg;
            break;
        case AT:
            if (!gm_parse_moment(optarg, &request.options.when))
                return GM_EXIT_USAGE;
            break;
        default:
            if (!gm_take_stack_option(option, &request.stacks))
                return GM_EXIT_USAGE;
        }
    }
    if (!request.output)
        return gm_complain("export: --format is missing; see gpumem export --help");
    if (request.options.when.kind != GM_WHEN_DEFAULT && request.output->is_of_run)
        return gm_complain("--at: %s is of the whole run, and of no moment", request.output->name);
    return export_one(&request, arguments + optind, (size_t)(count - optind), output);
}
