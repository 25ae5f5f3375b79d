/* See import.h.
 *
 * What was reserved and allocated before the history is recorded as if it had been at its first moment. Memory that
 * a segment maps piece by piece is told in pieces of the size that PyTorch uses.
 */
#include "input/torch/import.h"
#include "base/memory.h"
#include "base/order.h"
#include "input/torch/image.h"
#include "input/torch/snapshot.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define SMALL_PIECE (2 * MIB) /* PyTorch's kSmallBuffer and kLargeBuffer */
#define LARGE_PIECE (20 * MIB)
#define PIECES_MAX 65536u /* of one segment: 1.25 TiB */
#define ROUNDING 512u     /* PyTorch's kMinBlockSize */
#define CUDA_OUT_OF_MEMORY 2u

struct import {
    struct gm_torch_snapshot *snapshot;
    struct gm_image image;
    uint16_t segment_alloc, segment_free, host_alloc, host_free, create, map, unmap, release;
    uint16_t device_library, host_library;
    uint64_t begin; /* time of the first event, ns */
    uint64_t latest;
};

/* The device that is told of, and what it amounts to so far. */
struct account {
    struct import *import;
    const struct gm_torch_device *device;
    uint32_t lane;
    uint64_t time;
    uint64_t allocated, reserved; /* bytes */
    bool is_told;                 /* the latest figure of `reserved` stands in a record */
    struct gm_map
        pieces; /* address of a piece that is mapped -> its size in units of SMALL_PIECE */
};

/* ---- stacks ---------------------------------------------------------------------------------- */

static bool ends_with(struct gm_text text, const char *end)
{
    size_t size = strlen(end);
    return text.size >= size && memcmp(text.bytes + text.size - size, end, size) == 0;
}

/* Snapshots do not say which of their frames are Python's. What is compiled has no file, one with an
 * ending, or a library; a program of Python may have no ending, as in bin/torchrun. */
static bool is_python(struct gm_text file, struct gm_text function)
{
    struct gm_text base = gm_base_name(file);
    if (ends_with(file, ".py") || (file.size && file.bytes[0] == '<'))
        return true;
    return file.size && file.bytes[0] == '/' && !memchr(base.bytes, '.', base.size) &&
           !gm_text_contains(function, "::") && !gm_text_contains(function, "(");
}

static uint32_t frame_of(struct gm_image *image, const struct gm_value *value)
{
    struct gm_text file = gm_value_text(gm_value_get(value, "filename"));
    struct gm_text function = gm_value_text(gm_value_get(value, "name"));
    struct gm_text node = gm_value_text(gm_value_get(value, "fx_node_name"));
    struct gm_text operation = gm_value_text(gm_value_get(value, "fx_node_op"));
    uint64_t line = gm_value_number(gm_value_get(value, "line"), 0);
    bool python = is_python(file, function);
    char text[512];
    if (node.size && node.size + operation.size + function.size < sizeof(text) - 8) {
        int size =
            snprintf(text, sizeof(text), "%.*s [%.*s %.*s]", (int)function.size, function.bytes,
                     (int)operation.size, operation.bytes, (int)node.size, node.bytes);
        function = (struct gm_text){text, (size_t)size};
    }
    bool has_line = python || !gm_text_contains(file, ".so"); /* else an offset into the library */
    if (!python && (gm_text_is(file, "??") || gm_text_contains(file, ".so")))
        file = (struct gm_text){"", 0};
    return gm_image_frame(image, file, function,
                          has_line && line <= UINT32_MAX ? (uint32_t)line : 0,
                          python ? GM_LANGUAGE_PYTHON : GM_LANGUAGE_NATIVE);
}

/* As deep as the recorder goes. */
#define DEPTH_MAX 512u

