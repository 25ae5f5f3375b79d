/* The history of a memory snapshot. See history.h.
 *
 * Blocks are followed as memory here: one that was given back stays until no stream uses it.
 */
#include "base/each.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/size.h"
#include "replay/replica/allocator.h"
#include "replay/replica/history.h"
#include <stdio.h>
#include <stdlib.h>

/* What is behind a block without being given to another is a part of it up to this, in the large pool. */
#define SLACK_MAX GM_MIB

/* ---- settings -------------------------------------------------------------------------------- */

static void read_divisions(struct gm_allocator_settings *settings, const struct gm_value *dict)
{
    char key[16];
    for (unsigned i = 0; i < GM_DIVISIONS; i++) {
        snprintf(key, sizeof(key), "%u", 1u << i);
        uint64_t value = gm_value_number(gm_value_get(dict, key), 0);
        settings->divisions[i] =
            value <= 1 << 20 && (value & (value - 1)) == 0 ? (unsigned)value : 0;
    }
}

static void read_snapshot_settings(struct gm_history *history, const struct gm_value *settings)
{
    struct gm_allocator_settings *own = &history->settings;
    char error[128];
    gm_allocator_settings_default(own);
    /* The text has what the rest lacks; what the program set later stands in the rest. */
    gm_allocator_settings_apply(own,
                                gm_value_text(gm_value_get(settings, "PYTORCH_CUDA_ALLOC_CONF")),
                                error, sizeof(error));
    uint64_t split = gm_value_number(gm_value_get(settings, "max_split_size"), UINT64_MAX);
    own->max_split_size = split > 0 && split <= INT64_MAX ? split : own->max_split_size;
    const struct gm_value *threshold = gm_value_get(settings, "garbage_collection_threshold");
    if (threshold && threshold->type == GM_VALUE_REAL && threshold->real > 0 && threshold->real < 1)
        own->gc_threshold = threshold->real;
    const struct gm_value *expandable = gm_value_get(settings, "expandable_segments");
    if (expandable)
        own->expandable = gm_value_number(expandable, 0) == 1;
    const struct gm_value *divisions = gm_value_get(settings, "roundup_power2_divisions");
    if (divisions && divisions->type == GM_VALUE_DICT)
        read_divisions(own, divisions);
}

/* ---- steps ----------------------------------------------------------------------------------- */

struct builder {
    struct gm_history *history;
    const struct gm_torch_device *device;
    struct gm_map numbers; /* address -> number of the block there */
    bool has_requests, has_completions;
};

static struct gm_step *add_snapshot_step(struct gm_history *history, unsigned kind,
                                         const struct gm_torch_event *event)
{
    GM_RESERVE(history->steps, history->step_capacity, history->step_count + 1);
    struct gm_step *step = &history->steps[history->step_count++];
    *step = (struct gm_step){.kind = (uint8_t)kind,
                             .address = event->address,
                             .size = event->size,
                             .asked = event->size,
                             GM_SAME(event, stream, pool, time_ns),
                             .block = GM_NONE,
                             .entries = 1};
    return step;
}

static void add_alloc(struct builder *builder, const struct gm_torch_event *event)
{
    struct gm_history *history = builder->history;
    struct gm_step *step = add_snapshot_step(history, GM_STEP_ALLOC, event);
    step->block = history->numbers++;
    gm_map_set(&builder->numbers, event->address, step->block);
}

/* Whether the request at `at` is completed by the very next event. */
static bool is_completed_next(const struct builder *builder, size_t at)
{
    const struct gm_torch_device *device = builder->device;
    if (!builder->has_completions)
        return true;
    return at + 1 < device->event_count &&
           device->events[at + 1].action == GM_TORCH_FREE_COMPLETED &&
           device->events[at + 1].address == device->events[at].address;
}

