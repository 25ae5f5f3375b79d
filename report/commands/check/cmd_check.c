/* gpumem check: the gate. Judges traces, or runs a command and judges what it left. */
#include "base/memory.h"
#include "commands/apart.h"
#include "commands/check/check.h"
#include "commands/command.h"
#include "commands/session.h"
#include "judge/verdict/ending.h"
#include "tools/runs/recording.h"
#include "tools/runs/runs.h"
#include "tools/runs/trace_home.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- judging traces -------------------------------------------------------------------------- */

static void judge_here(const char *path, const void *check_of, void *outcome_of)
{
    const struct gm_check *check = check_of;
    const struct gm_gate *gate = &check->gate;
    struct gm_gate_outcome *outcome = outcome_of;
    struct gm_page page = {.out = stdout, .colour = gate->colour, .columns = gate->columns};
    struct gm_session session;
    if (!gm_session_open(&session, path, &check->stacks, gate->needs)) {
        outcome->unreadable = true;
        gm_gate_note_reason(outcome, "it cannot be read");
        return;
    }
    struct gm_view view = {
        .page = &page, .model = session.model, .run = &session.model->runs[0], .top = gate->top};
    char *clean = gm_clean_copy((struct gm_text){path, strlen(path)});
    gm_page_print(&page, GM_BOLD, "%s", clean);
    if (view.run->simulated)
        gm_page_print(&page, GM_WARNING, "  SIMULATED device");
    putchar('\n');
    free(clean);
    gm_gate_judge(gate, &view, outcome);
    bool is_whole = gm_session_close(&session);
    if (!is_whole || (gate->channel && fflush(gate->channel) != 0)) {
        outcome->unreadable = true;
        gm_gate_note_reason(outcome, "it could not be read to its end");
    }
}

static void judge_trace(struct gm_check *check, const char *path, bool is_kept)
{
    GM_RESERVE(check->traces, check->trace_capacity, check->trace_count + 1);
    struct gm_gate_trace *trace = &check->traces[check->trace_count++];
    trace->path = gm_copy_text(path);
    trace->is_kept = is_kept;
    bool is_read = gm_apart(judge_here, path, check, &trace->outcome, sizeof(trace->outcome));
    trace->outcome.unreadable |= !is_read;
    if (!is_read)
        gm_gate_note_reason(&trace->outcome, "reading it was given up");
}

/* ---- a command, or traces -------------------------------------------------------------------- */

/* A pattern in a folder of its own, removed afterwards. */
static char *temporary_pattern(char **folder)
{
    const char *base = getenv("TMPDIR");
    size_t size = strlen(base && *base ? base : "/tmp") + 64;
    char *pattern = gm_allocate(size, 1);
    *folder = gm_allocate(size, 1);
    snprintf(*folder, size, "%s/gpumem-check-XXXXXX", base && *base ? base : "/tmp");
    if (!mkdtemp(*folder)) {
        gm_complain("cannot make a temporary folder %s", *folder);
        free(*folder);
        free(pattern);
        *folder = NULL;
        return NULL;
    }
    snprintf(pattern, size, "%s/%%e.%%p.trace", *folder);
    return pattern;
}

static void remove_traces(const struct gm_recording *recording, char *folder)
{
    for (size_t i = 0; i < recording->trace_count; i++)
        gm_remove_trace(recording->traces[i]);
    rmdir(folder);
    free(folder);
}

/* The command failed: by what, named as people know it. */
static void tell_failure(const struct gm_recording *recording, int code)
{
    char name[GM_SIGNAL_TEXT];
    if (code && recording->pid && WIFSIGNALED(recording->status))
        gm_complain("the command itself was ended by %s",
                    gm_signal_name(WTERMSIG(recording->status), name));
    else if (code > GM_EXIT_SIGNAL && code <= GM_EXIT_SIGNAL + SIGRTMAX)
        gm_complain("the command itself failed with exit code %d, as shells tell of %s", code,
                    gm_signal_name(code - GM_EXIT_SIGNAL, name));
    else if (code)
        gm_complain("the command itself failed with exit code %d", code);
}

static int check_command(struct gm_check *check, char **command)
{
    const struct gm_gate *gate = &check->gate;
    char *folder = NULL, *pattern = NULL;
    struct gm_recording recording;
    if (!gate->output && !(pattern = temporary_pattern(&folder)))
        return GM_EXIT_NOT_STARTED;
    if (!gm_recording_begin(&recording, gate->output ? gate->output : pattern)) {
        gm_recording_end(&recording);
        free(pattern);
        return GM_EXIT_NOT_STARTED;
    }
    int code = gm_recording_run(&recording, command);
    gm_recording_find(&recording);
    for (size_t i = 0; i < recording.trace_count; i++)
        judge_trace(check, recording.traces[i], folder == NULL);
    int exit_code = gm_check_conclude(check, GM_EXIT_FINE, code);
    tell_failure(&recording, code);
    if (folder)
        remove_traces(&recording, folder);
    gm_recording_end(&recording);
    free(pattern);
    return exit_code;
}

static int check_traces(struct gm_check *check, char **paths, size_t count)
{
    struct gm_run_traces run;
    int found = gm_run_find(&run, paths, count);
    for (size_t i = 0; i < run.count; i++)
        judge_trace(check, run.paths[i], true);
    gm_run_free(&run);
    if (found == GM_EXIT_NOTHING && check->gate.allow_empty)
        found = GM_EXIT_FINE;
    return gm_check_conclude(check, found, 0);
}

/* ---- the command ----------------------------------------------------------------------------- */

static int check(struct gm_check *check, int count, char **arguments)
{
    bool is_over;
    /* Behind "--" stands a command, whose arguments are none of ours. */
    int own = 1;
    while (own < count && strcmp(arguments[own], "--") != 0)
        own++;
    int code = gm_check_take_options(check, own, arguments, &is_over);
    if (code || is_over)
        return code;
    if (own + 1 == count)
        return gm_complain("check: no command behind --");
    if (own < count && optind < own)
        return gm_complain("check: either traces or a command, not both: '%s'", arguments[optind]);
    if (!gm_check_prepare(check))
        return GM_EXIT_USAGE;
    return own == count ? check_traces(check, arguments + optind, (size_t)(count - optind))
                        : check_command(check, arguments + own + 1);
}

int gm_cmd_check(int count, char **arguments)
{
    struct gm_check all = gm_check_default();
    int code = check(&all, count, arguments);
    gm_check_free(&all);
    return code;
}
