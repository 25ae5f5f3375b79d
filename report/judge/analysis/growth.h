/* Places whose live memory rises from mark to mark: the leak that totals cannot show, because it is
 * small, or given back at the end.
 *
 * A series are the marks of one name, or the ends of the outermost ranges of one name; all marks
 * together are one more. The first GM_GROWTH_WARM_UP marks, while caches fill, do not count. Of the
 * others the second half is cut into GM_GROWTH_PARTS parts. A place grows if in each part it rose
 * above all it held in the part before, and never fell below that: what is given back between two
 * requests or epochs is no growth, and neither is a cache that is full. A loss need not be in every
 * step: once in each part is enough. Where other places gave back about as much, memory only went
 * from one place to another, as when objects are replaced by new ones.
 *
 * At a mark only places are looked at that allocated or freed since the last mark of its series, so
 * all work is O(1) amortized per event.
 */
#ifndef GPUMEM_REPORT_ANALYSIS_GROWTH_H
#define GPUMEM_REPORT_ANALYSIS_GROWTH_H

#include "base/facts.h"
#include "judge/analysis/phases.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GM_GROWTH_SERIES = 8,     /* all marks, and the first names */
    GM_GROWTH_SITES = 1 << 16 /* further ones are not watched */
};

/* A place and what it does: see activity.h, which keeps them. */
struct gm_active_site {
    uint32_t stack;
    uint16_t api;
    uint8_t kind; /* enum gm_kind */
    int8_t device;
    bool is_block;
    bool is_segment; /* its memory is that of a framework's cache, taken from the driver */
    bool is_ignored; /* no leak and no growth, as the program says */
    uint64_t live;   /* bytes, now */
    uint64_t peak;   /* bytes of this place at one time */
    uint64_t live_count;
    uint64_t allocs;
    uint64_t allocated;   /* bytes, ever */
    uint64_t short_lived; /* of the allocations that ended: within GM_SHORT_LIFE_NS */
    uint64_t short_bytes;
};

/* All places at one time. */
struct gm_growth_view {
    const struct gm_active_site *sites;
    size_t count;
    uint64_t live[2]; /* [is_block]: bytes of all of them but ignored ones */
};

struct gm_growth_state; /* of one place in one series */

struct gm_growth_series {
    enum gm_moment_kind kind; /* NONE: all marks */
    uint32_t name;
    uint64_t marks;
    uint32_t *touched; /* places, since the latest mark */
    size_t touched_count;
    size_t touched_capacity;
    struct gm_growth_state *totals; /* [is_block]: of all places */
    struct gm_growth_state *states; /* [place]; of places that come later all is 0 */
    size_t state_count;
};

/* A place that grew. */
struct gm_growing {
    uint32_t site; /* of gm_activity.sites */
    const struct gm_growth_series *series;
    uint64_t over;                       /* so many marks, the last ones of the series */
    uint64_t bytes[GM_GROWTH_PARTS + 1]; /* live at most before them, and in each part of them */
};

/* All zero: no mark yet. */
struct gm_growth {
    struct gm_growth_series series[GM_GROWTH_SERIES];
    size_t series_count;
    uint8_t *listed; /* [place]: bit s: it stands in series[s].touched */
    size_t listed_count;
    struct gm_growing *found; /* once finished: most growth first, each place once */
    size_t found_count;
    size_t found_capacity;
};

/* A place allocated or freed. */
void gm_growth_touch(struct gm_growth *growth, uint32_t site);

/* A mark; takes what is live now as the value of this mark. */
void gm_growth_mark(struct gm_growth *growth, const struct gm_growth_view *view,
                    struct gm_moment moment);

/* Finds what grew. */
void gm_growth_finish(struct gm_growth *growth, const struct gm_growth_view *view);
void gm_growth_free(struct gm_growth *growth);

/* How much more a place held in the end than before the marks that count. */
static inline uint64_t gm_growing_bytes(const struct gm_growing *growing)
{
    return growing->bytes[GM_GROWTH_PARTS] - growing->bytes[0];
}

#endif
