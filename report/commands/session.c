/* See session.h. */
#include "commands/session.h"
#include "base/limit.h"
#include "commands/command.h"
#include "input/torch/open.h"
#include "judge/verdict/ending.h"
#include "names/stacks/redact.h"
#include "tools/runs/runs.h"
#include <stdio.h>

static bool open_trace(struct gm_session *session, const char *path)
{
    char error[256];
    *session = (struct gm_session){.trace = gm_torch_open(path, error, sizeof(error))};
    if (!session->trace && gm_run_is_summary(path))
        gm_complain("%s: this is a summary and no trace: gpumem report, without --json and --html, "
                    "summarize and diff read it",
                    path);
    else if (!session->trace)
        gm_complain("%s: %s", path, error);
    return session->trace != NULL;
}

bool gm_session_open(struct gm_session *session, const char *path,
                     const struct gm_stacks_options *options, unsigned needs)
{
    if (!open_trace(session, path))
        return false;
    if (options->redact)
        session->trace->redaction = gm_redaction_new(session->trace);
    session->analysis = gm_analyse(session->trace);
    gm_limits_end_reading();
    session->stacks = gm_stacks_new(session->trace, options);
    session->model = gm_model_of(session->analysis, session->stacks, needs);
    return true;
}

bool gm_session_open_briefly(struct gm_session *session, const char *path)
{
    if (!open_trace(session, path))
        return false;
    session->analysis = gm_analyse_briefly(session->trace);
    return true;
}

void gm_say_running(const struct gm_trace *trace)
{
    char text[128];
    if (!trace->as_of_ns)
        return;
    gm_as_of_sentence(trace, text, sizeof(text));
    fprintf(stderr, "gpumem: %s: %s\n", trace->path, text);
}

bool gm_session_close(struct gm_session *session)
{
    if (!session->trace)
        return true;
    bool whole = !gm_limits_reached();
    if (!whole)
        gm_complain("%s: asks for more memory or work than a trace of its size should, and was "
                    "read in part (report --no-limits reads on)",
                    session->trace->path);
    gm_model_free(session->model);
    gm_stacks_free(session->stacks);
    gm_analysis_free(session->analysis);
    gm_redaction_free(session->trace->redaction);
    gm_trace_close(session->trace);
    return whole;
}
