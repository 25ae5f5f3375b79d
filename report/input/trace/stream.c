/* See stream.h. The lanes stand in a heap by the time of their next record. */
#include "input/trace/stream.h"
#include "base/limit.h"
#include "base/memory.h"
#include "input/trace/carried.h"
#include "input/trace/lane.h"
#include "input/trace/same_stacks.h"
#include <stdlib.h>

struct lane {
    struct gm_lane_reader reader;
    uint32_t number;
    uint64_t time;              /* of the next record, never going back within the lane */
    const struct gm_record *at; /* the next record; at `end` there is none any more */
    const struct gm_record *end;
    bool behind_gap; /* records are missing before `at` */
};

struct gm_stream {
    struct gm_stream_run run; /* first: gm_stream_next looks at it alone */
    struct gm_trace *trace;
    ZSTD_DCtx *context;
    struct lane **heap; /* of lanes that still have records */
    size_t heap_size;
    struct lane **lanes;
    size_t lane_count;
    const struct lane *latest; /* that a record was delivered of */
    struct gm_record slots[2]; /* the record that was delivered last, and its detail */
    void (*look)(void *argument, const struct gm_record *records, size_t count); /* may be NULL */
    void *look_argument;
    struct gm_carried_reader carried;
    struct gm_record carried_slots[3]; /* being delivered, its detail, and the next */
    uint32_t carried_lane;             /* of the next */
    bool carried_ahead;                /* there is a next */
};

static void read_on(struct gm_stream *stream, struct lane *lane)
{
    uint64_t lost = lane->reader.lost;
    size_t count = gm_lane_next(&lane->reader, stream->context, &lane->at);
    lane->end = lane->at + count;
    lane->behind_gap = lane->reader.lost != lost;
    if (stream->look)
        stream->look(stream->look_argument, lane->at, count);
}

/* Goes on to the next record. */
static inline void step_lane(struct gm_stream *stream, struct lane *lane)
{
    lane->behind_gap = false;
    if (++lane->at == lane->end)
        read_on(stream, lane);
}

/* Passes over details that belong to nothing: what lies behind a gap does not belong to what stands
 * before it. */
static inline void find_next(struct gm_stream *stream, struct lane *lane)
{
    while (lane->at < lane->end && lane->at->type == GM_EVENT_DETAIL)
        step_lane(stream, lane);
    if (lane->at < lane->end && lane->at->time > lane->time)
        lane->time = lane->at->time;
}

/* Hands out the lane's next record, with its detail, and goes on to the one behind. */
static void deliver(struct gm_stream *stream, struct lane *lane, struct gm_entry *entry)
{
    struct gm_record *slots = stream->slots;
    slots[0] = *lane->at;
    slots[0].stack = gm_same_stacks_first(stream->trace->same_stacks, slots[0].stack);
    *entry = (struct gm_entry){.record = &slots[0], .lane = lane->number};
    step_lane(stream, lane);
    if (lane->at < lane->end && lane->at->type == GM_EVENT_DETAIL && !lane->behind_gap) {
        slots[1] = *lane->at;
        slots[1].stack = gm_same_stacks_first(stream->trace->same_stacks, slots[1].stack);
        entry->detail = &slots[1];
        step_lane(stream, lane);
    }
    find_next(stream, lane);
}

static bool before(const struct lane *a, const struct lane *b)
{
    return a->time != b->time ? a->time < b->time : a->number < b->number;
}

static void sift_down(struct gm_stream *stream, size_t at)
{
    struct lane **heap = stream->heap, *lane = heap[at];
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= stream->heap_size)
            break;
        if (child + 1 < stream->heap_size && before(heap[child + 1], heap[child]))
            child++;
        if (!before(heap[child], lane))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = lane;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static bool is_own(const struct gm_stream *stream, uint32_t stack)
{
    return !stack || gm_same_stacks_first(stream->trace->same_stacks, stack) == stack;
}

/* The latest time at which a record of the first lane comes before all of the others. */
static uint64_t first_lane_until(const struct gm_stream *stream)
{
    struct lane *const *heap = stream->heap;
    uint64_t until = stream->trace->until;
    for (size_t i = 1; i < stream->heap_size && i <= 2; i++) { /* the second is one of these */
        bool wins = heap[0]->number < heap[i]->number;
        uint64_t last = wins || heap[i]->time == 0 ? heap[i]->time : heap[i]->time - 1;
        until = last < until ? last : until;
    }
    return until;
}

/* Makes a run of what the first lane has until it is another one's turn, up to where a record has to be
 * copied: the last of its batch, and one whose stack is shown as another. Returns how many records the
 * run has, details not counted. */
static size_t begin_run(struct gm_stream *stream)
{
    struct lane *lane = stream->heap[0];
    const struct gm_record *at = lane->at, *last = lane->end - 1;
    uint64_t time = lane->time, until = first_lane_until(stream);
    size_t count = 0;
    for (; at < last && time <= until && is_own(stream, at->stack); count++) {
        if (at[1].type == GM_EVENT_DETAIL) {
            if (at + 1 == last || at[2].type == GM_EVENT_DETAIL || !is_own(stream, at[1].stack))
                break;
            at++;
        }
        at++;
        time = at->time > time ? at->time : time;
    }
    if (!count)
        return 0;
    stream->run = (struct gm_stream_run){lane->at, at, lane->number};
    lane->at = at;
    lane->time = time;
    lane->behind_gap = false;
    return count;
}

