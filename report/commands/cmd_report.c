/* gpumem report: what the memory was used for. */
#include "base/each.h"
#include "base/size.h"
#include "commands/apart.h"
#include "commands/command.h"
#include "commands/job.h"
#include "commands/outputs.h"
#include "commands/session.h"
#include "output/html/html.h"
#include "output/output_file.h"
#include "output/text/balance.h"
#include "output/text/report_text.h"
#include "tools/ranks/ranks_text.h"
#include "tools/runs/runs.h"
#include "version.h"
#include <stdio.h>
#include <stdlib.h>

enum { JSON = GM_OPTION_FIRST, SITE, AT, DEVICE, KIND, MIN_SIZE, THREAD, PHASE, HTML, HTML_SIZE };

static const struct gm_option own_options[] = {
    {GM_PROSE, "usage: gpumem report [OPTION...] [TRACE|FOLDER|SUMMARY...]\n"
               "\n"
               "Says who held the memory at its peak, what was never freed, and why allocations\n"
               "failed. Of several processes: a table, how the odd one differs, the page of the\n"
               "worst. Without TRACE: all processes of the newest run in this folder; a FOLDER\n"
               "or a quoted pattern means the newest run in it. A TRACE can be a memory snapshot\n"
               "of PyTorch (torch.cuda.memory._dump_snapshot), a SUMMARY is a file that gpumem\n"
               "summarize wrote.\n"
               "\n"},
    {'v', "  -v, --verbose      every section, instead of the page of some 40 lines\n"},
    {SITE, "      --site N|ID    all that is known of the place [N] of the page, or of an id\n"},
    {AT, "      --at MOMENT    who held memory then: peak, oom (the last refusal), end, or\n"
         "                     a time since the start such as 1.5s\n"},
    {DEVICE, "      --device N"},
    {KIND, ", --kind KIND"},
    {MIN_SIZE, ", --min-size SIZE\n"
               "                     who held memory at the peak or at that moment, of this\n"
               "                     device, kind (device, managed, pinned ...), or size alone\n"},
    {THREAD, "      --thread THREAD"},
    {PHASE, ", --phase NAME\n"
            "                     and of what this thread (number or name) allocated, or was\n"
            "                     allocated while a range was open or after a mark, alone;\n"
            "                     the peak is then that of what is shown\n"},
    {'n', "  -n, --top N        rows of each list (5 of most); findings are not counted\n"},
    {JSON, "      --json         everything, as JSON (docs/report-json.md)\n"},
    {HTML, "      --html FILE    a page to look at, which needs no network (docs/html.md)\n"},
    {HTML_SIZE, "      --html-size SIZE  of the events in it (22M); more are merged\n"},
    {GM_OPTION_ALL_FRAMES,
     "      --all-frames   also frames of CUDA, of the interpreter and before main; in\n"
     "                     text also each frame of a framework, folded otherwise\n"},
    {GM_OPTION_NO_SYMBOLS,
     "      --no-symbols   modules and offsets instead of functions and lines\n"},
    {GM_OPTION_DEBUGINFOD,
     "      --debuginfod   debug info may be downloaded, from DEBUGINFOD_URLS\n"},
    {GM_OPTION_SYSROOT, "      --sysroot DIR  modules are looked for below DIR first\n"},
    {GM_OPTION_NO_LOCAL_FILES,
     "      --no-local-files  no file is opened because a trace names its path: names\n"
     "                     come from below the sysroot and from debug info by build-id\n"},
    {GM_OPTION_REDACT,
     "      --redact       for others to read: without paths, arguments, environment,\n"
     "                     names of hosts and users (docs/security.md)\n"},
    {GM_OPTION_NO_LIMITS,
     "      --no-limits    read on where a trace asks for more memory or work than\n"
     "                     one of its size should\n"},
    GM_COMMON_OPTIONS,
    {GM_PROSE, NULL},
};

struct report {
    struct gm_stacks_options stacks;
    struct gm_output_options options;
    const struct gm_output *output;
    const char *file; /* instead of stdout; NULL */
};

/* What a reader answers. */
struct answer {
    bool is_shown;
    bool is_whole;
    bool is_unanswered; /* what was asked for is not in it */
    struct gm_balance_part part;
};

