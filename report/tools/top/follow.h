/* The trace of a process that still runs, looked at again and again: each look replays what has come
 * since the one before. Nothing is asked of the process.
 *
 * A look stops short of now: two threads stamp their records before they publish them, so what is
 * younger than GM_TRACE_BEHIND_NS may still get a neighbour that comes before it. A flight trace
 * overwrites its history, so it is read anew each time; its size is bounded. Memory: what is alive.
 */
#ifndef GPUMEM_REPORT_TOP_FOLLOW_H
#define GPUMEM_REPORT_TOP_FOLLOW_H

#include "input/trace/trace_file.h"
#include "judge/pool/blocks.h"
#include "replay/rules/replay.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct gm_follow_device {
    uint64_t total;    /* of the device; 0 unknown */
    uint64_t used;     /* by the process, as the driver last said; 0 unknown */
    uint64_t residual; /* of that: beyond what was tracked just then */
};

struct gm_follow {
    const char *path;
    struct gm_trace *trace; /* of the latest look */
    struct gm_replay *replay;
    struct gm_blocks *blocks;
    struct gm_follow_device devices[GM_DEVICES]; /* [ordinal + 1] */
    uint64_t *next;                              /* sequence number by lane: not replayed yet */
    size_t lane_count;
    uint64_t events;
    uint64_t as_of_ns; /* since the start of the trace: what came later is not in it yet */
    bool is_behind;    /* the look ended before all was replayed that the trace had */
};

/* `path` must stay. */
void gm_follow_begin(struct gm_follow *follow, const char *path);

/* CPU time of this process, ns. */
uint64_t gm_follow_cpu_ns(void);

/* False with a line in `error` if the trace cannot be read any more. `most_ns`: after so much CPU time
 * the look ends, and the next one goes on there (0: it goes to the end); the first look, and those of a
 * process that has ended, take what they need. A flight trace is always read whole. */
bool gm_follow_look(struct gm_follow *follow, uint64_t most_ns, char *error, size_t error_size);

/* All that lives, by place: `blocks` of pools, else allocations. Sums are not sorted. */
void gm_follow_sites(const struct gm_follow *follow, bool blocks, struct gm_sites *sites);

void gm_follow_end(struct gm_follow *follow);

#endif
