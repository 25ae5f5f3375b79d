/* The gate: what a trace may come to, and what is done about it. docs/gate.md says what each part
 * means. */
#ifndef GPUMEM_REPORT_GATE_GATE_H
#define GPUMEM_REPORT_GATE_GATE_H

#include "gate/baseline.h"
#include "gate/issue.h"
#include "gate/suppressions.h"
#include "render/text/sections.h"

struct gm_gate_limit {
    int device; /* -1: each */
    uint64_t bytes;
};

struct gm_gate {
    const char *fail_on, *warn_on; /* codes of leak classes and findings: "leak,retained", "all",
                                      "findings", "none" */
    uint64_t max_leak;             /* bytes that may leak per trace */
    uint64_t max_leak_per_place;   /* likewise from one place */
    uint64_t max_growth;           /* bytes over the last marks; UINT64_MAX: any, as of all below */
    uint64_t max_pinned;           /* peak of pinned memory */
    uint64_t max_unused;           /* peak of what a framework reserved beyond what was in use */
    uint64_t max_residual;         /* largest, of each device */
    struct gm_gate_limit *limits;  /* of peaks */
    size_t limit_count, limit_capacity;
    bool allow_empty;
    bool judge_cut;
    uint64_t top;
    bool colour;
    const char *output;
    struct gm_suppressions suppressions;
    bool has_baseline;
    struct gm_baseline baseline;
    bool new_only;           /* what the baseline has is accepted, whatever it has grown to */
    unsigned increase_share; /* percent that it may grow, or */
    uint64_t increase_bytes; /* bytes, whichever is more */
    FILE *channel;           /* where issues go: see issue.h */
};

/* What a judgement over one trace or several comes to. */
struct gm_gate_outcome {
    bool unreadable;
    bool findings;
    bool anything; /* some trace has memory calls in it */
};

/* Whether each name of the list is known; false after one line about the first that is not. */
bool gm_gate_codes_are_known(const char *option, const char *list);

/* Judges one run, prints the judgement, and writes its issues to the channel. */
void gm_gate_judge(const struct gm_gate *gate, const struct gm_view *view,
                   struct gm_gate_outcome *outcome);

#endif
