/* The gate: what a trace may come to, and what is done about it. docs/gate.md says what each part
 * means.
 *
 * A trace is judged in two steps. Collecting takes what the gate asks for from a model: issues, which
 * have a place (issue.h), and figures, which budgets bound. Deciding needs these alone: for each
 * trace by itself, or once for several that repeat the same run.
 */
#ifndef GPUMEM_REPORT_GATE_GATE_H
#define GPUMEM_REPORT_GATE_GATE_H

#include "output/text/sections.h"
#include "tools/gate/baseline.h"
#include "tools/gate/issue.h"
#include "tools/gate/suppressions.h"

/* ---- what is asked for ----------------------------------------------------------------------- */

/* Of which memory a limit of peaks is. */
enum gm_limit_of {
    GM_LIMIT_DEVICE,   /* a device, or each */
    GM_LIMIT_ALL,      /* each device with all processes on it, as samples tell */
    GM_LIMIT_RANK,     /* each device of one rank */
    GM_LIMIT_PHASE,    /* the devices while a phase was open */
    GM_LIMIT_CATEGORY, /* blocks of PyTorch's pools that are for one purpose */
};

struct gm_gate_limit {
    enum gm_limit_of of;
    int device;   /* -1: each */
    int64_t rank; /* of RANK */
    enum gm_category category;
    char *phase; /* its name, or the names around it and its own, " > " in between */
    uint64_t bytes;
};

#define GM_GATE_LIMITS 64u

enum gm_gate_repeats { GM_REPEATS_NONE, GM_REPEATS_MEDIAN, GM_REPEATS_MINIMUM };

struct gm_gate {
    const char *fail_on, *warn_on; /* codes of leak classes and findings: "leak,unbounded", "all",
                                      "findings", "none" */
    uint64_t max_leak;             /* bytes that may leak per trace */
    uint64_t max_leak_per_place;   /* likewise from one place */
    uint64_t max_growth;           /* bytes over the last marks; UINT64_MAX: any, as of all below */
    uint64_t max_round_growth;     /* bytes from one round, or mark, to the next */
    uint64_t max_pinned;           /* peak of pinned memory */
    uint64_t max_unused;           /* peak of what a framework reserved beyond what was in use */
    uint64_t max_residual;         /* largest, of each device */
    struct gm_gate_limit *limits;  /* of peaks; at most GM_GATE_LIMITS */
    size_t limit_count, limit_capacity;
    bool allow_empty;
    bool judge_cut;
    uint64_t top;
    bool colour;
    unsigned columns; /* of the terminal */
    const char *output;
    struct gm_suppressions suppressions;
    bool has_baseline;
    struct gm_baseline baseline;
    bool new_only;           /* what the baseline has is accepted, whatever it has grown to */
    bool has_increase;       /* peaks are held against the baseline, too */
    unsigned increase_share; /* percent that it may grow, or */
    uint64_t increase_bytes; /* bytes, whichever is more */
    enum gm_gate_repeats repeats;
    bool makes_rules; /* for what fails: generate.c */
    unsigned needs;   /* of the models: enum gm_model_needs */
    FILE *channel;    /* where issues go: see issue.h */
};

/* ---- what a trace comes to ------------------------------------------------------------------- */

/* What a figure is held against. */
enum gm_gate_budget {
    GM_BUDGET_PEAK,   /* of a device; gate.limits, and the baseline */
    GM_BUDGET_PINNED, /* peak; max_pinned, and the baseline */
    GM_BUDGET_LIMIT,  /* what a limit of a phase or a category bounds */
    GM_BUDGET_UNUSED,
    GM_BUDGET_RESIDUAL,
    GM_BUDGET_GROWTH,
    GM_BUDGET_ROUND_GROWTH,
};

struct gm_gate_figure {
    enum gm_gate_budget budget;
    int device;     /* -1: of none */
    uint32_t limit; /* of GM_BUDGET_LIMIT: number among gate.limits */
    int64_t rank;   /* of GM_BUDGET_PEAK; -1: without */
    int64_t bytes;
};

#define GM_GATE_FIGURES 256u
#define GM_GATE_REASON 192u
#define GM_GATE_PROGRAM 48u

