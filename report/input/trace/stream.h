/* All records of a trace in the order of time, as one stream.
 *
 * Guarantees: the records of one lane come in the order of their sequence numbers, each once, also
 * where clocks of two processors disagree; between lanes time decides, then the lane's number, so
 * that the same trace always gives the same stream. Of a running process nothing younger than
 * gm_trace.until is delivered. What a flight trace carried over comes before
 * all else. Stacks that are the same to a reader (same_stacks.h) have one id, that of the first.
 * Memory: one decoded block per lane.
 */
#ifndef GPUMEM_REPORT_TRACE_STREAM_H
#define GPUMEM_REPORT_TRACE_STREAM_H

#include "input/trace/trace_file.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One record with the detail that may follow it. Valid until the next call. */
struct gm_entry {
    const struct gm_record *record;
    const struct gm_record *detail; /* NULL if there is none */
    uint32_t lane;
    bool carried; /* from the checkpoint that the history of a flight trace begins with */
};

struct gm_stream;

/* Records that follow one another in the stream as they do in their lane: they are handed out where they
 * were decoded. All stacks in it are the first of their kind, and behind the last record stands one that
 * is no detail. Every stream begins with its run. */
struct gm_stream_run {
    const struct gm_record *at;
    const struct gm_record *end;
    uint32_t lane;
};

/* Marks blocks that turn out to be damaged in `trace`, and counts each once. */
struct gm_stream *gm_stream_open(struct gm_trace *trace);
void gm_stream_close(struct gm_stream *stream);

/* `look` is shown the records of a lane that were decoded and are to be delivered soon, so that it
 * can bring near what they need. NULL: nobody is shown them. */
void gm_stream_show_ahead(struct gm_stream *stream,
                          void (*look)(void *argument, const struct gm_record *records,
                                       size_t count),
                          void *argument);

/* The next record; false at the end. */
bool gm_stream_next_run(struct gm_stream *stream, struct gm_entry *entry);
static inline bool gm_stream_next(struct gm_stream *stream, struct gm_entry *entry)
{
    struct gm_stream_run *run = (struct gm_stream_run *)stream;
    if (run->at == run->end)
        return gm_stream_next_run(stream, entry);
    const struct gm_record *record = run->at;
    bool has_detail = record[1].type == GM_EVENT_DETAIL;
    run->at += has_detail ? 2 : 1;
    entry->record = record;
    entry->detail = has_detail ? record + 1 : NULL;
    entry->lane = run->lane;
    entry->carried = false;
    return true;
}

/* For each lane below `count` the sequence number of its first record that was not delivered: where
 * another stream, of the same trace read later, can go on (gm_lane_source.first). Lanes without
 * records are left as they are. */
void gm_stream_positions(const struct gm_stream *stream, uint64_t *next, size_t count);

/* Records missing so far: gaps between the sequence numbers. */
uint64_t gm_stream_lost(const struct gm_stream *stream);

#endif