static void read_report_trace(const char *path, const void *report_of, void *answer_of)
{
    const struct report *report = report_of;
    struct answer *answer = answer_of;
    struct gm_session session;
    if (!gm_session_open(&session, path, &report->stacks, report->output->needs))
        return;
    char *unanswered = gm_text_unanswered(session.model, &report->options);
    if (unanswered)
        gm_complain("%s: %s", path, unanswered);
    else
        report->output->write(stdout, session.model, &report->options);
    gm_balance_of(&answer->part, session.model, &session.model->runs[0]);
    answer->is_unanswered = unanswered != NULL;
    answer->is_shown = !unanswered;
    answer->is_whole = gm_session_close(&session);
    free(unanswered);
}

static int read_apart(const struct report *report, const char *path, struct answer *answer)
{
    bool is_read = gm_apart(read_report_trace, path, report, answer, sizeof(*answer));
    return !is_read || !answer->is_whole ? GM_EXIT_UNREADABLE
           : answer->is_unanswered       ? GM_EXIT_USAGE
                                         : GM_EXIT_FINE;
}

static int write_report(struct report *report, char **paths, size_t count)
{
    const struct gm_output *output = report->output;
    struct gm_balance balance = {0};
    struct answer answer = {0};
    char number[32];
    int code = GM_EXIT_FINE;
    report->options.many = count > 1;
    if (count > 1 && output->begin_many)
        output->begin_many(stdout);
    for (size_t i = 0; i < count; i++) {
        int one = read_apart(report, paths[i], &answer);
        code = one > code ? one : code;
        report->options.follows |= answer.is_shown;
        snprintf(number, sizeof(number), "trace %zu", i + 1);
        gm_balance_add(&balance, report->stacks.redact ? number : paths[i], &answer.part);
    }
    if (count > 1 && output->end_many)
        output->end_many(stdout, report->options.follows);
    if (count > 1 && output != gm_output_find("json") && !report->file)
        gm_balance_text(stdout, &balance, report->options.colour);
    gm_balance_free(&balance);
    return code;
}

/* A page of nothing is not left behind. */
static int write_report_file(struct report *report, char **paths, size_t count)
{
    struct gm_output_file file;
    if (!gm_output_file_open(&file, report->file))
        return GM_EXIT_USAGE;
    if (!report->options.page_size)
        report->options.page_size = GM_HTML_PAGE_SIZE;
    report->options.page_size = report->options.page_size / count + 1;
    int code = write_report(report, paths, count);
    if (!gm_output_file_close(&file, report->options.follows))
        return GM_EXIT_UNREADABLE;
    if (report->options.follows)
        fprintf(stderr, "gpumem: page written to %s\n", report->file);
    return code;
}

/* Several processes: the job on one page, then the page of the worst. */
static int write_job(struct report *report, char **paths, size_t count)
{
    struct gm_job_request request = {.stacks = report->stacks};
    struct gm_summaries summaries = {0};
    struct gm_page page = {.out = stdout, GM_SAME(&report->options, colour, columns, ascii)};
    struct answer answer = {0};
    int code = GM_EXIT_FINE;
    if (!gm_job_load(&summaries, paths, count, &request))
        code = GM_EXIT_UNREADABLE;
    gm_summaries_sort(&summaries);
    const struct gm_summary *worst = gm_ranks_worst(&summaries);
    gm_ranks_text(&page, &summaries);
    if (worst && !worst->path)
        fputs(worst->page, stdout);
    int one = worst && worst->path ? read_apart(report, worst->path, &answer) : GM_EXIT_FINE;
    gm_summaries_free(&summaries);
    return one > code ? one : code;
}

/* What asks for a part of what is known, which outputs for all of it have no room for. */
static bool asks_for_part(const struct report *report)
{
    const struct gm_output_options *options = &report->options;
    return options->filter.is_set || options->when.kind != GM_WHEN_DEFAULT || options->site ||
           options->site_id;
}

