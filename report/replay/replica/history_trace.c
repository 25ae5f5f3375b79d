/* The history of a trace. See history.h.
 *
 * Where the recorder could read PyTorch's structures (preload/sources/torch_block.c), a trace tells the sizes asked
 * for, streams and pools. Else it has the sizes of blocks alone: these ask for the same places, as long as the
 * settings are those of the recording. Which memory is the allocator's is seen by the blocks in it.
 */
#include "base/map.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/ranges.h"
#include "input/trace/environment.h"
#include "input/trace/stream.h"
#include "replay/replica/history.h"
#include <stdio.h>
#include <stdlib.h>

/* A range of device memory, from when it is allocated or mapped until it is not. */
struct range_life {
    uint64_t address, size;
    size_t arrival, departure; /* steps; SIZE_MAX: none */
    bool has_blocks;
    bool is_carried; /* it was there before the history */
    bool is_mapping;
};

struct scan {
    struct gm_trace *trace;
    struct gm_history *history;
    int device;
    struct gm_ranges there;
    struct range_life *lives;
    size_t life_count, life_capacity;
    struct gm_map numbers;   /* address -> number of the block there */
    struct gm_map creations; /* handle -> ns that its creation took */
    uint64_t told;           /* bytes that the allocator could have, by a refusal; 0: not told */
    struct gm_map streams;   /* lane -> place in `last_streams` */
    uint64_t *last_streams;  /* of the latest block of each lane */
    size_t stream_count, stream_capacity;
    size_t requests, untold; /* blocks; those without stream and pool */
    uint64_t common;         /* the recorder's number of a common pool; 0: not told */
    bool is_refused;         /* the device had no memory; since then no block came or went */
};

/* ---- steps ----------------------------------------------------------------------------------- */

static struct gm_step *add_traced_step(struct scan *scan, unsigned kind,
                                       const struct gm_record *record)
{
    struct gm_history *history = scan->history;
    GM_RESERVE(history->steps, history->step_capacity, history->step_count + 1);
    struct gm_step *step = &history->steps[history->step_count++];
    *step = (struct gm_step){.kind = (uint8_t)kind,
                             .address = record->address,
                             .size = record->size,
                             .asked = record->size,
                             .stack = record->stack,
                             .time_ns = gm_clock_elapsed(&scan->trace->clock, record->time),
                             .block = GM_NONE,
                             .entries = 1};
    return step;
}

/* What a slow call took; below is something else, or nothing. */
static uint32_t slow_ns(const struct gm_record *record)
{
    return record->extra >= GM_SLOW_CALL_NS && record->extra != GM_NONE ? record->extra : 0;
}

static void add_range(struct scan *scan, const struct gm_record *record, bool is_mapping,
                      bool is_carried)
{
    uint64_t end = gm_range_end(record->address, record->size);
    struct gm_range found;
    if (record->size == 0 || record->size > INT64_MAX ||
        gm_ranges_find(&scan->there, record->address, end, &found))
        return;
    gm_ranges_add(&scan->there,
                  (struct gm_range){record->address, end, (uint32_t)scan->life_count});
    GM_APPEND(scan->lives, scan->life_capacity, scan->life_count,
              (struct range_life){.address = record->address,
                                  .size = record->size,
                                  .arrival = scan->history->step_count,
                                  .departure = SIZE_MAX,
                                  .is_carried = is_carried,
                                  .is_mapping = is_mapping});
    if (is_carried)
        return;
    struct gm_step *step = add_traced_step(scan, GM_STEP_ARRIVE, record);
    step->expandable = is_mapping;
    step->took_ns = slow_ns(record);
    uint32_t created = is_mapping ? gm_map_get(&scan->creations, record->aux) : GM_NONE;
    if (created == GM_NONE)
        return;
    step->took_ns += created;
    gm_map_remove(&scan->creations, record->aux); /* what is mapped again was created once */
}

