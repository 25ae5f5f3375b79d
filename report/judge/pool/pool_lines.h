/* Owners of a pool's blocks by line: what many operations allocated for one line of the application
 * is the line's. */
#ifndef GPUMEM_REPORT_POOL_POOL_LINES_H
#define GPUMEM_REPORT_POOL_POOL_LINES_H

#include "names/stacks/callers.h"
#include "replay/ledger/sites.h"

/* A line, by its caller (callers.h). */
struct gm_pool_line {
    uint32_t caller;
    struct gm_line_stack {
        uint32_t stack; /* 0: none */
        uint16_t api;
        uint64_t bytes;
    } stacks
        [GM_LINE_STACKS]; /* with most bytes first: the first is where to look for the line's name */
    uint64_t bytes;
    uint64_t count; /* blocks */
};

struct gm_pool_lines {
    struct gm_pool_line *entries; /* most first */
    size_t count;
    uint64_t bytes; /* of all */
};

struct gm_pool_lines gm_pool_lines_of(struct gm_callers *callers, const struct gm_sites *owners);
void gm_pool_lines_free(struct gm_pool_lines *lines);

#endif