static void add_free(struct builder *builder, const struct gm_torch_event *event, size_t at)
{
    bool is_request = event->action == GM_TORCH_FREE_REQUESTED;
    uint32_t number = gm_map_get(&builder->numbers, event->address);
    struct gm_step *last = builder->history->step_count
                               ? &builder->history->steps[builder->history->step_count - 1]
                               : NULL;
    if (!is_request && number == GM_NONE && last && last->kind == GM_STEP_FREE &&
        last->address == event->address) {
        last->entries++; /* told with its request */
        return;
    }
    bool waits = is_request && !is_completed_next(builder, at);
    struct gm_step *step =
        add_snapshot_step(builder->history, waits ? GM_STEP_WAIT : GM_STEP_FREE, event);
    step->block = number;
    if (!waits)
        gm_map_remove(&builder->numbers, event->address);
}

static bool is_arrival(const struct gm_torch_event *event)
{
    return event->action == GM_TORCH_SEGMENT_ALLOC || event->action == GM_TORCH_SEGMENT_MAP;
}

static bool is_departure(const struct gm_torch_event *event)
{
    return event->action == GM_TORCH_SEGMENT_FREE || event->action == GM_TORCH_SEGMENT_UNMAP;
}

/* A request that frees segments for its own new one has one stack for all; empty_cache() has its own. */
static bool is_by_request(const struct gm_torch_device *device, size_t at)
{
    const struct gm_torch_event *event = &device->events[at];
    size_t next = at;
    while (next < device->event_count && is_departure(&device->events[next]))
        next++;
    if (next == device->event_count)
        return false;
    const struct gm_torch_event *request = &device->events[next];
    if (!is_arrival(request) && request->action != GM_TORCH_OOM)
        return false;
    return event->stack && event->stack == request->stack;
}

static void add_segment_step(struct builder *builder, const struct gm_torch_event *event, size_t at)
{
    bool arrives = is_arrival(event);
    if (!event->size) /* of a damaged snapshot: nothing came or went */
        return;
    struct gm_step *step =
        add_snapshot_step(builder->history, arrives ? GM_STEP_ARRIVE : GM_STEP_DEPART, event);
    step->expandable =
        event->action == GM_TORCH_SEGMENT_MAP || event->action == GM_TORCH_SEGMENT_UNMAP;
    step->by_request = !arrives && is_by_request(builder->device, at);
}

static void add_event(struct builder *builder, size_t at)
{
    const struct gm_torch_event *event = &builder->device->events[at];
    size_t before = builder->history->step_count;
    switch (event->action) {
    case GM_TORCH_ALLOC:
        add_alloc(builder, event);
        break;
    case GM_TORCH_FREE_REQUESTED:
    case GM_TORCH_FREE_COMPLETED:
        add_free(builder, event, at);
        break;
    case GM_TORCH_OOM:
        add_snapshot_step(builder->history, GM_STEP_FAIL, event)->is_untold =
            !builder->device->has_pools;
        break;
    case GM_TORCH_OTHER:
        break;
    default:
        add_segment_step(builder, event, at);
    }
    if (builder->history->step_count > before)
        builder->history->steps[before].stack = (uint32_t)at;
}

/* ---- the beginning --------------------------------------------------------------------------- */

static void add_there(struct gm_history *history, const struct gm_there *block)
{
    GM_APPEND(history->blocks, history->block_capacity, history->block_count, *block);
}

GM_ORDER(by_snapshot_address, struct gm_there, GM_UP(address))

