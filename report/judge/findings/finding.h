/* What a reader should act on: each finding is one cause with its numbers, and one place in the
 * program. docs/findings.md has the rule of every code; a rule that does not hold is no finding, so
 * a sound program has none. */
#ifndef GPUMEM_REPORT_FINDINGS_FINDING_H
#define GPUMEM_REPORT_FINDINGS_FINDING_H

#include "base/names.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gm_finding {
    enum gm_finding_code code;
    enum gm_severity severity;
    int device;               /* -1: of no device, or of more than one */
    unsigned other_devices;   /* on which the same happened; the figures are of `device` */
    uint64_t bytes;           /* that it is about */
    uint64_t bytes_per_round; /* by which it grows; 0: it does not, or no rounds are told */
    bool is_unbounded;        /* it is shown that nothing bounds its growth */
    uint32_t stack;           /* with `api`, the place; 0: none */
    uint32_t
        unlike; /* a stack of the same line that is not meant: where they differ is the place; 0 */
    uint16_t api;
    uint32_t
        other; /* another place, with `other_api`, that is named first, and what it did; 0: none */
    uint16_t other_api;
    const char *other_did;
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

void gm_findings_free(struct gm_findings *findings);

/* Adds a finding. The sentence says the cause in numbers; texts of the trace in it must have been
 * cleaned. The texts of `finding` are not looked at. */
void gm_findings_add(struct gm_findings *findings, const struct gm_finding *finding,
                     const char *cause, ...) __attribute__((format(printf, 3, 4)));

/* Makes one finding of those that are alike but for their devices, as where arrays are sharded: the first of them, whose cause
 * says so. What ran out of memory is told of each device. */
void gm_findings_join_devices(struct gm_findings *findings);

/* Gives the finding added last its remedy. */
void gm_findings_remedy(struct gm_findings *findings, const char *remedy, ...)
    __attribute__((format(printf, 2, 3)));

/* Gives it the numbers that made its rule fire. */
void gm_findings_evidence(struct gm_findings *findings, const char *evidence, ...)
    __attribute__((format(printf, 2, 3)));

#endif