static void note_creation(struct scan *scan, const struct gm_entry *entry)
{
    uint32_t took = slow_ns(entry->record);
    if (took && !entry->carried)
        gm_map_set(&scan->creations, entry->record->address, took);
}

/* Ranges that begin in [address, address + size) go; of a free the one there. */
static void remove_ranges(struct scan *scan, const struct gm_record *record, bool is_mapping)
{
    uint64_t end = is_mapping ? gm_range_end(record->address, record->size) : record->address + 1;
    struct gm_range found;
    while (gm_ranges_find(&scan->there, record->address, end, &found)) {
        struct range_life *life = &scan->lives[found.value];
        if (found.start < record->address || life->is_mapping != is_mapping)
            return;
        gm_ranges_remove(&scan->there, found.start);
        life->departure = scan->history->step_count;
        struct gm_step *step = add_traced_step(scan, GM_STEP_DEPART, record);
        step->address = life->address;
        step->size = life->size;
        step->expandable = is_mapping;
        step->by_request = scan->is_refused;
    }
}

/* What a record tells of a block beyond its size. */
struct told {
    uint64_t asked;
    uint64_t stream, pool;
};

static struct told told_of(struct scan *scan, const struct gm_entry *entry)
{
    const struct gm_record *detail = entry->detail;
    uint64_t size = entry->record->size, asked = detail ? detail->size : 0;
    uint32_t place = gm_map_get(&scan->streams, entry->lane);
    scan->history->has_sizes_asked |= asked != 0;
    scan->requests++;
    asked = asked && asked < size ? asked : size;
    if (!detail || !detail->extra) {
        scan->untold++;
        return (struct told){.asked = asked};
    }
    if (place == GM_NONE) {
        place = (uint32_t)scan->stream_count++;
        gm_map_set(&scan->streams, entry->lane, place);
        GM_RESERVE(scan->last_streams, scan->stream_capacity, scan->stream_count);
    }
    scan->last_streams[place] = detail->aux;
    scan->common = detail->kind == GM_BLOCK_POOL_COMMON ? detail->extra : scan->common;
    return (struct told){.asked = asked, .stream = detail->aux, .pool = detail->extra};
}

static void add_traced_block(struct scan *scan, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    struct gm_history *history = scan->history;
    struct gm_range found;
    bool is_inside = gm_ranges_find(&scan->there, record->address, record->address + 1, &found);
    if (record->size > INT64_MAX || !is_inside) {
        history->contradictions++;
        return;
    }
    scan->lives[found.value].has_blocks = true;
    uint32_t number = history->numbers++;
    gm_map_set(&scan->numbers, record->address, number);
    struct told told = told_of(scan, entry);
    if (!entry->carried) {
        struct gm_step *step = add_traced_step(scan, GM_STEP_ALLOC, record);
        step->block = number;
        step->asked = step->size = told.asked;
        step->stream = told.stream;
        step->pool = told.pool;
        return;
    }
    GM_APPEND(history->blocks, history->block_capacity, history->block_count,
              (struct gm_there){.address = record->address,
                                .size = record->size,
                                .requested = told.asked,
                                .stream = told.stream,
                                .pool = told.pool,
                                .block = number});
}

/* What the device had left then, and what the allocator had, is what it could have. */
static void note_traced_refusal(struct scan *scan, const struct gm_entry *entry)
{
    uint64_t left = entry->detail ? entry->detail->aux : 0;
    uint64_t all = left ? gm_range_end(entry->detail->address, left) : 0;
    if (left < entry->record->size && all > scan->told && all <= INT64_MAX)
        scan->told = all;
    uint32_t place = gm_map_get(&scan->streams, entry->lane);
    struct gm_step *step = add_traced_step(scan, GM_STEP_FAIL, entry->record);
    step->stream = place == GM_NONE ? 0 : scan->last_streams[place]; /* as the thread's last one */
    step->is_untold = true;
}

