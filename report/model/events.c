/* Events of a model on demand: one more replay. See model.h. */
#include "base/each.h"
#include "base/memory.h"
#include "input/trace/stream.h"
#include "model/builder.h"
#include "model/scope.h"
#include "names/stacks/redact.h"
#include <stdlib.h>

/* A range that a thread opened inside another one. */
struct open_range {
    uint32_t number;
    uint32_t around; /* place in the list; GM_NONE: none */
};

struct events {
    struct gm_builder builder;
    struct gm_replay replay;
    struct gm_scope scope;
    struct gm_blocks blocks;
    struct gm_map block_lives; /* address of a live block -> its number as a life */
    uint32_t lives;            /* so far */
    uint32_t marks;            /* so far */
    struct gm_map started;     /* number that the program gave a range -> that of the mark */
    struct gm_map innermost;   /* nest -> place of its innermost range in `pushed` */
    struct open_range *pushed;
    size_t pushed_count;
    size_t pushed_capacity;
    void (*visit)(void *argument, const struct gm_model_event *event);
    void *argument;
};

/* Fills in the rest of an event and tells it. It is handed on where it stands: a copy of what was just written in
 * small parts would have to wait for the parts. */
static void tell_event(struct events *events, const struct gm_site *site, bool is_block,
                       struct gm_model_event *event)
{
    event->place = gm_builder_place(&events->builder, site, is_block);
    event->time_ns = gm_builder_time(&events->builder, events->replay.ledger.time);
    event->in_scope = event->what == GM_MODEL_BEGINS && events->scope.holds;
    events->visit(events->argument, event);
}

/* ---- allocations ----------------------------------------------------------------------------- */

static void tell_life(struct events *events, const struct gm_life *life,
                      struct gm_model_event *event)
{
    struct gm_site site = gm_site_of_life(life, 0);
    event->life = life->place;
    event->address = life->address;
    event->size = life->size;
    tell_event(events, &site, false, event);
}

static void life_begins(void *argument, struct gm_life *life)
{
    struct events *events = argument;
    life->place = events->lives++;
    tell_life(argument, life, &(struct gm_model_event){.what = GM_MODEL_BEGINS});
}

static void life_ends(void *argument, const struct gm_life *life, bool implicit)
{
    tell_life(argument, life,
              &(struct gm_model_event){.what = GM_MODEL_ENDS, .implicit = implicit});
}

static void life_goes_on(void *argument, const struct gm_life *life, bool implicit)
{
    tell_life(argument, life,
              &(struct gm_model_event){.what = GM_MODEL_GOES_ON, .implicit = implicit});
}

static void life_grows(void *argument, const struct gm_life *life, uint64_t before)
{
    struct gm_life was = *life;
    was.size = before;
    life_ends(argument, &was, false);
    life_goes_on(argument, life, false);
}

