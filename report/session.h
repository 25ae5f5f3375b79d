/* One trace opened, replayed and ready to be shown. */
#ifndef GM_REPORT_SESSION_H
#define GM_REPORT_SESSION_H

#include "analysis.h"
#include "stacks.h"

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