static void end_traced_block(struct scan *scan, const struct gm_entry *entry)
{
    uint32_t number = gm_map_get(&scan->numbers, entry->record->address);
    if (number == GM_NONE)
        return;
    bool waits = entry->detail && entry->detail->extra == GM_BLOCK_END_WAITS;
    add_traced_step(scan, waits ? GM_STEP_WAIT : GM_STEP_FREE, entry->record)->block = number;
    gm_map_remove(&scan->numbers, entry->record->address);
}

static void note_traced_entry(struct scan *scan, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    bool is_here = record->device == scan->device;
    switch (record->type) {
    case GM_EVENT_ALLOC:
        if (is_here && record->kind == GM_KIND_DEVICE)
            add_range(scan, record, false, entry->carried);
        return;
    case GM_EVENT_VMM_CREATE:
        note_creation(scan, entry);
        return;
    case GM_EVENT_VMM_MAP: /* of any device: its blocks tell */
        add_range(scan, record, true, entry->carried);
        return;
    case GM_EVENT_FREE:
    case GM_EVENT_VMM_UNMAP:
        remove_ranges(scan, record, record->type == GM_EVENT_VMM_UNMAP);
        return;
    case GM_EVENT_ALLOC_FAILED:
        scan->is_refused |= record->extra == 2;
        return;
    case GM_EVENT_DEVICE:
        if (is_here && record->size)
            scan->history->total = record->size;
        return;
    case GM_EVENT_BLOCK_ALLOC:
    case GM_EVENT_BLOCK_FREE:
    case GM_EVENT_BLOCK_OOM:
        break;
    default:
        return;
    }
    if (!is_here || record->kind != GM_BLOCK_OF_PYTORCH)
        return;
    scan->is_refused = false;
    if (record->type == GM_EVENT_BLOCK_ALLOC) {
        add_traced_block(scan, entry);
    } else if (record->type == GM_EVENT_BLOCK_OOM) {
        note_traced_refusal(scan, entry);
    } else {
        end_traced_block(scan, entry);
    }
}

/* ---- what is the allocator's ----------------------------------------------------------------- */

GM_ORDER(by_traced_address, struct gm_there, GM_UP(address))

/* The most that the process held on the device outside of the allocator, and so what was left for that. */
static void find_capacity(struct scan *scan, const bool *is_others)
{
    struct gm_history *history = scan->history;
    uint64_t held = 0, most = 0;
    for (size_t i = 0; i < scan->life_count; i++)
        if (!scan->lives[i].has_blocks && scan->lives[i].is_carried && !scan->lives[i].is_mapping)
            held = gm_range_end(held, scan->lives[i].size);
    for (size_t i = 0; i < history->step_count; i++) {
        const struct gm_step *step = &history->steps[i];
        if (is_others[i] && step->kind == GM_STEP_ARRIVE)
            held = gm_range_end(held, step->size);
        else if (is_others[i])
            held -= step->size < held ? step->size : held;
        most = held > most ? held : most;
    }
    history->capacity = scan->told ? scan->told : history->total > most ? history->total - most : 0;
}

