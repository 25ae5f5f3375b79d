/* All allocations and blocks of a trace, each with its begin and its end: what outputs need that
 * show single allocations. Memory: 56 bytes for each. */
#ifndef GPUMEM_REPORT_MODEL_HISTORY_H
#define GPUMEM_REPORT_MODEL_HISTORY_H

#include "model/model.h"

#define GM_MODEL_ALIVE UINT64_MAX /* instead of the time or the step of an end: there was none */

struct gm_model_life {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t address; /* or a handle */
    uint64_t size;
    uint64_t requested; /* of a block: what was asked for; 0: not told */
    uint32_t place;
    uint32_t begin_step; /* begins and ends of the trace have one step each: 0, 1, 2 ... */
    uint32_t end_step;   /* GM_NONE: it is alive at the end */
    bool implicit;       /* it ended with its context */
    bool in_scope;       /* what was asked for */
    bool
        is_mapped; /* memory of the VMM, in a history with moves: the address is where it is mapped */
};

/* A mark of the program, or where it opened a range. */
struct gm_model_mark {
    uint64_t time_ns;
    uint64_t end_ns; /* of a range; GM_MODEL_ALIVE: it was never closed */
    bool is_range;
    struct gm_text name;
};

#define GM_MODEL_MARKS 10000u /* kept; further ones are counted */

struct gm_model_marks {
    struct gm_model_mark *list; /* the first ones */
    size_t count, capacity;
    uint64_t met;
};

/* Whether an event is about a mark; it is noted then. */
bool gm_model_note_mark(struct gm_model_marks *marks, const struct gm_model_event *event);
void gm_model_marks_free(struct gm_model_marks *marks);

struct gm_model_history {
    struct gm_model_life *lives; /* in the order in which they began */
    size_t count;
    uint32_t steps;
    struct gm_model_marks marks;
};

/* Replays the trace of a model of one trace. A free that failed is no end. False if there is no trace
 * behind the model, or more lives than 32 bits count; the history is empty then. `scope`: what the reader
 * asks for; NULL: all. */
bool gm_model_history(const struct gm_model *model, const struct gm_scope_request *scope,
                      struct gm_model_history *history);

/* The same of everything, with memory of the VMM where it is mapped: each stay is a life of its own. */
bool gm_model_history_with_moves(const struct gm_model *model, struct gm_model_history *history);
void gm_model_history_free(struct gm_model_history *history);

/* What happens at each step: 0 nothing (a free that failed was here), else a life that begins or ends.
 * The caller frees it. */
uint64_t *gm_model_history_order(const struct gm_model_history *history);
#define GM_STEP_LIFE(step) (((step)-1) >> 1) /* its number */
#define GM_STEP_ENDS(step) (((step)-1) & 1)

/* ---- who held memory at a moment of the reader's choice --------------------------------------- */

enum gm_when_kind {
    GM_WHEN_DEFAULT, /* what the output shows if nobody says */
    GM_WHEN_PEAK,    /* each device, the pinned memory and each pool at its own peak */
    GM_WHEN_OOM,     /* each device and pool when it last had nothing to give */
    GM_WHEN_END,     /* what was left at the end of the run, of every class; blocks not freed */
    GM_WHEN_TIME,    /* all that lived at a time; of external memory nothing, as in a peak */
};

struct gm_when {
    enum gm_when_kind kind;
    uint64_t time_ns; /* of TIME: since the start of the run */
};

/* Who held memory then. A place stands in it once. */
struct gm_model_held {
    struct gm_model_sample *samples; /* by group (gm_place_group), then most bytes first */
    size_t count;
};

/* False if there was no such moment: no refusal, or no events to replay. To be freed either way. */
bool gm_model_held_at(const struct gm_model *model, const struct gm_when *when,
                      struct gm_model_held *held);

/* The same of what was allocated in a scope alone, of a model of one trace. Its peak is that of what is in the
 * scope, of each group for itself. One more replay. */
bool gm_model_held_in_scope(const struct gm_model *model, const struct gm_when *when,
                            const struct gm_scope_request *scope, struct gm_model_held *held);
void gm_model_held_free(struct gm_model_held *held);

/* Whose capacity the memory of a place is: sums make sense within one group alone. Blocks lie in the
 * memory of other places. The text, such as "device 0", "host pinned" or "blocks on device 0", is
 * written to `text`. */
#define GM_GROUP_TEXT 32
const char *gm_place_group(const struct gm_model_place *place, char text[GM_GROUP_TEXT]);

#endif