/* The node of a list of frames, innermost first. Lists are named again and again, and keep their node. */
static uint32_t imported_stack(struct gm_image *image, struct gm_items *frames,
                               struct gm_text metadata)
{
    uint32_t node = 0;
    if (metadata.size)
        node = gm_image_node(image, 0,
                             gm_image_frame(image, (struct gm_text){"<user_metadata>", 15},
                                            metadata, 0, GM_LANGUAGE_PYTHON));
    if (!frames)
        return node;
    if (frames->mark && !metadata.size)
        return frames->mark;
    uint32_t count = frames->count < DEPTH_MAX ? frames->count : DEPTH_MAX;
    for (uint32_t i = count; i > 0; i--)
        node = gm_image_node(image, node, frame_of(image, &frames->values[i - 1]));
    if (!metadata.size)
        frames->mark = node;
    return node;
}

/* ---- records --------------------------------------------------------------------------------- */

static void add_record(struct account *account, struct gm_record record)
{
    record.time = account->time;
    record.device = (int8_t)account->device->device;
    gm_image_add(&account->import->image, account->lane, &record);
}

/* A block comes, goes or is refused; `requested` bytes were asked for. */
static void add_import_block(struct account *account, unsigned type, uint64_t address,
                             uint64_t size, uint64_t requested, uint32_t stack)
{
    add_record(account, (struct gm_record){.type = (uint8_t)type,
                                           .address = address,
                                           .size = size,
                                           .aux = account->allocated,
                                           .stack = stack});
    add_record(account, (struct gm_record){.type = GM_EVENT_DETAIL,
                                           .address = account->reserved,
                                           .size = requested});
    account->is_told = true;
}

/* What is reserved between blocks is told by a free of nothing. */
static void tell_reserved(struct account *account)
{
    if (!account->is_told && account->device->device >= 0)
        add_import_block(account, GM_EVENT_BLOCK_FREE, 0, 0, 0, 0);
    account->is_told = true;
}

static uint64_t rounded(uint64_t requested)
{
    if (requested > UINT64_MAX - ROUNDING)
        return requested;
    return requested ? (requested + ROUNDING - 1) / ROUNDING * ROUNDING : ROUNDING;
}

static void begin_import_block(struct account *account, const struct gm_torch_block *block,
                               uint32_t stack)
{
    if (account->device->device < 0)
        return;
    uint64_t size = block->size ? block->size : rounded(block->requested);
    account->allocated += size;
    add_import_block(account, GM_EVENT_BLOCK_ALLOC, block->address, size, block->requested, stack);
}

static void end_import_block(struct account *account, const struct gm_torch_event *event,
                             uint32_t stack)
{
    if (account->device->device < 0)
        return;
    uint64_t size = rounded(event->size);
    account->allocated -= size < account->allocated ? size : account->allocated;
    add_import_block(account, GM_EVENT_BLOCK_FREE, event->address, size, event->size, stack);
}

/* ---- segments -------------------------------------------------------------------------------- */

static void begin_segment(struct account *account, uint64_t address, uint64_t size, uint32_t stack)
{
    struct import *import = account->import;
    bool host = account->device->device < 0;
    account->reserved += size;
    account->is_told = false;
    add_record(account, (struct gm_record){.type = GM_EVENT_ALLOC,
                                           .kind = host ? GM_KIND_PINNED : GM_KIND_DEVICE,
                                           .address = address,
                                           .size = size,
                                           .api = host ? import->host_alloc : import->segment_alloc,
                                           .stack = stack});
}

static void end_segment(struct account *account, uint64_t address, uint64_t size, uint32_t stack)
{
    struct import *import = account->import;
    bool host = account->device->device < 0;
    account->reserved -= size < account->reserved ? size : account->reserved;
    account->is_told = false;
    add_record(account, (struct gm_record){.type = GM_EVENT_FREE,
                                           .kind = host ? GM_KIND_PINNED : GM_KIND_DEVICE,
                                           .address = address,
                                           .api = host ? import->host_free : import->segment_free,
                                           .stack = stack});
}

static uint64_t piece_size(uint64_t size)
{
    return size && size % LARGE_PIECE == 0 ? LARGE_PIECE : SMALL_PIECE;
}

