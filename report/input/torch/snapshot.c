/* See snapshot.h. */
#include "input/torch/snapshot.h"
#include "base/memory.h"
#include "input/torch/stacks.h"
#include <stdio.h>
#include <stdlib.h>

#define DEVICES_MAX 127

struct reader {
    struct gm_torch_snapshot *snapshot;
    uint64_t
        entries_left;  /* each takes some bytes of the file, unless it is named again and again */
    size_t next_event; /* of the snapshot: those before belong to devices */
};

/* What became of a list or dict: its mark is one of these and a number. */
#define REDUCED_FRAME (UINT32_C(1) << 30)
#define REDUCED_STACK (UINT32_C(2) << 30)
#define REDUCED_EVENT (UINT32_C(3) << 30)
#define REDUCED_NUMBER (REDUCED_FRAME - 1)

static bool is_reduced(const struct gm_value *value, uint32_t what)
{
    return (gm_value_mark(value) & ~REDUCED_NUMBER) == what;
}

static uint32_t reduced_number(const struct gm_value *value)
{
    return gm_value_mark(value) & REDUCED_NUMBER;
}

/* False: the file names entries more often than it has bytes. */
static bool spend(struct reader *reader)
{
    if (reader->entries_left == 0)
        return false;
    reader->entries_left--;
    return true;
}

static struct gm_torch_device *snapshot_device(struct reader *reader, uint64_t number)
{
    struct gm_torch_snapshot *snapshot = reader->snapshot;
    int device = number <= DEVICES_MAX ? (int)number : -1;
    for (size_t i = 0; i < snapshot->device_count; i++)
        if (snapshot->devices[i].device == device)
            return &snapshot->devices[i];
    GM_RESERVE(snapshot->devices, snapshot->device_capacity, snapshot->device_count + 1);
    snapshot->devices[snapshot->device_count] = (struct gm_torch_device){.device = device};
    return &snapshot->devices[snapshot->device_count++];
}

