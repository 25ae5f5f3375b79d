/* Loads what a page of several processes is made of: traces are summarized, summaries are read. */
#ifndef GPUMEM_REPORT_COMMANDS_JOB_H
#define GPUMEM_REPORT_COMMANDS_JOB_H

#include "names/stacks/stacks.h"
#include "tools/ranks/summary.h"

struct gm_job_request {
    struct gm_stacks_options stacks;
    bool with_page; /* of a trace: its page stands in the summary, 80 columns wide */
};

bool gm_job_any_summary(char *const *paths, size_t count);

/* Adds the summaries of traces, several of which are read at a time, and those that files hold, in this order. False
 * after a line about each that could not be read; what could be is there. */
bool gm_job_load(struct gm_summaries *summaries, char *const *paths, size_t count,
                 const struct gm_job_request *request);

#endif