/* A piece has its own address for a handle. */
static void map_piece(struct account *account, uint64_t address, uint64_t size, uint32_t stack)
{
    const struct import *import = account->import;
    gm_map_set(&account->pieces, address, (uint32_t)(size / SMALL_PIECE));
    add_record(account, (struct gm_record){.type = GM_EVENT_VMM_CREATE,
                                           .kind = GM_KIND_VMM,
                                           .address = address,
                                           .size = size,
                                           .api = import->create,
                                           .stack = stack});
    add_record(account, (struct gm_record){.type = GM_EVENT_VMM_MAP,
                                           .address = address,
                                           .size = size,
                                           .aux = address,
                                           .api = import->map,
                                           .stack = stack});
    add_record(account, (struct gm_record){.type = GM_EVENT_DETAIL});
}

static void unmap_piece(struct account *account, uint64_t address, uint64_t size, uint32_t stack)
{
    const struct import *import = account->import;
    gm_map_remove(&account->pieces, address);
    add_record(account, (struct gm_record){.type = GM_EVENT_VMM_UNMAP,
                                           .address = address,
                                           .size = size,
                                           .api = import->unmap,
                                           .stack = stack});
    add_record(account, (struct gm_record){.type = GM_EVENT_VMM_RELEASE,
                                           .address = address,
                                           .api = import->release,
                                           .stack = stack});
}

static void map_range(struct account *account, uint64_t address, uint64_t size, uint32_t stack)
{
    uint64_t piece = piece_size(size);
    account->reserved += size;
    account->is_told = false;
    if (size % piece || size / piece > PIECES_MAX || address > UINT64_MAX - size) {
        account->import->snapshot->not_understood++;
        return;
    }
    for (uint64_t at = 0; at < size; at += piece)
        map_piece(account, address + at, piece, stack);
}

/* Pieces that do not lie whole in the range stay: they are of another size than was thought. */
static void unmap_range(struct account *account, uint64_t address, uint64_t size, uint32_t stack)
{
    account->reserved -= size < account->reserved ? size : account->reserved;
    account->is_told = false;
    for (uint64_t at = 0; at < size && at / SMALL_PIECE < PIECES_MAX * 10u;) {
        uint32_t units = gm_map_get(&account->pieces, address + at);
        uint64_t piece = units == GM_NONE ? SMALL_PIECE : units * SMALL_PIECE;
        if (units != GM_NONE && piece <= size - at)
            unmap_piece(account, address + at, piece, stack);
        at += piece;
    }
}

/* ---- a device -------------------------------------------------------------------------------- */

static uint32_t segment_stack(struct account *account, struct gm_items *frames,
                              struct gm_text metadata)
{
    struct import *import = account->import;
    return gm_image_leaf(&import->image, imported_stack(&import->image, frames, metadata),
                         account->device->device < 0 ? import->host_library
                                                     : import->device_library);
}

static void tell_beginning(struct account *account)
{
    const struct gm_torch_device *device = account->device;
    const struct gm_text none = {"", 0};
    for (size_t i = 0; i < device->first_segment_count; i++) {
        const struct gm_torch_segment *segment = &device->first_segments[i];
        uint32_t stack = segment_stack(account, segment->frames, none);
        if (segment->expandable)
            map_range(account, segment->address, segment->size, stack);
        else
            begin_segment(account, segment->address, segment->size, stack);
    }
    for (size_t i = 0; i < device->first_block_count; i++)
        begin_import_block(
            account, &device->first_blocks[i],
            imported_stack(&account->import->image, device->first_blocks[i].frames, none));
    tell_reserved(account);
}

