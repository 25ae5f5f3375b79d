/* All begins and ends of a trace in the order of time, packed: some 20 bytes for an allocation. What a page shows
 * takes several walks, and all lives as a list (history.h) would take three times the memory. */
#ifndef GPUMEM_REPORT_OUTPUT_HTML_LOG_H
#define GPUMEM_REPORT_OUTPUT_HTML_LOG_H

#include "base/map.h"
#include "model/history.h"

struct gm_html_log {
    unsigned char *bytes; /* events: see log.c */
    size_t size;
    uint16_t *lives;      /* what is known of each: weight and flags */
    uint32_t count;       /* of lives */
    uint64_t steps;       /* events */
    struct gm_map undone; /* number of a life -> how many ends were undone, as its free failed */
    struct gm_model_marks marks;
};

/* Of a life: its bytes times its time, as a number that grows with it. A double's exponent and 4 bits of its mantissa. */
#define GM_HTML_WEIGHTS 0x1000u
#define GM_HTML_WEIGHT(life) ((life)&0x0fffu)
#define GM_HTML_TEMPORARY 0x4000u /* it lived shorter than 1 % of the run */
#define GM_HTML_LEFT 0x8000u      /* it never ended */

/* Replays the trace of a model of one trace. False, and an empty log, if there is no trace behind it, or more
 * lives than 32 bits count. `duration_ns`: of the run. */
bool gm_html_log_make(struct gm_html_log *log, const struct gm_model *model, uint64_t duration_ns);
void gm_html_log_free(struct gm_html_log *log);

struct gm_html_event {
    bool ends;
    uint32_t step; /* number of the event */
    uint32_t life; /* number, in the order in which they begin */
    uint32_t place;
    uint64_t time_ns;
    uint64_t size;
    uint64_t address; /* of a begin; or a handle */
};

/* A walk through a log; all zero at its beginning. */
struct gm_html_walk {
    size_t at;
    uint32_t begun;
    struct gm_map undone; /* number of a life -> how many of its undone ends were met */
    struct gm_html_event event;
};

/* Goes on to the next event, which is in `event` then. False at the end, where the walk holds nothing more. */
bool gm_html_next(const struct gm_html_log *log, struct gm_html_walk *walk);

#endif
