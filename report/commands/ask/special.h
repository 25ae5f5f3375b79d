/* Questions of `gpumem ask` that are not about one model of one trace. */
#ifndef GPUMEM_REPORT_COMMANDS_ASK_SPECIAL_H
#define GPUMEM_REPORT_COMMANDS_ASK_SPECIAL_H

#include "names/stacks/stacks.h"
#include "output/ask/request.h"
#include "tools/runs/runs.h"
#include <stdbool.h>

/* Each writes an answer, or that there is none, and returns an exit code. */
int gm_ask_diff(const struct gm_run_traces *base, const struct gm_run_traces *newer,
                const struct gm_stacks_options *stacks, const struct gm_ask_request *request);
int gm_ask_whatif(const char *path, const struct gm_ask_request *request);

/* The verdict on several processes, or on those of a summary. */
int gm_ask_job(const struct gm_run_traces *traces, const struct gm_stacks_options *stacks,
               const struct gm_ask_request *request);

#endif