static void tell_event(struct account *account, const struct gm_torch_event *event)
{
    struct gm_image *image = &account->import->image;
    if (event->synthetic || (event->action == GM_TORCH_OTHER))
        return;
    bool is_block =
        event->action == GM_TORCH_ALLOC || event->gives_back || event->action == GM_TORCH_OOM;
    if (event->action == GM_TORCH_SEGMENT_FREE || event->action == GM_TORCH_SEGMENT_UNMAP)
        tell_reserved(account); /* it was a peak, perhaps */
    uint32_t stack = is_block ? imported_stack(image, event->frames, event->metadata) : 0;
    if (event->action == GM_TORCH_ALLOC) {
        begin_import_block(account,
                           &(struct gm_torch_block){.address = event->address,
                                                    .size = event->block_size,
                                                    .requested = event->size},
                           stack);
    } else if (event->gives_back) {
        end_import_block(account, event, stack);
    } else if (event->action == GM_TORCH_OOM && account->device->device >= 0) {
        if (event->size > event->device_free) /* else a limit of the program's own */
            add_record(account, (struct gm_record){.type = GM_EVENT_ALLOC_FAILED,
                                                   .kind = GM_KIND_DEVICE,
                                                   .size = event->size,
                                                   .extra = CUDA_OUT_OF_MEMORY,
                                                   .api = account->import->segment_alloc,
                                                   .stack = segment_stack(account, event->frames,
                                                                          event->metadata)});
        add_record(account, (struct gm_record){.type = GM_EVENT_BLOCK_OOM,
                                               .size = event->size,
                                               .aux = account->allocated,
                                               .stack = stack});
        add_record(account, (struct gm_record){.type = GM_EVENT_DETAIL,
                                               .address = account->reserved,
                                               .size = event->size,
                                               .aux = event->device_free});
        account->is_told = true;
    }
    if (event->action < GM_TORCH_SEGMENT_ALLOC || event->action > GM_TORCH_SEGMENT_UNMAP)
        return;
    stack = segment_stack(account, event->frames, event->metadata);
    if (event->action == GM_TORCH_SEGMENT_ALLOC)
        begin_segment(account, event->address, event->size, stack);
    else if (event->action == GM_TORCH_SEGMENT_FREE)
        end_segment(account, event->address, event->size, stack);
    else if (event->action == GM_TORCH_SEGMENT_MAP)
        map_range(account, event->address, event->size, stack);
    else
        unmap_range(account, event->address, event->size, stack);
}

static void tell_device(struct import *import, const struct gm_torch_device *device)
{
    struct account account = {.import = import,
                              .device = device,
                              .lane = gm_image_lane(&import->image),
                              .time = import->begin};
    tell_beginning(&account);
    for (size_t i = 0; i < device->event_count; i++) {
        if (device->events[i].time_ns > account.time)
            account.time = device->events[i].time_ns;
        tell_event(&account, &device->events[i]);
    }
    tell_reserved(&account);
    import->image.header.counters[GM_COUNT_SNAPSHOT] += device->contradictions;
    if (account.time > import->latest)
        import->latest = account.time;
    gm_map_free(&account.pieces);
}

/* ---- what the program named ------------------------------------------------------------------ */

GM_ORDER(by_time, struct gm_record, GM_UP(time) GM_UP(extra))

/* Ranges of the profiler. What ends is the latest of its name. */
static void tell_annotations(struct import *import)
{
    const struct gm_items *list = import->snapshot->annotations;
    size_t count = 0, capacity = 0;
    struct gm_record *records = NULL;
    struct gm_map open = {0}; /* name -> number of the range */
    for (uint32_t i = 0; list && i < list->count; i++) {
        const struct gm_value *one = &list->values[i];
        struct gm_text stage = gm_value_text(gm_value_get(one, "stage"));
        uint32_t name = gm_image_string(&import->image, gm_value_text(gm_value_get(one, "name")));
        uint64_t time_us = gm_value_number(gm_value_get(one, "time_us"), 0);
        bool starts = gm_text_is(stage, "START");
        if (!name || time_us > INT64_MAX / 1000 || (!starts && !gm_text_is(stage, "END")))
            continue;
        uint64_t time = time_us * 1000;
        time = time < import->begin ? import->begin : time > import->latest ? import->latest : time;
        GM_APPEND(records, capacity, count,
                  (struct gm_record){.type = starts ? GM_EVENT_RANGE_START : GM_EVENT_RANGE_END,
                                     .time = time,
                                     .aux = name,
                                     .extra = i});
    }
    if (!count)
        return;
    qsort(records, count, sizeof(*records), by_time);
    uint32_t lane = gm_image_lane(&import->image);
    for (size_t i = 0; i < count; i++) {
        struct gm_record *record = &records[i];
        uint64_t name = record->aux;
        record->extra = 0;
        if (record->type == GM_EVENT_RANGE_START)
            gm_map_set(&open, name, (uint32_t)i + 1);
        uint32_t number = gm_map_get(&open, name);
        if (number == GM_NONE)
            continue;
        record->address = number;
        if (record->type == GM_EVENT_RANGE_END) {
            gm_map_remove(&open, name);
            record->aux = 0;
        }
        gm_image_add(&import->image, lane, record);
    }
    gm_map_free(&open);
    free(records);
}