/* Leaves out memory without a block, and joins mappings that came together. */
static void keep_own(struct scan *scan)
{
    struct gm_history *history = scan->history;
    bool *dropped = gm_allocate(history->step_count + 1, sizeof(*dropped));
    for (size_t i = 0; i < scan->life_count; i++) {
        const struct range_life *life = &scan->lives[i];
        if (life->has_blocks && life->is_carried)
            GM_APPEND(history->segments, history->segment_capacity, history->segment_count,
                      (struct gm_there){.address = life->address,
                                        .size = life->size,
                                        .small = life->size <= (uint64_t)2 << 20,
                                        .expandable = life->is_mapping});
        /* A mapping without a block can be the middle of a large one. */
        if (life->has_blocks || life->is_mapping)
            continue;
        if (!life->is_carried)
            dropped[life->arrival] = true;
        if (life->departure != SIZE_MAX)
            dropped[life->departure] = true;
    }
    find_capacity(scan, dropped);
    size_t kept = 0;
    for (size_t i = 0; i < history->step_count; i++) {
        struct gm_step *step = &history->steps[i], *last = kept ? &history->steps[kept - 1] : NULL;
        if (dropped[i])
            continue;
        bool joins = last && step->expandable && last->expandable && step->kind == last->kind &&
                     step->address == last->address + last->size;
        if (joins) {
            last->size += step->size;
            last->took_ns += step->took_ns;
            last->entries++;
        } else {
            history->steps[kept++] = *step;
        }
    }
    history->step_count = kept;
    if (history->segment_count)
        qsort(history->segments, history->segment_count, sizeof(*history->segments),
              by_traced_address);
    if (history->block_count)
        qsort(history->blocks, history->block_count, sizeof(*history->blocks), by_traced_address);
    free(dropped);
}

/* ---- all ------------------------------------------------------------------------------------- */

/* The device with most bytes in PyTorch's segments, as PyTorch said; GM_ANY_DEVICE: there is none. */
static int choose_device(struct gm_trace *trace)
{
    uint64_t most[128] = {0};
    struct gm_stream *stream = gm_stream_open(trace);
    struct gm_entry entry;
    int found = GM_ANY_DEVICE;
    while (gm_stream_next(stream, &entry)) {
        const struct gm_record *record = entry.record;
        int device = (int)record->device;
        if (record->type != GM_EVENT_BLOCK_ALLOC || record->kind != GM_BLOCK_OF_PYTORCH ||
            device < 0)
            continue;
        uint64_t reserved = entry.detail ? entry.detail->address : 0;
        reserved = reserved ? reserved : 1;
        if (reserved > most[device])
            most[device] = reserved;
        if (found == GM_ANY_DEVICE || most[device] > most[found])
            found = device;
    }
    gm_stream_close(stream);
    return found;
}

/* Blocks of which nothing is told are few, or all: the structures are found at once, or not. */
static void use_told(struct scan *scan)
{
    struct gm_history *history = scan->history;
    history->has_streams = history->has_pools = scan->untold <= scan->requests / 1000;
    if (!history->has_streams)
        for (size_t i = 0; i < history->step_count; i++)
            history->steps[i].stream = history->steps[i].pool = 0;
    for (size_t i = 0; !history->has_streams && i < history->block_count; i++)
        history->blocks[i].stream = history->blocks[i].pool = 0;
    gm_history_name_pools(history, scan->common);
    gm_history_tell_segments(history);
    gm_history_end_waits(history);
}

bool gm_history_of_trace(struct gm_history *history, struct gm_trace *trace, int device,
                         char *error, size_t error_size)
{
    struct scan scan = {.trace = trace, .history = history};
    struct gm_entry entry;
    const char *name;
    struct gm_text value;
    *history = (struct gm_history){0};
    GM_RESERVE(scan.lives, scan.life_capacity, 1);
    history->device = scan.device = device == GM_ANY_DEVICE ? choose_device(trace) : device;
    struct gm_stream *stream = gm_stream_open(trace);
    while (gm_stream_next(stream, &entry))
        note_traced_entry(&scan, &entry);
    gm_stream_close(stream);
    keep_own(&scan);
    use_told(&scan);
    gm_allocator_settings_default(&history->settings);
    if (gm_environment_allocator(trace, &name, &value))
        gm_allocator_settings_apply(&history->settings, value, error, error_size);
    free(scan.lives);
    free(scan.last_streams);
    gm_map_free(&scan.streams);
    gm_ranges_free(&scan.there);
    gm_map_free(&scan.numbers);
    gm_map_free(&scan.creations);
    if (history->numbers)
        return true;
    snprintf(error, error_size, "there are no blocks of PyTorch's allocator in it");
    gm_history_free(history);
    return false;
}
