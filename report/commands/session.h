/* One trace opened, replayed and ready to be shown. */
#ifndef GPUMEM_REPORT_COMMANDS_SESSION_H
#define GPUMEM_REPORT_COMMANDS_SESSION_H

#include "analysis/analysis.h"
#include "stacks/stacks.h"

struct gm_session {
    struct gm_trace *trace;
    struct gm_analysis *analysis;
    struct gm_stacks *stacks;
};

/* Opens and replays a trace. False after one line about what is wrong. */
bool gm_session_open(struct gm_session *session, const char *path,
                     const struct gm_stacks_options *options);

/* The same without what `info` has no use for: peaks, leaks, stacks. */
bool gm_session_open_briefly(struct gm_session *session, const char *path);

/* False after one line about it if the trace could not be read to its end: see limit.h. */
bool gm_session_close(struct gm_session *session);

#endif
