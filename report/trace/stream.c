/* See stream.h. The lanes stand in a heap by the time of their next record. */
#include "trace/stream.h"
#include "base/limit.h"
#include "base/memory.h"
#include "trace/carried.h"
#include "trace/lane.h"
#include "trace/same_stacks.h"
#include <stdlib.h>

struct lane {
    struct gm_lane_reader reader;
    uint32_t number;
    uint64_t time; /* of `ready`, never going back within the lane */
    /* Three records take turns: the one being delivered, its detail, and the next. */
    struct gm_record slots[3];
    struct gm_record *ready; /* the record to deliver next; NULL at the end */
    struct gm_record *detail;
    struct gm_record *ahead; /* read to see whether it is a detail; NULL if none */
};

struct gm_stream {
    struct gm_trace *trace;
    ZSTD_DCtx *context;
    struct lane **heap; /* of lanes that still have records */
    size_t heap_size;
    struct lane **lanes;
    size_t lane_count;
    struct lane *current; /* delivered last: moves on at the next call */
    struct gm_carried_reader carried;
    struct gm_record carried_slots[3]; /* being delivered, its detail, and the next */
    uint32_t carried_lane;             /* of the next */
    bool carried_ahead;                /* there is a next */
};

static bool fetch(struct gm_stream *stream, struct lane *lane, struct gm_record *slot)
{
    const struct gm_record *record = gm_lane_next(&lane->reader, stream->context);
    if (!record)
        return false;
    *slot = *record;
    slot->stack = gm_same_stacks_first(lane->reader.trace->same_stacks, record->stack);
    return true;
}

/* A slot that holds neither `a` nor `b`. */
static struct gm_record *free_slot(struct lane *lane, const struct gm_record *a,
                                   const struct gm_record *b)
{
    struct gm_record *slot = lane->slots;
    while (slot == a || slot == b)
        slot++;
    return slot;
}

/* Moves the lane to its next record. A detail without the record before it is passed over, also
 * when an older record stands before it: what lies behind a gap belongs to nothing before the gap.
 */
static void advance(struct gm_stream *stream, struct lane *lane)
{
    struct gm_record *slot = lane->ahead;
    if (!slot) {
        slot = lane->slots;
        if (!fetch(stream, lane, slot))
            slot = NULL;
    }
    while (slot && slot->type == GM_EVENT_DETAIL)
        if (!fetch(stream, lane, slot))
            slot = NULL;
    lane->ready = slot;
    lane->detail = lane->ahead = NULL;
    if (!slot)
        return;
    if (slot->time > lane->time)
        lane->time = slot->time;
    struct gm_record *next = free_slot(lane, slot, NULL);
    uint64_t lost = lane->reader.lost;
    if (!fetch(stream, lane, next))
        return;
    lane->ahead = next;
    if (next->type != GM_EVENT_DETAIL || lane->reader.lost != lost)
        return;
    lane->detail = next;
    lane->ahead = free_slot(lane, slot, next);
    if (!fetch(stream, lane, lane->ahead))
        lane->ahead = NULL;
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
        advance(stream, lane);
        if (lane->ready)
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

/* What asks for more than a trace of its size may is not read to its end. */
static bool is_over_limit(struct gm_stream *stream)
{
    if (gm_limits_spend(GM_STEPS_RECORD))
        return false;
    if (!stream->trace->over_limit)
        stream->trace->damaged++;
    stream->trace->over_limit = true;
    return true;
}

bool gm_stream_next(struct gm_stream *stream, struct gm_entry *entry)
{
    if (is_over_limit(stream))
        return false;
    if (stream->carried_ahead && next_carried(stream, entry))
        return true;
    if (stream->current) {
        advance(stream, stream->current);
        if (!stream->current->ready)
            stream->heap[0] = stream->heap[--stream->heap_size];
        if (stream->heap_size)
            sift_down(stream, 0);
    }
    stream->current = stream->heap_size ? stream->heap[0] : NULL;
    if (!stream->current)
        return false;
    *entry = (struct gm_entry){.record = stream->current->ready,
                               .detail = stream->current->detail,
                               .lane = stream->current->number};
    return true;
}

uint64_t gm_stream_lost(const struct gm_stream *stream)
{
    uint64_t lost = 0;
    for (size_t i = 0; i < stream->lane_count; i++)
        lost += stream->lanes[i]->reader.lost;
    return lost;
}