static void tell_settings(struct import *import)
{
    const struct gm_value *settings = import->snapshot->settings;
    struct gm_text text = gm_value_text(gm_value_get(settings, "PYTORCH_CUDA_ALLOC_CONF"));
    static const char expandable[] = "expandable_segments:True";
    if (!text.size && gm_value_number(gm_value_get(settings, "expandable_segments"), 0) == 1)
        text = (struct gm_text){expandable, strlen(expandable)};
    if (text.size && text.size < UINT16_MAX)
        gm_image_environment(&import->image, "PYTORCH_CUDA_ALLOC_CONF", text);
}

static void find_beginning(struct import *import)
{
    const struct gm_torch_snapshot *snapshot = import->snapshot;
    import->begin = UINT64_MAX;
    for (size_t i = 0; i < snapshot->device_count; i++)
        for (size_t at = 0; at < snapshot->devices[i].event_count; at++)
            if (snapshot->devices[i].events[at].time_ns) {
                uint64_t time = snapshot->devices[i].events[at].time_ns;
                import->begin = time < import->begin ? time : import->begin;
                break;
            }
    if (import->begin == UINT64_MAX)
        import->begin = 1;
    import->latest = import->begin;
}

unsigned char *gm_torch_import(struct gm_torch_snapshot *snapshot, size_t *size)
{
    struct import import = {.snapshot = snapshot};
    struct gm_image *image = &import.image;
    struct gm_trace_header *header = &image->header;
    gm_image_begin(image);
    static const char command[] = "a PyTorch memory snapshot";
    memcpy(header->command_line, command, sizeof(command));
    header->command_line_size = sizeof(command);
    snprintf(header->tool_version, sizeof(header->tool_version), "PyTorch memory snapshot");
    header->flags = GM_HEADER_SNAPSHOT;
    import.segment_alloc = gm_image_api(image, "cudaMalloc");
    import.segment_free = gm_image_api(image, "cudaFree");
    import.host_alloc = gm_image_api(image, "cudaHostAlloc");
    import.host_free = gm_image_api(image, "cudaFreeHost");
    import.create = gm_image_api(image, "cuMemCreate");
    import.map = gm_image_api(image, "cuMemMap");
    import.unmap = gm_image_api(image, "cuMemUnmap");
    import.release = gm_image_api(image, "cuMemRelease");
    import.device_library = gm_image_module(image, "libc10_cuda.so");
    import.host_library = gm_image_module(image, "libtorch_cuda.so");
    find_beginning(&import);
    for (size_t i = 0; i < snapshot->device_count; i++)
        tell_device(&import, &snapshot->devices[i]);
    tell_annotations(&import);
    tell_settings(&import);
    header->counters[GM_COUNT_SNAPSHOT] += snapshot->not_understood;
    header->clock_start =
        (struct gm_clock_pair){.monotonic_ns = import.begin, .realtime_ns = import.begin};
    header->clock_latest[0] =
        (struct gm_clock_pair){.monotonic_ns = import.latest, .realtime_ns = import.latest};
    header->end_time = import.latest;
    return gm_image_finish(image, size);
}
