/* gpumem summarize: what a trace comes to, where the trace lies, in some kilobytes. Also job.h: how
 * traces become summaries, and files of summaries are read. */
#include "commands/apart.h"
#include "commands/command.h"
#include "commands/job.h"
#include "commands/session.h"
#include "output/output_file.h"
#include "output/text/report_text.h"
#include "tools/runs/runs.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool gm_job_any_summary(char *const *paths, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (gm_run_is_summary(paths[i]))
            return true;
    return false;
}

/* ---- a trace --------------------------------------------------------------------------------- */

static char *page_of(const struct gm_model *model)
{
    char *page = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&page, &size);
    if (!out)
        return NULL;
    gm_output_text.write(out, model, &(struct gm_output_options){.ascii = true});
    fclose(out);
    return page;
}

static void read_summarize_trace(const char *path, const void *request_of, void *unused)
{
    const struct gm_job_request *request = request_of;
    unsigned needs = request->with_page ? gm_output_text.needs : 0;
    struct gm_session session;
    (void)unused;
    if (!gm_session_open(&session, path, &request->stacks,
                         needs | GM_NEEDS_FINDINGS | GM_NEEDS_MOMENTS))
        return;
    char *page = request->with_page ? page_of(session.model) : NULL;
    gm_summary_write(stdout, session.model, page ? page : "");
    free(page);
    gm_session_close(&session);
}

static void start_trace(struct gm_apart *apart, const char *path,
                        const struct gm_job_request *request)
{
    gm_apart_start(apart, read_summarize_trace, path, request, 1);
}

static bool end_trace(const struct gm_apart *apart, struct gm_summaries *summaries)
{
    char *line, unused;
    size_t size = 0;
    bool is_read = gm_apart_end(apart, &unused, &line, &size) && size;
    if (is_read && line[size - 1] == '\n')
        size--;
    is_read = is_read && gm_summaries_add(summaries, line, size);
    if (is_read)
        summaries->entries[summaries->count - 1].path = apart->path;
    free(line);
    return is_read;
}

/* ---- a file of summaries --------------------------------------------------------------------- */

static bool load_lines(struct gm_summaries *summaries, const char *path, const char *bytes,
                       size_t size)
{
    size_t bad = 0;
    for (size_t at = 0; at < size;) {
        const char *end = memchr(bytes + at, '\n', size - at);
        size_t length = end ? (size_t)(end - (bytes + at)) : size - at;
        /* A line without its end was cut. */
        bad += !end || !gm_summaries_add(summaries, bytes + at, length);
        at += length + 1;
    }
    if (bad)
        gm_complain("%s: %zu line%s that are no summaries of this version were left out", path, bad,
                    bad == 1 ? "" : "s");
    return bad == 0;
}

static bool load_file(struct gm_summaries *summaries, const char *path)
{
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    void *bytes = MAP_FAILED;
    size_t size = 0;
    if (descriptor >= 0 && fstat(descriptor, &status) == 0 && status.st_size > 0) {
        size = (size_t)status.st_size;
        bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    }
    if (bytes == MAP_FAILED)
        gm_complain("%s: %s", path, strerror(errno));
    bool is_read = bytes != MAP_FAILED && load_lines(summaries, path, bytes, size);
    if (bytes != MAP_FAILED)
        munmap(bytes, size);
    if (descriptor >= 0)
        close(descriptor);
    return is_read;
}

/* ---- all of them ----------------------------------------------------------------------------- */

#define AT_A_TIME 16u /* traces that are read: each can take some hundred megabytes */

static size_t count_readers(void)
{
    cpu_set_t set;
    size_t cpus = sched_getaffinity(0, sizeof(set), &set) == 0 ? (size_t)CPU_COUNT(&set) : 1;
    return cpus < AT_A_TIME ? cpus : AT_A_TIME;
}

/* The one that ends first in the order of the arguments is waited for, while the next ones are read. */
bool gm_job_load(struct gm_summaries *summaries, char *const *paths, size_t count,
                 const struct gm_job_request *request)
{
    struct gm_apart parts[AT_A_TIME];
    size_t readers = count_readers();
    bool is_whole = true;
    for (size_t i = 0, started = 0; i < count; i++) {
        for (; started < count && started < i + readers; started++)
            if (!gm_run_is_summary(paths[started]))
                start_trace(&parts[started % readers], paths[started], request);
        is_whole &= gm_run_is_summary(paths[i]) ? load_file(summaries, paths[i])
                                                : end_trace(&parts[i % readers], summaries);
    }
    return is_whole;
}

/* ---- the command ----------------------------------------------------------------------------- */

static const struct gm_option own_options[] = {
    {GM_PROSE, "usage: gpumem summarize [OPTION...] [TRACE|FOLDER|SUMMARY...]\n"
               "\n"
               "Writes a line of JSON for each process: totals by device, lines of the program,\n"
               "the verdict and the page. gpumem report reads such files in place of traces,\n"
               "many at once (docs/ranks.md). Summaries among the arguments are merged, in any\n"
               "order and grouping with the same result. Without TRACE: the newest run in this\n"
               "folder.\n"
               "\n"},
    {'o', "  -o, --output FILE  instead of stdout\n"},
    GM_STACK_OPTIONS,
    GM_COMMON_OPTIONS,
    {GM_PROSE, NULL},
};

static int summarize(const struct gm_job_request *request, char **arguments, size_t count,
                     const char *output)
{
    struct gm_run_traces run;
    struct gm_summaries summaries = {0};
    struct gm_output_file file;
    int code = gm_run_find(&run, arguments, count);
    if (request->stacks.redact && gm_job_any_summary(run.paths, run.count)) {
        gm_run_free(&run);
        return gm_complain("--redact: a summary is redacted when it is written, from the trace");
    }
    if (run.count && !gm_output_file_open(&file, output)) {
        gm_run_free(&run);
        return GM_EXIT_USAGE;
    }
    if (!gm_job_load(&summaries, run.paths, run.count, request))
        code = GM_EXIT_UNREADABLE;
    gm_summaries_sort(&summaries);
    for (size_t i = 0; i < summaries.count; i++)
        puts(summaries.entries[i].text);
    if (run.count && !gm_output_file_close(&file, summaries.count != 0))
        code = GM_EXIT_UNREADABLE;
    gm_summaries_free(&summaries);
    gm_run_free(&run);
    return code;
}

int gm_cmd_summarize(int count, char **arguments)
{
    struct gm_job_request request = {.stacks = {.names = true}, .with_page = true};
    const char *output = "-";
    for (int option; (option = gm_next_option(count, arguments, own_options)) != -1;) {
        switch (option) {
        case 'o':
            output = optarg;
            break;
        default:
            if (!gm_take_stack_option(option, &request.stacks))
                return GM_EXIT_USAGE;
        }
    }
    return summarize(&request, arguments + optind, (size_t)(count - optind), output);
}