static void life_moves(void *argument, struct gm_life *life, uint64_t address)
{
    struct events *events = argument;
    struct gm_life there = *life;
    tell_life(argument, life, &(struct gm_model_event){.what = GM_MODEL_ENDS});
    life->place = there.place = events->lives++;
    there.address = address ? address : life->address;
    tell_life(argument, &there,
              &(struct gm_model_event){.what = GM_MODEL_BEGINS, .is_mapped = address != 0});
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static void tell_block(struct events *events, const struct gm_pool_block *block,
                       struct gm_model_event *event)
{
    struct gm_site site = {
        .stack = block->stack, .api = block->api, .kind = GM_KIND_DEVICE, .device = block->device};
    GM_COPY_MEMBERS(event, block, address, size, requested);
    tell_event(events, &site, true, event);
}

/* A record, before the blocks take notice of it: a block whose end is not on record ends when its
 * address is given out again. */
static void note_block(struct events *events, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    if (record->type != GM_EVENT_BLOCK_ALLOC && record->type != GM_EVENT_BLOCK_FREE)
        return;
    const struct gm_pool_block *there = gm_blocks_at(&events->blocks, record->address);
    if (there)
        tell_block(
            events, there,
            &(struct gm_model_event){.what = GM_MODEL_ENDS,
                                     .life = gm_map_get(&events->block_lives, record->address)});
    if (record->type == GM_EVENT_BLOCK_ALLOC) {
        struct gm_pool_block block = {.address = record->address,
                                      .size = gm_blocks_size(&events->blocks, record),
                                      .requested = gm_blocks_requested(&events->blocks, entry),
                                      GM_SAME(record, stack, api, device)};
        gm_map_set(&events->block_lives, record->address, events->lives);
        tell_block(events, &block,
                   &(struct gm_model_event){.what = GM_MODEL_BEGINS, .life = events->lives++});
    }
}

/* ---- marks ----------------------------------------------------------------------------------- */

/* Each thread has a nest of ranges for each owner, whose numbers are below 2^48, as they are addresses. */
static uint64_t nest_of(const struct gm_entry *entry)
{
    return (uint64_t)entry->lane << 48 ^ entry->record->address;
}

static void open_mark(struct events *events, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    uint32_t number = events->marks++;
    if (record->type == GM_EVENT_RANGE_PUSH) {
        GM_RESERVE(events->pushed, events->pushed_capacity, events->pushed_count + 1);
        events->pushed[events->pushed_count] =
            (struct open_range){number, gm_map_get(&events->innermost, nest_of(entry))};
        gm_map_set(&events->innermost, nest_of(entry), (uint32_t)events->pushed_count++);
    } else if (record->type == GM_EVENT_RANGE_START) {
        gm_map_set(&events->started, record->address, number);
    }
    struct gm_model_event event = {
        .what = GM_MODEL_MARK,
        .is_range = record->type != GM_EVENT_MARK,
        .life = number,
        .time_ns = gm_builder_time(&events->builder, record->time),
        .name = gm_shown_name(events->builder.trace, record->aux),
    };
    events->visit(events->argument, &event);
}

/* The number of the range that a record closes; GM_NONE: its beginning is not on record. */
static uint32_t closed_by(struct events *events, const struct gm_entry *entry)
{
    uint64_t id = entry->record->address;
    if (entry->record->type == GM_EVENT_RANGE_END) {
        uint32_t number = gm_map_get(&events->started, id);
        gm_map_remove(&events->started, id);
        return number;
    }
    uint32_t at = gm_map_get(&events->innermost, nest_of(entry));
    if (at == GM_NONE)
        return GM_NONE;
    if (events->pushed[at].around == GM_NONE)
        gm_map_remove(&events->innermost, nest_of(entry));
    else
        gm_map_set(&events->innermost, nest_of(entry), events->pushed[at].around);
    return events->pushed[at].number;
}

static void note_mark(struct events *events, const struct gm_entry *entry)
{
    switch (entry->record->type) {
    case GM_EVENT_MARK:
    case GM_EVENT_RANGE_PUSH:
    case GM_EVENT_RANGE_START:
        open_mark(events, entry);
        return;
    case GM_EVENT_RANGE_POP:
    case GM_EVENT_RANGE_END: {
        struct gm_model_event event = {
            .what = GM_MODEL_CLOSES,
            .life = closed_by(events, entry),
            .time_ns = gm_builder_time(&events->builder, entry->record->time),
        };
        if (event.life != GM_NONE)
            events->visit(events->argument, &event);
        return;
    }
    default:
        return;
    }
}

/* ---- the replay ------------------------------------------------------------------------------ */

bool gm_model_events(const struct gm_model *model, const struct gm_model_events_request *request,
                     void (*visit)(void *argument, const struct gm_model_event *event),
                     void *argument)
{
    const struct gm_analysis *analysis = model->tables->analysis;
    if (!analysis)
        return false;
    struct events *events = gm_allocate(1, sizeof(*events));
    struct gm_stream *stream = gm_stream_open(analysis->trace);
    static const struct gm_scope_request everything;
    const struct gm_scope_request *scope = request && request->scope ? request->scope : &everything;
    struct gm_entry entry;
    /* Places that have not been met are added: the tables of a model are its cache. */
    events->builder = (struct gm_builder){.model = (struct gm_model *)(uintptr_t)model,
                                          .analysis = analysis,
                                          .trace = analysis->trace,
                                          .libraries = gm_libraries_new(analysis->trace)};
    events->visit = visit;
    events->argument = argument;
    gm_replay_begin(&events->replay);
    gm_scope_begin(&events->scope, analysis->trace, scope);
    events->replay.checkpoint = analysis->trace->checkpoint;
    events->replay.ledger.observer =
        (struct gm_life_observer){life_begins, life_ends, life_goes_on, NULL, life_grows, events};
    if (request && request->moves) {
        events->replay.vmm.moved = life_moves;
        events->replay.vmm.moved_argument = events;
    }
    while (gm_stream_next(stream, &entry)) {
        gm_scope_note(&events->scope, &entry);
        gm_replay_apply(&events->replay, &entry);
        note_block(events, &entry);
        note_mark(events, &entry);
        gm_blocks_note(&events->blocks, &entry);
    }
    gm_replay_finish(&events->replay);
    gm_stream_close(stream);
    gm_blocks_free(&events->blocks);
    gm_replay_end(&events->replay);
    gm_scope_end(&events->scope);
    gm_map_free(&events->builder.by_key);
    gm_map_free(&events->block_lives);
    gm_map_free(&events->innermost);
    gm_map_free(&events->started);
    free(events->pushed);
    gm_libraries_free(events->builder.libraries);
    free(events);
    return true;
}

struct gm_scope_thread *gm_model_threads(const struct gm_model *model, size_t *count)
{
    const struct gm_analysis *analysis = model->tables->analysis;
    return analysis ? gm_scope_threads(analysis->trace, count) : NULL;
}
