/* gpumem ask: a short answer to one question, as JSON, for agents and scripts. */
#include "base/memory.h"
#include "base/size.h"
#include "commands/apart.h"
#include "commands/ask/kept.h"
#include "commands/ask/special.h"
#include "commands/command.h"
#include "commands/job.h"
#include "commands/session.h"
#include "output/ask/answer.h"
#include "output/ask/ask.h"
#include "tools/runs/runs.h"
#include "version.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AT = GM_OPTION_FIRST, BY, DEVICE, CURSOR, SIZE_OF_ANSWER, JSON };

static const struct gm_option own_options[] = {
    {GM_PROSE, "usage: gpumem ask [OPTION...] [TRACE|FOLDER|SUMMARY] QUESTION [ARGUMENT]\n"
               "\n"
               "Answers one question in one JSON object of at most 4 KiB (docs/ask.md), with the\n"
               "commands worth running next. Without TRACE: the newest run in this folder. Of\n"
               "several processes: verdict, which names the trace to ask on.\n"
               "\n"
               "  verdict            how it ended, what was found; the first to ask\n"
               "  finding ID         one finding: cause, what to try, its stack\n"
               "  site ID            one place: what it held when, its stack\n"
               "  peak               who held the memory at its peak\n"
               "  owners             the same at another moment, or summed up otherwise\n"
               "  leaks              what was never freed\n"
               "  oom                what was refused\n"
               "  growth             what grows from round to round\n"
               "  diff BASE          what changed since the trace BASE\n"
               "  whatif             settings of PyTorch's allocator that help\n"
               "\n"},
    {AT, "      --at MOMENT    of owners: peak, oom, end, or a time such as 1.5s\n"},
    {BY, "      --by WHAT      of owners: site, line, library or kind\n"},
    {DEVICE, "      --device N     of peak, owners and leaks: this device alone\n"},
    {CURSOR, "      --cursor C     the rows behind those of an answer that had this cursor\n"},
    {SIZE_OF_ANSWER, "      --size SIZE    bytes of the answer at most (4K; 1K to 1M)\n"},
    {JSON, "      --json         nothing else is to be had\n"},
    GM_STACK_OPTIONS,
    GM_COMMON_OPTIONS,
    {GM_PROSE,
     "\n"
     "Exit codes: 0 answered, 2 wrong usage or nothing with that id, 3 a trace is\n"
     "unreadable, damaged or cut, 4 nothing was recorded. What is no answer is JSON, too.\n"},
    {GM_PROSE, NULL},
};

enum special { OF_MODEL, DIFF, WHATIF };

struct ask {
    struct gm_stacks_options stacks;
    struct gm_ask_request request;
    enum special special;
    struct gm_run_traces traces, base;
    const char *base_path;
};

