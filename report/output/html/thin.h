/* Makes the history of a large trace fit a page. Allocations with least bytes times time are merged by
 * place: instead of single ones the page has changes, at the end of each part of the run and where a
 * group has its most in that part. So at these moments totals and owners are exact, and no peak is
 * lost; in between they are those of the moment before. */
#ifndef GPUMEM_REPORT_RENDER_HTML_THIN_H
#define GPUMEM_REPORT_RENDER_HTML_THIN_H

#include "model/history.h"
#include <stdbool.h>

/* What merged allocations of a place came to since the change before. */
struct gm_html_change {
    uint32_t place;
    uint32_t step; /* it stands behind this one */
    int64_t bytes; /* alive */
    int64_t count;
    uint64_t allocated, allocated_count; /* that began */
    uint64_t temporary, temporary_count; /* of these: that lived shorter than 1 % of the run */
    uint64_t left, left_count;           /* of these: that never ended */
};

struct gm_html_thin {
    bool *is_merged; /* by life; NULL: none is */
    uint64_t merged;
    unsigned parts; /* of the run */
    struct gm_html_change *changes;
    size_t count;
    size_t capacity;
};

/* Keeps about `kept` allocations; all if there are not more. `order`: gm_model_history_order. */
void gm_html_thin_make(struct gm_html_thin *thin, const struct gm_model *model,
                       const struct gm_model_history *history, const uint64_t *order,
                       uint64_t duration_ns, size_t kept);
void gm_html_thin_free(struct gm_html_thin *thin);

#endif