/* What one trace or several come to. Has no pointers: it goes from one process to another. */
struct gm_gate_outcome {
    bool unreadable;
    bool findings;
    bool anything;        /* some trace has memory calls in it */
    uint64_t limits_met;  /* a bit for each of gate.limits: there was such memory */
    unsigned budgets_met; /* a bit for each enum gm_gate_budget that something was there for */
    char reason[GM_GATE_REASON]; /* why it failed or was not judged, the first of several; clean */
    size_t reason_count;
    int64_t leaked[GM_LEAK_CLASSES]; /* bytes */
    struct gm_gate_figure figures[GM_GATE_FIGURES];
    size_t figure_count;
    size_t issue_count; /* written to the channel */
    /* What tells repeats of a run from its processes. */
    char run_id[40];               /* "": not told */
    char program[GM_GATE_PROGRAM]; /* the executable's name, cut to fit; clean */
    int64_t rank;                  /* -1: without */
};

/* ---- codes ----------------------------------------------------------------------------------- */

/* Whether each name of the list is known; false after one line about the first that is not. */
bool gm_gate_codes_are_known(const char *option, const char *list);

/* Of `retained` findings, those that show that nothing bounds what grows. */
#define GM_CODE_UNBOUNDED "unbounded"

/* Whether a list such as `fail_on` has the code of a class of leaks or of a finding: they can share a name
 * ("cached"), and "findings" in the list is findings alone. */
bool gm_gate_has_code(const char *list, const char *code, bool of_finding);

/* What an issue of that code is by the gate's lists; a finding that is a note stays one,
 * unless `fail_on` has its own name, which is no class's. */
enum gm_issue_level gm_gate_class_level(const struct gm_gate *gate, const char *code);
enum gm_issue_level gm_gate_finding_level(const struct gm_gate *gate, const char *code,
                                          enum gm_severity severity);

/* As what the gate judges memory of a class. With --on-cut judge, what was alive when the trace was cut
 * counts as leaked. */
unsigned gm_gate_class(const struct gm_gate *gate, const struct gm_model_run *run,
                       unsigned leak_class);

/* ---- judging --------------------------------------------------------------------------------- */

/* Adds the figures of a run that some budget or the baseline asks for. False if there are too many. */
bool gm_gate_figures(const struct gm_gate *gate, const struct gm_view *view,
                     struct gm_gate_outcome *outcome);

/* What a budget is called: "max-peak". */
const char *gm_gate_budget_code(enum gm_gate_budget budget);

/* Judges one run, prints the judgement, and writes its issues to the channel. With `repeats`, it only
 * collects. */
void gm_gate_judge(const struct gm_gate *gate, const struct gm_view *view,
                   struct gm_gate_outcome *outcome);

/* Decides on issues and figures that were collected: prints the judgement, sets what is known of each
 * issue, adds those of budgets, and notes in the outcome whether something fails. `view`: of the trace
 * that they are of; NULL: of none alone. `rules`: with what they matched. */
void gm_gate_decide(const struct gm_gate *gate, struct gm_page *page, const struct gm_view *view,
                    const struct gm_suppressions *rules, struct gm_issues *issues,
                    struct gm_gate_outcome *outcome);

/* A trace among several that repeat a run. */
struct gm_gate_repeat {
    const struct gm_gate_outcome *outcome;
    const struct gm_issue *issues;
    size_t issue_count;
    size_t run; /* of which it is, below run_count */
};

struct gm_gate_repeats_of {
    const struct gm_gate_repeat *entries;
    size_t count;
    size_t run_count;
};

/* What repeats of a run come to together: of each issue and each figure the median of all runs or the
 * minimum, where a run that lacks it counts as 0, and of several processes of one run the one with most
 * counts. Adds to `issues`. */
void gm_gate_unite(const struct gm_gate *gate, const struct gm_gate_repeats_of *repeats,
                   struct gm_issues *issues, struct gm_gate_outcome *united);

/* Notes why it fails; the first reason is kept, others are counted. */
void gm_gate_note_reason(struct gm_gate_outcome *outcome, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
