/* What one device's allocator was asked for and what it did, in order: of a memory snapshot of PyTorch, or of a trace.
 *
 * The state at the beginning is that of the segments then; of a trace from the start of the program it is empty.
 */
#ifndef GPUMEM_REPORT_REPLICA_HISTORY_H
#define GPUMEM_REPORT_REPLICA_HISTORY_H

#include "input/torch/snapshot.h"
#include "input/trace/trace_file.h"
#include "replay/replica/settings.h"

enum gm_step_kind {
    GM_STEP_ALLOC,
    GM_STEP_WAIT,   /* given back, but other streams use the block */
    GM_STEP_FREE,   /* given back, and to be used again */
    GM_STEP_FAIL,   /* a request that was refused */
    GM_STEP_ARRIVE, /* a segment, or a part of an expandable one */
    GM_STEP_DEPART,
};

struct gm_step {
    uint64_t address;
    uint64_t size;  /* bytes; of blocks those asked for, or (of a trace) those given */
    uint64_t asked; /* of ALLOC and FAIL: bytes asked for, as far as it can be told */
    uint64_t stream, pool;
    uint64_t time_ns; /* since the beginning */
    uint64_t took_ns; /* of ARRIVE: time in the calls of the device; 0 not told */
    uint32_t block;   /* number; of ALLOC, WAIT and FREE. GM_NONE: not known */
    uint32_t stack;   /* of a trace; of a snapshot the number of the device's event */
    uint32_t entries; /* of the recording that this stands for */
    uint8_t kind;     /* enum gm_step_kind */
    bool expandable;  /* of ARRIVE and DEPART */
    bool by_request;  /* of DEPART: a request needed the room; else the program emptied the cache */
    bool by_limit;    /* and the device was not asked, or did not refuse */
    bool
        is_untold; /* of FAIL: nothing tells the pool, or the stream and the pool. Of other steps: nothing tells the
                         pool of the segment */
};

/* What was there at the beginning, by address. */
struct gm_there {
    uint64_t address, size;
    uint64_t requested; /* of a block */
    uint64_t stream, pool;
    uint32_t block; /* number; of blocks */
    bool small, expandable;
    bool waiting;
};

struct gm_history {
    int device;
    struct gm_step *steps;
    size_t step_count, step_capacity;
    struct gm_there *segments; /* at the beginning */
    size_t segment_count, segment_capacity;
    struct gm_there *blocks;
    size_t block_count, block_capacity;
    uint32_t numbers;                      /* of blocks: all are below */
    struct gm_allocator_settings settings; /* as recorded */
    uint64_t total;                        /* bytes of the device; 0 unknown */
    uint64_t capacity;                     /* bytes that the allocator could have; 0 unknown */
    uint64_t contradictions;
    bool has_sizes_asked; /* else the sizes of blocks */
    bool has_streams;     /* and pools; else all are told as one */
    bool has_pools;       /* else only those of segments that were there at the end */
};

/* The history of a device; of GM_ANY_DEVICE that which reserved most. False with a line in `error`. */
#define GM_ANY_DEVICE (-1)
bool gm_history_of_snapshot(struct gm_history *history, const struct gm_torch_snapshot *snapshot,
                            int device, char *error, size_t error_size);
/* The device of a snapshot that its history is of. */
const struct gm_torch_device *gm_history_device(const struct gm_torch_snapshot *snapshot,
                                                int device);
bool gm_history_of_trace(struct gm_history *history, struct gm_trace *trace, int device,
                         char *error, size_t error_size);
/* What a snapshot tells at its end of the time before (told_snapshot.c): the pool of each step whose segment was there
 * still; and bytes that the allocator could have, by the requests for which its cache was given back, 0 unknown. */
void gm_history_tell_pools(struct gm_history *history, const struct gm_torch_device *device);
uint64_t gm_history_limit(const struct gm_history *history);

/* Guesses what a trace does not tell, streams and the sizes asked for, and the pools that snapshots of older versions do
 * not tell (guess.c). Then settles (refused.c) which requests gave back a part of the cache, where that is recorded as if
 * the program had emptied it, and in which pool a refused request found nothing. `exact`: it is known which of two
 * segments of one size goes first. */
void gm_history_guess(struct gm_history *history);
void gm_history_settle(struct gm_history *history, bool exact);

/* The two parts of gm_history_guess: streams and pools, then all else. */
void gm_history_guess_groups(struct gm_history *history);
void gm_history_guess_rest(struct gm_history *history);

/* The first step that gm_history_settle() may change; the number of steps if it changes none. */
size_t gm_history_settles_from(const struct gm_history *history);

/* For a trace that tells them (told.c): the recorder's numbers of pools become pools, 0 the common one (one of
 * its numbers is `common`; 0: that is not known); segments get
 * the streams and pools of their requests; what waits for other streams ends to wait. */
void gm_history_name_pools(struct gm_history *history, uint64_t common);
void gm_history_tell_segments(struct gm_history *history);
void gm_history_end_waits(struct gm_history *history);

void gm_history_free(struct gm_history *history);

#endif
