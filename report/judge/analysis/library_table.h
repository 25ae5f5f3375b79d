/* Bytes of a device by library (pool/libraries.h), side by side for some moments. */
#ifndef GPUMEM_REPORT_ANALYSIS_LIBRARY_TABLE_H
#define GPUMEM_REPORT_ANALYSIS_LIBRARY_TABLE_H

#include "base/facts.h"
#include "judge/analysis/analysis.h"
#include "judge/pool/libraries.h"

/* The libraries with most bytes among owners, most first; at most `most` of them. */
size_t gm_library_shares(struct gm_libraries *libraries, const struct gm_sites *owners,
                         struct gm_library_share *shares, size_t most);

struct gm_library_table {
    struct gm_library_line *lines; /* most at the peak first */
    size_t count;
    size_t capacity;
    uint64_t bytes[GM_LIBRARY_MOMENTS]; /* of all */
    uint64_t failure_time;              /* record clock; 0: never out of memory */
};

struct gm_library_table gm_library_table_of(struct gm_libraries *libraries,
                                            const struct gm_analysis *analysis, int device);
void gm_library_table_free(struct gm_library_table *table);

#endif
