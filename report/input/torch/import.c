/* See import.h.
 *
 * What was reserved and allocated before the history is recorded as if it had been at its first moment. Memory that
 * a segment maps piece by piece is told in pieces of the size that PyTorch uses.
 */
#include "input/torch/import.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/size.h"
#include "input/torch/image.h"
#include "input/torch/snapshot.h"
#include "input/torch/stacks.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_PIECE (2 * GM_MIB) /* PyTorch's kSmallBuffer and kLargeBuffer */
#define LARGE_PIECE (20 * GM_MIB)
#define PIECES_MAX 65536u /* of one segment: 1.25 TiB */
#define ROUNDING 512u     /* PyTorch's kMinBlockSize */
#define CUDA_OUT_OF_MEMORY 2u
#define EVENTS_AT_ONCE 65536u /* of those told the memory is given back */

struct import {
    struct gm_torch_snapshot *snapshot;
    struct gm_image *image;
    struct gm_record *ranges; /* of the profiler */
    size_t range_count, range_capacity;
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

/* ---- records --------------------------------------------------------------------------------- */

static void add_record(struct account *account, struct gm_record record)
{
    record.time = account->time;
    record.device = (int8_t)account->device->device;
    gm_image_add(account->import->image, account->lane, &record);
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

static uint32_t segment_stack(struct account *account, uint32_t metadata, uint32_t stack)
{
    struct import *import = account->import;
    return gm_image_leaf(import->image, gm_torch_stack_below(import->image, metadata, stack),
                         account->device->device < 0 ? import->host_library
                                                     : import->device_library);
}

static void tell_beginning(struct account *account)
{
    const struct gm_torch_device *device = account->device;
    for (size_t i = 0; i < device->first_segment_count; i++) {
        const struct gm_torch_segment *segment = &device->first_segments[i];
        uint32_t stack = segment_stack(account, 0, segment->stack);
        if (segment->expandable)
            map_range(account, segment->address, segment->size, stack);
        else
            begin_segment(account, segment->address, segment->size, stack);
    }
    for (size_t i = 0; i < device->first_block_count; i++)
        begin_import_block(account, &device->first_blocks[i], device->first_blocks[i].stack);
    tell_reserved(account);
}

static void tell_event(struct account *account, const struct gm_torch_event *event)
{
    struct gm_image *image = account->import->image;
    if (event->synthetic || (event->action == GM_TORCH_OTHER))
        return;
    bool is_block =
        event->action == GM_TORCH_ALLOC || event->gives_back || event->action == GM_TORCH_OOM;
    if (event->action == GM_TORCH_SEGMENT_FREE || event->action == GM_TORCH_SEGMENT_UNMAP)
        tell_reserved(account); /* it was a peak, perhaps */
    uint32_t stack = is_block ? gm_torch_stack_below(image, event->metadata, event->stack) : 0;
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
                                                   .stack = segment_stack(account, event->metadata,
                                                                          event->stack)});
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
    stack = segment_stack(account, event->metadata, event->stack);
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
                              .lane = gm_image_lane(import->image),
                              .time = import->begin};
    tell_beginning(&account);
    for (size_t i = 0; i < device->event_count; i++) {
        if (i % EVENTS_AT_ONCE == 0 && i)
            gm_give_back_pages(device->events + i - EVENTS_AT_ONCE,
                               EVENTS_AT_ONCE * sizeof(*device->events));
        if (device->events[i].time_ns > account.time)
            account.time = device->events[i].time_ns;
        tell_event(&account, &device->events[i]);
    }
    tell_reserved(&account);
    import->image->header.counters[GM_COUNT_SNAPSHOT] += device->contradictions;
    if (account.time > import->latest)
        import->latest = account.time;
    gm_map_free(&account.pieces);
}

/* ---- what the program named ------------------------------------------------------------------ */

GM_ORDER(by_time, struct gm_record, GM_UP(time) GM_UP(extra))

/* Ranges of the profiler, their beginnings and ends in no order. */
static void collect_ranges(struct import *import)
{
    const struct gm_items *list = import->snapshot->annotations;
    for (uint32_t i = 0; list && i < list->count; i++) {
        const struct gm_value *one = &list->values[i];
        struct gm_text stage = gm_value_text(gm_value_get(one, "stage"));
        uint32_t name = gm_image_string(import->image, gm_value_text(gm_value_get(one, "name")));
        uint64_t time_us = gm_value_number(gm_value_get(one, "time_us"), 0);
        bool starts = gm_text_is(stage, "START");
        if (!name || time_us > INT64_MAX / 1000 || (!starts && !gm_text_is(stage, "END")))
            continue;
        GM_APPEND(import->ranges, import->range_capacity, import->range_count,
                  (struct gm_record){.type = starts ? GM_EVENT_RANGE_START : GM_EVENT_RANGE_END,
                                     .time = time_us * 1000,
                                     .aux = name,
                                     .extra = i});
    }
}

/* What ends is the latest of its name. */
static void tell_ranges(struct import *import)
{
    struct gm_record *records = import->ranges;
    size_t count = import->range_count;
    struct gm_map open = {0}; /* name -> number of the range */
    for (size_t i = 0; i < count; i++)
        records[i].time = records[i].time < import->begin    ? import->begin
                          : records[i].time > import->latest ? import->latest
                                                             : records[i].time;
    if (!count)
        return;
    qsort(records, count, sizeof(*records), by_time);
    uint32_t lane = gm_image_lane(import->image);
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
        gm_image_add(import->image, lane, record);
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
        gm_image_environment(import->image, "PYTORCH_CUDA_ALLOC_CONF", text);
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
    struct gm_image *image = &snapshot->image;
    struct import import = {.snapshot = snapshot, .image = image};
    struct gm_trace_header *header = &image->header;
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
    collect_ranges(&import);
    tell_settings(&import);
    gm_torch_forget_pickle(snapshot);
    for (size_t i = 0; i < snapshot->device_count; i++)
        tell_device(&import, &snapshot->devices[i]);
    tell_ranges(&import);
    header->counters[GM_COUNT_SNAPSHOT] += snapshot->not_understood;
    header->clock_start =
        (struct gm_clock_pair){.monotonic_ns = import.begin, .realtime_ns = import.begin};
    header->clock_latest[0] =
        (struct gm_clock_pair){.monotonic_ns = import.latest, .realtime_ns = import.latest};
    header->end_time = import.latest;
    return gm_image_finish(image, size);
}