static int write_any(struct report *report, char **paths, size_t count)
{
    bool has_summary = gm_job_any_summary(paths, count), is_of_job = count > 1 || has_summary;
    if (has_summary &&
        (asks_for_part(report) || report->output != &gm_output_text || report->options.verbose))
        return gm_complain("a summary has its page and its totals alone: --at, --site, --device, "
                           "--kind, --min-size, --thread, --phase, --json, --html and -v need the "
                           "trace");
    if (report->stacks.redact && has_summary)
        return gm_complain(
            "--redact: a summary is redacted when it is written: gpumem summarize --redact");
    if (report->output == &gm_output_text && is_of_job && !report->options.verbose)
        return write_job(report, paths, count);
    return write_report(report, paths, count);
}

/* The number of a place on the page, or its id. */
static bool parse_site(const char *text, struct gm_output_options *options)
{
    uint64_t number;
    uint32_t id;
    bool is_id = gm_id_parse(text, &id);
    if (!is_id && !gm_parse_count("--site", text, &number))
        return false;
    options->site = is_id ? 0 : number < UINT32_MAX ? (unsigned)number : UINT32_MAX;
    options->site_id = is_id ? (uint64_t)id + 1 : 0;
    return true;
}

int gm_cmd_report(int count, char **arguments)
{
    struct report report = {.stacks = {.names = true},
                            .options = {.colour = gm_wants_colour(),
                                        .filter = {.device = GM_FILTER_ANY, .kind = GM_FILTER_ANY}},
                            .output = &gm_output_text};
    uint64_t top = 0;
    for (int option; (option = gm_next_option(count, arguments, own_options)) != -1;) {
        switch (option) {
        case 'n':
            if (!gm_parse_count("--top", optarg, &top))
                return GM_EXIT_USAGE;
            break;
        case 'v':
            report.options.verbose = true;
            break;
        case SITE:
            if (!parse_site(optarg, &report.options))
                return GM_EXIT_USAGE;
            break;
        case AT:
            if (!gm_parse_moment(optarg, &report.options.when))
                return GM_EXIT_USAGE;
            break;
        case DEVICE:
            report.options.filter.is_set = true;
            if (!gm_parse_device(optarg, &report.options.filter.device))
                return GM_EXIT_USAGE;
            break;
        case KIND:
            report.options.filter.is_set = true;
            if (!gm_parse_kind(optarg, &report.options.filter.kind))
                return GM_EXIT_USAGE;
            break;
        case MIN_SIZE:
            report.options.filter.is_set = true;
            if (!gm_size_parse(optarg, &report.options.filter.min_size))
                return gm_complain("--min-size: '%s' is not a size such as 64M or 1.5GiB", optarg);
            break;
        case THREAD:
            report.options.filter.is_set = true;
            report.options.filter.scope.thread = optarg;
            break;
        case PHASE:
            report.options.filter.is_set = true;
            report.options.filter.scope.phase = optarg;
            break;
        case JSON:
            if (report.file)
                return gm_complain("--json and --html: one at a time");
            report.output = gm_output_find("json");
            break;
        case HTML:
            if (report.output == gm_output_find("json"))
                return gm_complain("--json and --html: one at a time");
            report.output = gm_output_find("html");
            report.file = optarg;
            break;
        case HTML_SIZE:
            if (!gm_size_parse(optarg, &report.options.page_size) || !report.options.page_size)
                return gm_complain("--html-size: '%s' is not a size such as 10M", optarg);
            break;
        default:
            if (!gm_take_stack_option(option, &report.stacks))
                return GM_EXIT_USAGE;
        }
    }
    report.options.all_frames = report.stacks.all_frames;
    if (asks_for_part(&report) && report.output != &gm_output_text)
        return gm_complain("--%s has all there is: --at, --site, --device, --kind, --min-size, "
                           "--thread and --phase are for the page",
                           report.file ? "html" : "json");
    gm_fit_terminal(&report.options);
    struct gm_run_traces run;
    int found = gm_run_find_any(&run, arguments + optind, (size_t)(count - optind));
    report.options.top = top;
    int code = found;
    if (run.count)
        code = (report.file ? write_report_file : write_any)(&report, run.paths, run.count);
    gm_run_free(&run);
    return code ? code : found;
}
