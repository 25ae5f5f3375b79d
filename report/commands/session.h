/* One trace opened, replayed and ready to be shown. */
#ifndef GPUMEM_REPORT_COMMANDS_SESSION_H
#define GPUMEM_REPORT_COMMANDS_SESSION_H

#include "judge/analysis/analysis.h"
#include "model/model.h"
#include "names/stacks/stacks.h"

struct gm_session {
    struct gm_trace *trace;
    struct gm_analysis *analysis;
    struct gm_stacks *stacks;
    struct gm_model *model;
};

/* Opens and replays a trace; its model has what is needed (enum gm_model_needs). False after one
 * line about what is wrong. */
bool gm_session_open(struct gm_session *session, const char *path,
                     const struct gm_stacks_options *options, unsigned needs);

/* The same without what `info` has no use for: peaks, leaks, stacks, a model. */
bool gm_session_open_briefly(struct gm_session *session, const char *path);

/* False after one line about it if the trace could not be read to its end: see limit.h. */
bool gm_session_close(struct gm_session *session);

/* Says on stderr that the process still runs, and as of when the trace was read; nothing of others. */
void gm_say_running(const struct gm_trace *trace);

#endif
