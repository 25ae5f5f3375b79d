/* What reading a trace takes at least, for scripts/bench: each record is decoded, and what it allocates or frees is
 * entered at its address in the index that the report has, or looked up and removed. */
#include "input/trace/stream.h"
#include "input/trace/trace_open.h"
#include "replay/ledger/lives.h"
#include <stdio.h>

static void begin(struct gm_lives *lives, const struct gm_record *record)
{
    struct gm_life *life = gm_lives_draft(lives);
    life->address = record->address;
    life->size = record->size;
    life->kind = record->kind;
    life->flags = GM_LIFE_ADDRESSED;
    gm_lives_enter(lives, life, gm_lives_place(lives, record->address));
}

static void end(struct gm_lives *lives, const struct gm_record *record)
{
    struct gm_index_slot *slot = gm_lives_slot(lives, record->address);
    if (slot)
        gm_lives_remove(lives, slot->number, slot);
}

int main(int count, char **arguments)
{
    char error[256];
    struct gm_trace *trace = count == 2 ? gm_trace_open(arguments[1], error, sizeof(error)) : NULL;
    struct gm_lives lives;
    struct gm_entry entry;
    if (!trace)
        return 2;
    struct gm_stream *stream = gm_stream_open(trace);
    gm_lives_begin(&lives);
    while (gm_stream_next(stream, &entry)) {
        if (entry.record->type == GM_EVENT_ALLOC)
            begin(&lives, entry.record);
        else if (entry.record->type == GM_EVENT_FREE)
            end(&lives, entry.record);
    }
    printf("%u alive\n", lives.count);
    gm_lives_end(&lives);
    gm_stream_close(stream);
    gm_trace_close(trace);
    return 0;
}