/* Goes backward from the blocks in use at the end. Of equal addresses the later one stands for the memory. */
static void find_blocks(struct builder *builder)
{
    const struct gm_torch_device *device = builder->device;
    struct gm_map there = {0}; /* address -> place in `blocks`, of those in use */
    struct gm_history *history = builder->history;
    for (size_t i = 0; i < device->block_count; i++) {
        const struct gm_torch_block *block = &device->blocks[i];
        gm_map_set(&there, block->address, (uint32_t)history->block_count);
        add_there(history,
                  &(struct gm_there){GM_SAME(block, address, size, requested, stream, pool),
                                     .waiting = !block->allocated});
    }
    unsigned ends = builder->has_completions ? GM_TORCH_FREE_COMPLETED : GM_TORCH_FREE_REQUESTED;
    for (size_t i = device->event_count; i > 0; i--) {
        const struct gm_torch_event *event = &device->events[i - 1];
        uint32_t known = gm_map_get(&there, event->address);
        if (event->action == ends) {
            gm_map_set(&there, event->address, (uint32_t)history->block_count);
            add_there(history, &(struct gm_there){.address = event->address,
                                                  .requested = event->size,
                                                  .stream = event->stream,
                                                  .pool = event->pool,
                                                  .waiting = builder->has_completions &&
                                                             builder->has_requests});
        } else if (event->action == GM_TORCH_FREE_REQUESTED && known != GM_NONE) {
            history->blocks[known].waiting = false;
        } else if (event->action == GM_TORCH_ALLOC && known != GM_NONE) {
            history->blocks[known].requested = UINT64_MAX; /* it came later */
            gm_map_remove(&there, event->address);
        }
    }
    size_t kept = 0;
    for (size_t i = 0; i < history->block_count; i++)
        if (history->blocks[i].requested != UINT64_MAX)
            history->blocks[kept++] = history->blocks[i];
    history->block_count = kept;
    gm_map_free(&there);
    if (kept)
        qsort(history->blocks, kept, sizeof(*history->blocks), by_snapshot_address);
    for (size_t i = 0; i < kept; i++) {
        history->blocks[i].block = history->numbers++;
        gm_map_set(&builder->numbers, history->blocks[i].address, history->blocks[i].block);
    }
}

static void find_segments(struct builder *builder)
{
    const struct gm_torch_device *device = builder->device;
    struct gm_history *history = builder->history;
    for (size_t i = 0; i < device->first_segment_count; i++) {
        const struct gm_torch_segment *segment = &device->first_segments[i];
        GM_APPEND(
            history->segments, history->segment_capacity, history->segment_count,
            (struct gm_there){GM_SAME(segment, address, size, stream, pool, small, expandable)});
    }
}

/* Whether a block can be larger than its size rounded up. */
static bool may_have_slack(const struct gm_history *history, const struct gm_there *segment)
{
    return !segment->small && !segment->expandable && !history->settings.expandable;
}

/* The size of a block that is not told, if what lies behind it tells. False: it can be larger still. */
static bool find_size(const struct gm_history *history, struct gm_there *block,
                      const struct gm_there *segment, uint64_t next)
{
    uint64_t end = segment->address + segment->size;
    block->size = gm_allocator_round(&history->settings, block->requested);
    uint64_t gap = next - block->address > block->size ? next - block->address - block->size : 0;
    if (!may_have_slack(history, segment))
        return true;
    bool oversize = block->size >= history->settings.max_split_size && next == end;
    if (gap <= SLACK_MAX || oversize)
        block->size += gap;
    return gap <= SLACK_MAX || oversize;
}

/* The last block that begins at an address or before it; the number of blocks if there is none. */
static size_t block_before(const struct gm_history *history, uint64_t address)
{
    size_t behind;
    GM_BISECT(behind, history->block_count, history->blocks[behind].address <= address);
    return behind ? behind - 1 : history->block_count;
}

/* A block that is placed behind one of unknown size, while that is in use, begins where that ends. */
static void look_at_places(struct gm_history *history, bool *open)
{
    for (size_t i = 0; i < history->step_count; i++) {
        const struct gm_step *step = &history->steps[i];
        if (step->kind == GM_STEP_FREE && step->block < history->block_count)
            open[step->block] = false; /* blocks at the beginning have their places as numbers */
        size_t place = step->kind == GM_STEP_ALLOC ? block_before(history, step->address)
                                                   : history->block_count;
        if (place == history->block_count || !open[place])
            continue;
        struct gm_there *block = &history->blocks[place];
        uint64_t behind = step->address - block->address;
        if (behind < block->size || behind - block->size > SLACK_MAX)
            continue;
        block->size = behind;
        open[place] = false;
    }
}