/* ---- carried records, before all others ------------------------------------------------------ */

static void look_ahead(struct gm_stream *stream)
{
    const struct gm_record *record =
        gm_carried_next(&stream->carried, stream->context, &stream->carried_lane);
    stream->carried_ahead = record != NULL;
    if (!record)
        return;
    stream->carried_slots[2] = *record;
    stream->carried_slots[2].stack =
        gm_same_stacks_first(stream->carried.trace->same_stacks, record->stack);
}

static bool next_carried(struct gm_stream *stream, struct gm_entry *entry)
{
    struct gm_record *slots = stream->carried_slots;
    while (stream->carried_ahead && slots[2].type == GM_EVENT_DETAIL)
        look_ahead(stream);
    if (!stream->carried_ahead)
        return false;
    slots[0] = slots[2];
    *entry = (struct gm_entry){.record = &slots[0], .lane = stream->carried_lane, .carried = true};
    look_ahead(stream);
    if (stream->carried_ahead && slots[2].type == GM_EVENT_DETAIL) {
        slots[1] = slots[2];
        entry->detail = &slots[1];
        look_ahead(stream);
    }
    return true;
}

/* ---- all ------------------------------------------------------------------------------------- */

struct gm_stream *gm_stream_open(struct gm_trace *trace)
{
    struct gm_stream *stream = gm_allocate(1, sizeof(*stream));
    stream->trace = trace;
    stream->context = ZSTD_createDCtx();
    gm_carried_begin(&stream->carried, trace);
    look_ahead(stream);
    stream->lanes = gm_allocate(trace->lane_count, sizeof(*stream->lanes));
    stream->heap = gm_allocate(trace->lane_count, sizeof(*stream->heap));
    for (size_t number = 0; number < trace->lane_count; number++) {
        struct gm_lane_source *source = &trace->lanes[number];
        if (!source->block_count && source->ring_first == source->ring_end)
            continue;
        struct lane *lane = gm_allocate(1, sizeof(*lane));
        gm_lane_begin(&lane->reader, trace, source);
        lane->number = (uint32_t)number;
        stream->lanes[stream->lane_count++] = lane;
        read_on(stream, lane);
        find_next(stream, lane);
        if (lane->at < lane->end)
            stream->heap[stream->heap_size++] = lane;
    }
    for (size_t at = stream->heap_size / 2; at-- > 0;)
        sift_down(stream, at);
    return stream;
}

void gm_stream_close(struct gm_stream *stream)
{
    for (size_t i = 0; i < stream->lane_count; i++) {
        gm_lane_end(&stream->lanes[i]->reader);
        free(stream->lanes[i]);
    }
    gm_carried_end(&stream->carried);
    ZSTD_freeDCtx(stream->context);
    free(stream->lanes);
    free(stream->heap);
    free(stream);
}

void gm_stream_show_ahead(struct gm_stream *stream,
                          void (*look)(void *argument, const struct gm_record *records,
                                       size_t count),
                          void *argument)
{
    stream->look = look;
    stream->look_argument = argument;
}

/* What asks for more than a trace of its size may is not read to its end. */
static bool end_over_limit(struct gm_stream *stream)
{
    if (!stream->trace->over_limit)
        stream->trace->damaged++;
    stream->trace->over_limit = true;
    return false;
}

bool gm_stream_next_run(struct gm_stream *stream, struct gm_entry *entry)
{
    if (!gm_limits_spend(GM_STEPS_RECORD))
        return end_over_limit(stream);
    if (stream->carried_ahead && next_carried(stream, entry))
        return true;
    if (!stream->heap_size || stream->heap[0]->time > stream->trace->until)
        return false;
    struct lane *lane = stream->heap[0];
    if (lane != stream->latest)
        gm_limits_spend(GM_STEPS_LANE);
    stream->latest = lane;
    size_t count = begin_run(stream);
    if (count > 1 && !gm_limits_spend((count - 1) * GM_STEPS_RECORD)) {
        stream->run = (struct gm_stream_run){0};
        return end_over_limit(stream);
    }
    if (count) {
        gm_stream_next(stream, entry);
    } else {
        deliver(stream, lane, entry);
        if (lane->at == lane->end)
            stream->heap[0] = stream->heap[--stream->heap_size];
    }
    if (stream->heap_size > 1)
        sift_down(stream, 0);
    return true;
}

void gm_stream_positions(const struct gm_stream *stream, uint64_t *next, size_t count)
{
    for (size_t i = 0; i < stream->lane_count; i++) {
        const struct lane *lane = stream->lanes[i];
        size_t left = (size_t)(lane->end - lane->at);
        if (lane->number == stream->run.lane)
            left += (size_t)(stream->run.end - stream->run.at);
        if (lane->number < count)
            next[lane->number] = lane->reader.next - left;
    }
}

uint64_t gm_stream_lost(const struct gm_stream *stream)
{
    uint64_t lost = 0;
    for (size_t i = 0; i < stream->lane_count; i++)
        lost += stream->lanes[i]->reader.lost;
    return lost;
}
