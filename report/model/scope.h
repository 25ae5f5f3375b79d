/* Which allocations a reader asks for: those of one thread, or those made while a phase was open. Told while
 * the records of a trace pass in the order of time.
 *
 * A phase is open if any thread has a range of that name open (as in phases.h, its memory is that of the
 * whole process: autograd's threads work for the range of the main one), or if the latest mark of the program
 * has that name. What a flight trace carried over is of no thread and no phase.
 *
 * O(ranges open in the lane) per record of a range, O(1) per other record. */
#ifndef GPUMEM_REPORT_MODEL_SCOPE_H
#define GPUMEM_REPORT_MODEL_SCOPE_H

#include "base/map.h"
#include "input/trace/stream.h"
#include "model/model.h"

struct gm_scope {
    const struct gm_trace *trace;
    struct gm_scope_request request;
    struct gm_scope_lane *lanes;
    size_t lane_count;
    size_t lane_capacity;
    struct gm_map started;  /* number of a range that any thread can end, of that name -> 0 */
    uint64_t ranges;        /* of that name, open in lanes */
    uint64_t started_count; /* and of the others */
    bool is_marked;         /* the latest mark has that name */
    bool holds;             /* of the latest record */
};

void gm_scope_begin(struct gm_scope *scope, const struct gm_trace *trace,
                    const struct gm_scope_request *request);

/* The next record. What it allocates is of the scope if `holds` is set then. */
void gm_scope_note(struct gm_scope *scope, const struct gm_entry *entry);

void gm_scope_end(struct gm_scope *scope);

/* The threads of a trace, in the order of what they did first; the caller frees them. */
struct gm_scope_thread *gm_scope_threads(struct gm_trace *trace, size_t *count);

#endif
