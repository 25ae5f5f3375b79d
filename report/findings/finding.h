/* What a reader should act on: each finding is one cause with its numbers, and one place in the
 * program. docs/findings.md has the rule of every code; a rule that does not hold is no finding, so
 * a sound program has none. */
#ifndef GPUMEM_REPORT_FINDINGS_FINDING_H
#define GPUMEM_REPORT_FINDINGS_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Codes are stable: their names are what scripts and gates rely on. */
enum gm_finding_code {
    GM_FINDING_OUT_OF_MEMORY,
    GM_FINDING_POOL_FRAGMENTATION,
    GM_FINDING_RETAINED,
    GM_FINDING_DEVICE_IMBALANCE,
    GM_FINDING_PAGEABLE_COPIES,
    GM_FINDING_PINNED_GROWTH,
    GM_FINDING_PINNED_WASTE,
    GM_FINDING_CACHED,
    GM_FINDING_BATCH_SIZE_SEARCH,
    GM_FINDING_GROWING,
    GM_FINDING_CHURN,
    GM_FINDING_SECOND_COPY,
    GM_FINDING_DENSE_GRADIENT,
    GM_FINDING_WORKER_CONTEXT,
    GM_FINDING_IPC_HANDLES,
    GM_FINDING_CODES
};

enum gm_severity {
    GM_SEVERITY_NOTE,    /* good to know */
    GM_SEVERITY_WARNING, /* memory or time is wasted, or will run out */
    GM_SEVERITY_ERROR,   /* it did run out */
};

struct gm_finding {
    enum gm_finding_code code;
    enum gm_severity severity;
    int device;               /* -1: of no device, or of more than one */
    uint64_t bytes;           /* that it is about */
    uint64_t bytes_per_round; /* by which it grows; 0: it does not, or no rounds are told */
    uint32_t stack;           /* with `api`, the place; 0: none */
    uint32_t
        unlike; /* a stack of the same line that is not meant: where they differ is the place; 0 */
    uint16_t api;
    char *cause;    /* one sentence; clean */
    char *remedy;   /* one sentence; NULL: the numbers show no case that it would treat */
    char *evidence; /* the numbers that made the rule fire; NULL: the cause has them all */
};

/* All zero: none yet. */
struct gm_findings {
    struct gm_finding *entries;
    size_t count;
    size_t capacity;
};

/* "pageable-copies" */
const char *gm_finding_name(enum gm_finding_code code);
/* "warning" */
const char *gm_severity_name(enum gm_severity severity);

void gm_findings_free(struct gm_findings *findings);

/* Adds a finding. The sentence says the cause in numbers; texts of the trace in it must have been
 * cleaned. The texts of `finding` are not looked at. */
void gm_findings_add(struct gm_findings *findings, const struct gm_finding *finding,
                     const char *cause, ...) __attribute__((format(printf, 3, 4)));

/* Gives the finding added last its remedy. */
void gm_findings_remedy(struct gm_findings *findings, const char *remedy, ...)
    __attribute__((format(printf, 2, 3)));

/* Gives it the numbers that made its rule fire. */
void gm_findings_evidence(struct gm_findings *findings, const char *evidence, ...)
    __attribute__((format(printf, 2, 3)));

/* What to do where blocks of a pool pile up. */
#define GM_REMEDY_KEPT                                                                             \
    "If they are results kept from step to step, keep numbers (loss.item()) or copies without "    \
    "their graph (.detach().cpu())."

#endif