/* Says why there is no answer, and returns the exit code. The reason is what was complained of. */
static int refuse_question(const struct ask *ask, int exit_code, const char *code)
{
    gm_answer_refuse(stdout, ask->request.question, code, gm_last_complaint());
    return exit_code;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* What a reader answers. */
struct answer {
    int code;
    bool is_kept; /* the same question has the same answer later */
};

static void answer_of_trace(const struct ask *ask, const char *path, struct answer *answer)
{
    struct gm_session session;
    if (!gm_session_open(&session, path, &ask->stacks, GM_NEEDS_ALL)) {
        answer->code = refuse_question(ask, GM_EXIT_UNREADABLE, "unreadable");
        return;
    }
    bool is_answered = gm_ask_write(stdout, session.model, &ask->request);
    answer->code = is_answered ? GM_EXIT_FINE : GM_EXIT_USAGE;
    answer->is_kept = session.model->runs[0].ending != GM_ENDING_RUNNING;
    if (!gm_session_close(&session))
        answer->code = GM_EXIT_UNREADABLE;
}

static void read_apart(const char *path, const void *ask_of, void *answer_of)
{
    const struct ask *ask = ask_of;
    struct answer *answer = answer_of;
    const struct gm_ask_request *request = &ask->request;
    answer->is_kept = true;
    if (ask->special == DIFF)
        answer->code = gm_ask_diff(&ask->base, &ask->traces, &ask->stacks, request);
    else if (ask->special == WHATIF)
        answer->code = gm_ask_whatif(path, request);
    else
        answer_of_trace(ask, path, answer);
}

/* ---- what was answered before ---------------------------------------------------------------- */

/* All that decides the answer, to be freed; NULL: it is not to be kept. */
static char *identity_of(const struct ask *ask)
{
    const struct gm_ask_request *request = &ask->request;
    const struct gm_stacks_options *stacks = &ask->stacks;
    char *text = NULL;
    size_t size = 0;
    bool is_told = true;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    fprintf(out, "%s %s %08x %d.%ju %d %d %zu %zu %d%d%d%d%d %s\n", GPUMEM_VERSION,
            request->question, request->id, (int)request->when.kind,
            (uintmax_t)request->when.time_ns, (int)request->by, request->device, request->first,
            request->size, stacks->names, stacks->all_frames, stacks->debuginfod,
            stacks->no_local_files, stacks->redact, stacks->sysroot ? stacks->sysroot : "");
    for (size_t i = 0; i < ask->traces.count; i++) {
        fprintf(out, "%s\n", ask->traces.paths[i]); /* as the commands of `next` have it */
        is_told &= gm_kept_add_file(out, ask->traces.paths[i]);
    }
    for (size_t i = 0; i < ask->base.count; i++)
        is_told &= gm_kept_add_file(out, ask->base.paths[i]);
    fclose(out);
    if (is_told)
        return text;
    free(text);
    return NULL;
}

static int answer_anew(const struct ask *ask, const char *identity)
{
    struct answer answer;
    struct gm_apart apart;
    char *text;
    size_t size;
    gm_apart_start(&apart, read_apart, ask->traces.paths[0], ask, sizeof(answer));
    if (!gm_apart_end(&apart, &answer, &text, &size))
        return refuse_question(ask, GM_EXIT_UNREADABLE, "unreadable");
    fwrite(text, 1, size, stdout);
    if (identity && answer.is_kept && answer.code == GM_EXIT_FINE)
        gm_kept_keep(identity, text, size);
    free(text);
    return answer.code;
}

static int answer_any(const struct ask *ask)
{
    size_t size;
    char *identity = identity_of(ask);
    char *kept = identity ? gm_kept_find(identity, &size) : NULL;
    if (kept)
        fwrite(kept, 1, size, stdout);
    int code = kept ? GM_EXIT_FINE : answer_anew(ask, identity);
    free(kept);
    free(identity);
    return code;
}

/* ---- what is asked --------------------------------------------------------------------------- */

static bool parse_by(const char *text, enum gm_ask_by *by)
{
    for (*by = 0; *by < GM_ASK_BYS; ++*by)
        if (strcmp(text, gm_ask_by_name(*by)) == 0)
            return true;
    gm_complain("--by: '%s' is none of site, line, library and kind", text);
    return false;
}

static bool parse_cursor(const char *text, size_t *row)
{
    char *end;
    *row = strtoul(text, &end, 10);
    if (text[0] >= '0' && text[0] <= '9' && !*end)
        return true;
    gm_complain("--cursor: '%s' is none of an answer", text);
    return false;
}

static bool parse_size(const char *text, size_t *size)
{
    uint64_t bytes;
    if (gm_size_parse(text, &bytes) && bytes >= GM_ANSWER_BYTES_MIN &&
        bytes <= GM_ANSWER_BYTES_MAX) {
        *size = (size_t)bytes;
        return true;
    }
    gm_complain("--size: '%s' is not a size from 1K to 1M", text);
    return false;
}

static bool take_ask_option(struct ask *ask, int option)
{
    switch (option) {
    case AT:
        return gm_parse_moment(optarg, &ask->request.when);
    case BY:
        return parse_by(optarg, &ask->request.by);
    case DEVICE:
        return gm_parse_device(optarg, &ask->request.device);
    case CURSOR:
        return parse_cursor(optarg, &ask->request.first);
    case SIZE_OF_ANSWER:
        return parse_size(optarg, &ask->request.size);
    case JSON:
        return true;
    default:
        return gm_take_stack_option(option, &ask->stacks);
    }
}

static bool is_question(const char *word)
{
    return gm_ask_find(word) || strcmp(word, "diff") == 0 || strcmp(word, "whatif") == 0;
}

/* Takes the question out of the words: what stands before it names traces, what stands behind it is its argument.
 * Returns how many stand before it; -1 after a complaint. */
static int take_question(struct ask *ask, char **words, int count)
{
    int at = 0;
    while (at < count && !is_question(words[at]))
        at++;
    if (at == count) {
        gm_complain("ask: no question: verdict, finding, site, peak, owners, leaks, oom, growth, "
                    "diff or whatif");
        return -1;
    }
    const char *name = words[at], *argument = at + 1 < count ? words[at + 1] : NULL;
    const struct gm_ask_question *question = gm_ask_find(name);
    bool takes_argument = !question ? strcmp(name, "diff") == 0 : question->takes_id;
    ask->request.question = name;
    ask->special = question ? OF_MODEL : takes_argument ? DIFF : WHATIF;
    if (count - at - 1 != takes_argument) {
        gm_complain("ask %s: takes %s", name,
                    !takes_argument        ? "nothing behind it"
                    : ask->special == DIFF ? "one trace to compare with"
                                           : "one id");
        return -1;
    }
    if (ask->special == DIFF)
        ask->base_path = argument;
    else if (takes_argument && !gm_id_parse(argument, &ask->request.id)) {
        gm_complain("ask %s: '%s' is not an id of 8 hex digits", name, argument);
        return -1;
    }
    return at;
}

/* ---- the command ----------------------------------------------------------------------------- */

/* Questions about one process are not answered of several. */
static int answer_found(struct ask *ask)
{
    bool is_summary = gm_job_any_summary(ask->traces.paths, ask->traces.count);
    bool is_job = ask->special != DIFF && (ask->traces.count > 1 || is_summary);
    if (is_summary && ask->stacks.redact) {
        gm_complain(
            "--redact: a summary is redacted when it is written: gpumem summarize --redact");
        return refuse_question(ask, GM_EXIT_USAGE, "usage");
    }
    if (!is_job && !is_summary)
        return answer_any(ask);
    if (is_job && strcmp(ask->request.question, "verdict") == 0)
        return gm_ask_job(&ask->traces, &ask->stacks, &ask->request);
    gm_complain(is_summary ? "ask %s: a summary answers verdict alone; name a trace"
                           : "ask %s: there are several processes: ask verdict, then name a trace",
                ask->request.question);
    return refuse_question(ask, GM_EXIT_USAGE, "one-trace");
}

static int answer_question(struct ask *ask, char **paths, size_t count)
{
    char *base = (char *)ask->base_path;
    int found = gm_run_find(&ask->traces, paths, count);
    if (!found && base)
        found = gm_run_find(&ask->base, &base, 1);
    int code = found ? refuse_question(ask, found,
                                       found == GM_EXIT_NOTHING ? "nothing-recorded" : "no-trace")
                     : answer_found(ask);
    gm_run_free(&ask->traces);
    gm_run_free(&ask->base);
    return code;
}

int gm_cmd_ask(int count, char **arguments)
{
    struct ask ask = {.stacks = {.names = true},
                      .request = {.device = -1, .size = GM_ANSWER_BYTES}};
    for (int option; (option = gm_next_option(count, arguments, own_options)) != -1;)
        if (!take_ask_option(&ask, option))
            return refuse_question(&ask, GM_EXIT_USAGE, "usage");
    char names[64];
    snprintf(names, sizeof(names), "%s%s%s", ask.stacks.redact ? " --redact" : "",
             ask.stacks.names ? "" : " --no-symbols", ask.stacks.all_frames ? " --all-frames" : "");
    ask.request.options = names;
    ask.request.is_redacted = ask.stacks.redact;
    int before = take_question(&ask, arguments + optind, count - optind);
    return before < 0 ? refuse_question(&ask, GM_EXIT_USAGE, "usage")
                      : answer_question(&ask, arguments + optind, (size_t)before);
}
