/* What the recorder counted of its own troubles, and what each counter means for those who judge
 * the trace. */
#ifndef GPUMEM_REPORT_ANALYSIS_RECORDER_COUNTERS_H
#define GPUMEM_REPORT_ANALYSIS_RECORDER_COUNTERS_H

#include "input/trace/trace_file.h"
#include <stdint.h>

enum gm_counter_meaning {
    GM_COUNTER_UNKNOWN,        /* none of ours: a newer recorder counts something that went wrong */
    GM_COUNTER_MISSING_RECORD, /* each is a record that is missing, and belongs to `lost` */
    GM_COUNTER_WRONG_NUMBERS,  /* the numbers are wrong, but not by a missing record each */
    GM_COUNTER_WORSE_STACKS, /* names, stacks, samples or settings are worse, no byte is missing */
    GM_COUNTER_STATISTICS,   /* how the recorder worked */
};

/* One counter of enum gm_counter. */
struct gm_counter_rule {
    const char *name; /* in the JSON; NULL: none of ours */
    enum gm_counter_meaning meaning;
    const char *one;  /* the sentence about it, if it is 1; "%s" stands for the count */
    const char *more; /* the same, if it is more */
};

/* `counter` is below GM_COUNTERS. */
const struct gm_counter_rule *gm_counter_rule(unsigned counter);

/* What it counts against the trace. */
uint64_t gm_counter_value(const struct gm_trace *trace, unsigned counter);

/* The sum of the counters of which each stands for one record that is missing. */
uint64_t gm_counted_loss(const struct gm_trace *trace);

#endif
