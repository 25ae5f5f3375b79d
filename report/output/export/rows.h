/* One row for each allocation and each block of a trace, for CSV, NDJSON and SQL. */
#ifndef GPUMEM_REPORT_RENDER_EXPORT_ROWS_H
#define GPUMEM_REPORT_RENDER_EXPORT_ROWS_H

#include "output/export/export.h"

/* What the rows of one place have in common. */
struct gm_export_row_place {
    uint32_t stack; /* number in the export */
    char *place;    /* gm_export_place */
};

struct gm_export_rows {
    const struct gm_model *model;
    struct gm_model_history history;
    struct gm_export_row_place *places; /* of those that rows have; by number */
    struct gm_export_stacks stacks;
};

/* False if the trace has no events that can be replayed. To be ended either way. */
bool gm_export_rows_begin(struct gm_export_rows *rows, const struct gm_model *model);
void gm_export_rows_end(struct gm_export_rows *rows);

/* "alive", "freed" or "context": how it ended. */
const char *gm_export_ended(const struct gm_model_life *life);

#endif