/* Two numbers that name a pool, or none. */
static uint64_t snapshot_pool(const struct gm_value *value)
{
    const struct gm_items *items = gm_value_items(value);
    if (!items || items->count < 2)
        return 0;
    return gm_value_number(&items->values[0], 0) << 32 ^ gm_value_number(&items->values[1], 0);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

static uint32_t number_frame(struct gm_image *image, const struct gm_value *value)
{
    if (is_reduced(value, REDUCED_FRAME))
        return reduced_number(value);
    return value->type == GM_VALUE_DICT ? gm_torch_frame(image, value) : 0;
}

/* The node of a list of frames, innermost first. Lists are named again and again, and keep their node. */
static uint32_t number_stack(struct gm_image *image, const struct gm_value *value)
{
    struct gm_items *frames = gm_value_items(value);
    uint32_t node = 0;
    if (is_reduced(value, REDUCED_STACK))
        return reduced_number(value);
    if (!frames)
        return 0;
    uint32_t count = frames->count < GM_TORCH_DEPTH_MAX ? frames->count : GM_TORCH_DEPTH_MAX;
    for (uint32_t i = count; i > 0; i--)
        node = gm_image_node(image, node, number_frame(image, &frames->values[i - 1]));
    frames->mark = REDUCED_STACK | node;
    return node;
}

/* ---- segments -------------------------------------------------------------------------------- */

/* PyTorch 2.0 and before kept who used a block last in a list. */
static const struct gm_value *latest_use(const struct gm_value *block)
{
    const struct gm_items *history = gm_value_items(gm_value_get(block, "history"));
    return history && history->count ? &history->values[0] : NULL;
}

static void read_snapshot_block(struct gm_image *image, struct gm_torch_device *device,
                                const struct gm_torch_segment *segment,
                                const struct gm_value *value, uint64_t *address)
{
    struct gm_text state = gm_value_text(gm_value_get(value, "state"));
    const struct gm_value *use = latest_use(value);
    const struct gm_value *frames = gm_value_get(value, "frames");
    uint64_t size = gm_value_number(gm_value_get(value, "size"), 0);
    struct gm_torch_block block = {
        .address = gm_value_number(gm_value_get(value, "address"), *address),
        .size = size,
        .requested = gm_value_number(gm_value_get(value, "requested_size"),
                                     gm_value_number(gm_value_get(use, "real_size"), size)),
        .stream = segment->stream,
        .pool = segment->pool,
        .stack = number_stack(image, frames ? frames : gm_value_get(use, "frames")),
        .allocated = gm_text_is(state, "active_allocated"),
    };
    *address = block.address + size;
    if (size == 0 || !(block.allocated || gm_text_is(state, "active_pending_free") ||
                       gm_text_is(state, "active_awaiting_free")))
        return;
    GM_APPEND(device->blocks, device->block_capacity, device->block_count, block);
}

static void read_segment(struct reader *reader, const struct gm_value *value, bool is_host)
{
    uint64_t ordinal = gm_value_number(gm_value_get(value, "device"), 0);
    if (!is_host && ordinal > DEVICES_MAX) {
        reader->snapshot->not_understood++;
        return;
    }
    struct gm_torch_device *device = snapshot_device(reader, is_host ? UINT64_MAX : ordinal);
    struct gm_torch_segment segment = {
        .address = gm_value_number(gm_value_get(value, "address"), 0),
        .size = gm_value_number(gm_value_get(value, "total_size"), 0),
        .stream = gm_value_number(gm_value_get(value, "stream"), 0),
        .pool = snapshot_pool(gm_value_get(value, "segment_pool_id")),
        .stack = number_stack(&reader->snapshot->image, gm_value_get(value, "frames")),
        .small = gm_text_is(gm_value_text(gm_value_get(value, "segment_type")), "small"),
        .expandable = gm_value_number(gm_value_get(value, "is_expandable"), 0) == 1,
    };
    if (segment.size == 0)
        return;
    GM_APPEND(device->segments, device->segment_capacity, device->segment_count, segment);
    const struct gm_items *blocks = gm_value_items(gm_value_get(value, "blocks"));
    uint64_t address = segment.address;
    for (uint32_t i = 0; blocks && i < blocks->count && spend(reader); i++)
        read_snapshot_block(&reader->snapshot->image, device, &segment, &blocks->values[i],
                            &address);
}

static void read_segments(struct reader *reader, const struct gm_items *segments, bool is_host)
{
    for (uint32_t i = 0; segments && i < segments->count && spend(reader); i++)
        if (segments->values[i].type == GM_VALUE_DICT)
            read_segment(reader, &segments->values[i], is_host);
        else
            reader->snapshot->not_understood++;
}

/* ---- history --------------------------------------------------------------------------------- */

static unsigned action_of(struct gm_text text)
{
    static const char *const names[] = {
        [GM_TORCH_ALLOC] = "alloc",
        [GM_TORCH_FREE_REQUESTED] = "free_requested",
        [GM_TORCH_FREE_COMPLETED] = "free_completed",
        [GM_TORCH_SEGMENT_ALLOC] = "segment_alloc",
        [GM_TORCH_SEGMENT_FREE] = "segment_free",
        [GM_TORCH_SEGMENT_MAP] = "segment_map",
        [GM_TORCH_SEGMENT_UNMAP] = "segment_unmap",
        [GM_TORCH_OOM] = "oom",
    };
    for (unsigned i = 1; i < sizeof(names) / sizeof(names[0]); i++)
        if (gm_text_is(text, names[i]))
            return i;
    return GM_TORCH_OTHER;
}

static struct gm_torch_event read_event(struct gm_image *image, const struct gm_value *value)
{
    uint64_t time_us = gm_value_number(gm_value_get(value, "time_us"), 0);
    struct gm_torch_event event = {
        .address = gm_value_number(gm_value_get(value, "addr"), 0),
        .size = gm_value_number(gm_value_get(value, "size"), 0),
        .stream = gm_value_number(gm_value_get(value, "stream"), 0),
        .pool = snapshot_pool(gm_value_get(value, "pool_id")),
        .time_ns = time_us < INT64_MAX / 1000 ? time_us * 1000 : 0,
        .stack = number_stack(image, gm_value_get(value, "frames")),
        .metadata = gm_torch_metadata(image, gm_value_text(gm_value_get(value, "user_metadata"))),
        .action = (uint8_t)action_of(gm_value_text(gm_value_get(value, "action"))),
        .synthetic = gm_text_is(gm_value_text(gm_value_get(value, "internal_metadata")),
                                "mallocWithAddress"),
        .has_pool = gm_value_get(value, "pool_id") != NULL,
    };
    if (event.action == GM_TORCH_OOM)
        event.device_free = gm_value_number(gm_value_get(value, "device_free"), 0);
    return event;
}

/* Frames, stacks and events are most of a snapshot: of these only what they say is kept, while it is read. */
static uint32_t reduce(void *context, const struct gm_value *container)
{
    struct gm_torch_snapshot *snapshot = context;
    struct gm_image *image = &snapshot->image;
    const struct gm_items *items = container->items;
    if (container->type == GM_VALUE_LIST)
        return items->count && is_reduced(&items->values[0], REDUCED_FRAME)
                   ? REDUCED_STACK | number_stack(image, container)
                   : 0;
    if (gm_value_get(container, "filename") && gm_value_get(container, "name"))
        return REDUCED_FRAME | gm_torch_frame(image, container);
    if (!gm_value_get(container, "action") || !gm_value_get(container, "addr") ||
        snapshot->event_count == REDUCED_NUMBER)
        return 0;
    struct gm_torch_event event = read_event(image, container);
    GM_APPEND(snapshot->events, snapshot->event_capacity, snapshot->event_count, event);
    return REDUCED_EVENT | (uint32_t)(snapshot->event_count - 1);
}

/* Whether a list is of events that follow one another in the snapshot, and are no other device's. */
static bool is_own_part(const struct reader *reader, const struct gm_items *events)
{
    uint32_t first = reduced_number(&events->values[0]);
    for (uint32_t i = 0; i < events->count; i++)
        if (!is_reduced(&events->values[i], REDUCED_EVENT) ||
            reduced_number(&events->values[i]) != first + i)
            return false;
    return first >= reader->next_event && events->count <= reader->entries_left;
}

static void add_history_event(struct reader *reader, struct gm_torch_device *device,
                              const struct gm_value *value)
{
    struct gm_torch_snapshot *snapshot = reader->snapshot;
    bool is_event = is_reduced(value, REDUCED_EVENT);
    if (!is_event && value->type != GM_VALUE_DICT) {
        snapshot->not_understood++;
        return;
    }
    struct gm_torch_event event =
        is_event ? snapshot->events[reduced_number(value)] : read_event(&snapshot->image, value);
    GM_APPEND(device->events, device->event_capacity, device->event_count, event);
}

static void read_history(struct reader *reader, struct gm_torch_device *device,
                         const struct gm_items *events)
{
    uint64_t latest = 0;
    if (!events || !events->count)
        return;
    if (!device->event_count && is_own_part(reader, events)) {
        size_t first = reduced_number(&events->values[0]);
        device->events = reader->snapshot->events + first;
        device->event_count = events->count;
        reader->next_event = first + events->count;
        reader->entries_left -= events->count;
    } else {
        for (uint32_t i = 0; i < events->count && spend(reader); i++)
            add_history_event(reader, device, &events->values[i]);
    }
    for (size_t i = 0; i < device->event_count; i++) {
        struct gm_torch_event *event = &device->events[i];
        latest = event->time_ns > latest ? event->time_ns : latest;
        event->time_ns = latest;
        device->has_pools |= event->has_pool;
    }
}

static void read_histories(struct reader *reader, const struct gm_items *traces)
{
    for (uint32_t i = 0; traces && i < traces->count && spend(reader); i++) {
        const struct gm_items *events = gm_value_items(&traces->values[i]);
        if (!events || i > DEVICES_MAX)
            reader->snapshot->not_understood++;
        else if (events->count)
            read_history(reader, snapshot_device(reader, i), events);
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

static int by_ordinal(const void *left, const void *right)
{
    unsigned a = (unsigned)((const struct gm_torch_device *)left)->device;
    unsigned b = (unsigned)((const struct gm_torch_device *)right)->device;
    return a < b ? -1 : a > b;
}

struct gm_torch_snapshot *gm_torch_snapshot_read(const struct gm_pickle_source *source, char *error,
                                                 size_t error_size)
{
    struct gm_torch_snapshot *snapshot = gm_allocate(1, sizeof(*snapshot));
    gm_image_begin(&snapshot->image);
    struct gm_pickle *pickle = gm_pickle_read(source, reduce, snapshot, error, error_size);
    snapshot->pickle = pickle;
    if (!pickle) {
        gm_torch_snapshot_free(snapshot);
        return NULL;
    }
    const struct gm_value *root = gm_pickle_root(pickle);
    const struct gm_items *list = gm_value_items(root); /* what memory_snapshot() gives */
    if (list && !(list->count && gm_value_get(&list->values[0], "total_size")))
        list = NULL;
    const struct gm_items *segments = list ? list : gm_value_items(gm_value_get(root, "segments"));
    const struct gm_items *traces = gm_value_items(gm_value_get(root, "device_traces"));
    if (!segments && !traces) {
        snprintf(error, error_size, "this pickle is no memory snapshot of PyTorch");
        gm_torch_snapshot_free(snapshot);
        return NULL;
    }
    struct reader reader = {.snapshot = snapshot, .entries_left = source->size};
    snapshot->settings = gm_value_get(root, "allocator_settings");
    snapshot->annotations = gm_value_items(gm_value_get(root, "external_annotations"));
    read_segments(&reader, segments, false);
    read_histories(&reader, traces);
    const struct gm_items *host = gm_value_items(gm_value_get(root, "host_segments"));
    const struct gm_items *host_events = gm_value_items(gm_value_get(root, "host_traces"));
    if ((host && host->count) || (host_events && host_events->count)) {
        read_segments(&reader, host, true);
        read_history(&reader, snapshot_device(&reader, UINT64_MAX), host_events);
    }
    if (reader.entries_left == 0)
        snapshot->not_understood++;
    if (snapshot->device_count)
        qsort(snapshot->devices, snapshot->device_count, sizeof(*snapshot->devices), by_ordinal);
    for (size_t i = 0; i < snapshot->device_count; i++)
        gm_torch_rewind(&snapshot->devices[i]);
    return snapshot;
}

void gm_torch_forget_pickle(struct gm_torch_snapshot *snapshot)
{
    gm_pickle_free(snapshot->pickle);
    snapshot->pickle = NULL;
    snapshot->settings = NULL;
    snapshot->annotations = NULL;
}

void gm_torch_snapshot_free(struct gm_torch_snapshot *snapshot)
{
    if (!snapshot)
        return;
    for (size_t i = 0; i < snapshot->device_count; i++) {
        free(snapshot->devices[i].segments);
        free(snapshot->devices[i].first_segments);
        free(snapshot->devices[i].blocks);
        free(snapshot->devices[i].first_blocks);
        if (snapshot->devices[i].event_capacity)
            free(snapshot->devices[i].events);
    }
    free(snapshot->devices);
    free(snapshot->events);
    gm_image_free(&snapshot->image);
    gm_pickle_free(snapshot->pickle);
    free(snapshot);
}
