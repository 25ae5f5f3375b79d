/* Makes the history of a large trace fit a page. Allocations with least bytes times time are merged by
 * place: instead of single ones the page has changes, at the end of each part of the run and where a
 * group has its most in that part. So at these moments totals and owners are exact, and no peak is
 * lost; in between they are those of the moment before. */
#ifndef GPUMEM_REPORT_RENDER_HTML_THIN_H
#define GPUMEM_REPORT_RENDER_HTML_THIN_H

#include "output/html/log.h"
#include <stdbool.h>

/* What merged allocations of a place came to since the change before. */
struct gm_html_change {
    uint32_t place;
    bool touched;
    int64_t bytes; /* alive */
    int64_t count;
    uint64_t allocated, allocated_count; /* that began */
    uint64_t temporary, temporary_count; /* of these: that lived shorter than 1 % of the run */
    uint64_t left, left_count;           /* of these: that never ended */
};

struct gm_html_thin {
    const struct gm_html_log *log;
    unsigned least; /* weight from which on a life is not merged */
    uint64_t merged;
    unsigned parts;              /* of the run */
    bool *stands;                /* by step: changes stand behind it; NULL: none does */
    struct gm_html_change *sums; /* by place, since the last change */
    uint32_t *touched;           /* places with a sum */
    size_t touched_count, told;
};

/* Keeps about `kept` allocations single; all if there are not more. */
void gm_html_thin_begin(struct gm_html_thin *thin, const struct gm_model *model,
                        const struct gm_html_log *log, uint64_t duration_ns, size_t kept);
void gm_html_thin_end(struct gm_html_thin *thin);

/* The next event of a walk. Whether its life is merged: then it is counted. */
bool gm_html_thin_takes(struct gm_html_thin *thin, const struct gm_html_event *event);

/* The next of the changes behind the event that was told last, false at their end. `is_last`: of these. */
bool gm_html_thin_next(struct gm_html_thin *thin, const struct gm_html_event *event,
                       struct gm_html_change *change, bool *is_last);

#endif