static void find_sizes(struct builder *builder)
{
    struct gm_history *history = builder->history;
    bool *open = gm_allocate(history->block_count + 1, sizeof(*open));
    size_t at = 0;
    for (size_t s = 0; s < history->segment_count; s++) {
        const struct gm_there *segment = &history->segments[s];
        uint64_t end = segment->address + segment->size;
        while (at < history->block_count && history->blocks[at].address < segment->address)
            at++;
        for (; at < history->block_count && history->blocks[at].address < end; at++) {
            struct gm_there *block = &history->blocks[at];
            bool is_last = at + 1 == history->block_count || block[1].address >= end;
            if (!block->size)
                open[at] = !find_size(history, block, segment, is_last ? end : block[1].address);
        }
    }
    look_at_places(history, open);
    free(open);
}

/* ---- a device -------------------------------------------------------------------------------- */

static uint64_t reserved_peak_of(const struct gm_torch_device *device)
{
    uint64_t reserved = 0, peak = 0;
    for (size_t i = 0; i < device->first_segment_count; i++)
        reserved += device->first_segments[i].size;
    peak = reserved;
    for (size_t i = 0; i < device->event_count; i++) {
        const struct gm_torch_event *event = &device->events[i];
        reserved += is_arrival(event) ? event->size : 0;
        reserved -= is_departure(event) ? event->size : 0;
        peak = reserved > peak && reserved <= INT64_MAX ? reserved : peak;
    }
    return peak;
}

const struct gm_torch_device *gm_history_device(const struct gm_torch_snapshot *snapshot,
                                                int device)
{
    const struct gm_torch_device *found = NULL;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        const struct gm_torch_device *one = &snapshot->devices[i];
        if (one->device < 0 || (device != GM_ANY_DEVICE && one->device != device))
            continue;
        if (!found || reserved_peak_of(one) > reserved_peak_of(found))
            found = one;
    }
    return found;
}

/* At a refusal the allocator had what it had reserved, and the device what it had left. */
static void find_capacity(struct gm_history *history, const struct gm_torch_device *device)
{
    uint64_t reserved = 0;
    for (size_t i = 0; i < device->first_segment_count; i++)
        reserved += device->first_segments[i].size;
    for (size_t i = 0; i < device->event_count; i++) {
        const struct gm_torch_event *event = &device->events[i];
        reserved += is_arrival(event) ? event->size : 0;
        reserved -= is_departure(event) ? event->size : 0;
        if (event->action == GM_TORCH_OOM && event->device_free &&
            event->device_free <= INT64_MAX && reserved + event->device_free > history->capacity &&
            event->size > event->device_free)
            history->capacity = reserved + event->device_free;
    }
}

bool gm_history_of_snapshot(struct gm_history *history, const struct gm_torch_snapshot *snapshot,
                            int device, char *error, size_t error_size)
{
    const struct gm_torch_device *own = gm_history_device(snapshot, device);
    struct builder builder = {.history = history, .device = own};
    *history = (struct gm_history){.has_sizes_asked = true, .has_streams = true};
    if (!own) {
        snprintf(error, error_size,
                 device == GM_ANY_DEVICE ? "the snapshot tells of no device"
                                         : "the snapshot does not tell of that device");
        return false;
    }
    history->device = own->device;
    history->contradictions = own->contradictions;
    read_snapshot_settings(history, snapshot->settings);
    for (size_t i = 0; i < own->event_count; i++) {
        builder.has_requests |= own->events[i].action == GM_TORCH_FREE_REQUESTED;
        builder.has_completions |= own->events[i].action == GM_TORCH_FREE_COMPLETED;
    }
    find_segments(&builder);
    find_blocks(&builder);
    for (size_t i = 0; i < own->event_count; i++)
        add_event(&builder, i);
    find_sizes(&builder);
    gm_history_tell_pools(history, own);
    find_capacity(history, own);
    if (!history->capacity)
        history->capacity = gm_history_limit(history);
    gm_map_free(&builder.numbers);
    return true;
}

void gm_history_free(struct gm_history *history)
{
    free(history->steps);
    free(history->segments);
    free(history->blocks);
    *history = (struct gm_history){0};
}
