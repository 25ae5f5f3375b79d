/* A memory snapshot of PyTorch's form (torch.cuda.memory._dump_snapshot), for pytorch.org/memory_viz and
 * all that reads such files. Segments are what was allocated from CUDA on a device, whoever did; blocks
 * are the framework's. What lies in no framework's pool (NCCL's buffers, a library's workspace, a C
 * program's cudaMalloc) is a segment with one block of its own, so that the viewer's timeline has it.
 *
 * Physical memory of the VMM has a handle and no address: it is shown where it is mapped as a whole, and
 * before and behind at its handle, unless nothing else happened meanwhile: that would look like churn. There a framework's is not shown at all: it waits to be mapped or
 * released, or its blocks, which are shown in segments of their own size, lie in it. */
#include "base/memory.h"
#include "base/order.h"
#include "base/ranges.h"
#include "output/export/pickle.h"
#include <stdlib.h>
#include <string.h>

enum role { NOTHING, SEGMENT, BLOCK, BOTH };

struct snapshot {
    const struct gm_model *model;
    const struct gm_model_run *run;
    struct gm_model_history history;
    uint64_t *order;
    struct gm_pickle pickle;
    struct gm_map memo_of_stack; /* list of frames */
    bool *holds_blocks;          /* by life: a block lay in it */
    bool has_blocks[GM_DEVICES];
};

static bool is_on(const struct gm_model_place *place, int device)
{
    return place->device == device && (place->is_block || !gm_kind_is_host(place->kind)) &&
           place->kind != GM_KIND_EXTERNAL;
}

static const struct gm_model_place *place_of_life(const struct snapshot *snapshot,
                                                  const struct gm_model_life *life)
{
    return &snapshot->model->places[life->place];
}

#define NEAR 64u /* steps, of other devices and the host as well */

/* What the device's next step is (by -1: the one before), as in `order`; 0: none is near. */
static uint64_t next_step(const struct snapshot *snapshot, uint32_t step, uint32_t by,
                          int8_t device)
{
    for (unsigned i = 0; i < NEAR && (step += by) < snapshot->history.steps; i++) {
        uint64_t what = snapshot->order[step];
        if (what &&
            is_on(place_of_life(snapshot, &snapshot->history.lives[GM_STEP_LIFE(what)]), device))
            return what;
    }
    return 0;
}

/* Whether memory of that place is mapped then (or, as it ends, unmapped). */
static bool is_mapping(const struct snapshot *snapshot, uint64_t step, uint32_t place, bool ends)
{
    const struct gm_model_life *life = &snapshot->history.lives[step ? GM_STEP_LIFE(step) : 0];
    return step && life->is_mapped && life->place == place && GM_STEP_ENDS(step) == ends;
}

/* At its handle for one call alone: mapped as soon as it was there, or released as soon as it was unmapped. */
static bool is_passage(const struct snapshot *snapshot, const struct gm_model_life *life)
{
    int8_t device = place_of_life(snapshot, life)->device;
    uint64_t end = (uint64_t)(life - snapshot->history.lives) * 2 + 2;
    return !life->is_mapped && next_step(snapshot, life->begin_step, 1, device) == end &&
           (is_mapping(snapshot, next_step(snapshot, life->end_step, 1, device), life->place,
                       false) ||
            is_mapping(snapshot, next_step(snapshot, life->begin_step, UINT32_MAX, device),
                       life->place, true));
}

/* What an allocation is in the snapshot. */
static enum role role_of(const struct snapshot *snapshot, const struct gm_model_life *life)
{
    const struct gm_model_place *place = place_of_life(snapshot, life);
    if (place->is_block)
        return BLOCK;
    if (place->kind == GM_KIND_VMM && is_passage(snapshot, life))
        return NOTHING;
    if (snapshot->holds_blocks[life - snapshot->history.lives])
        return SEGMENT;
    if (!place->pool || !snapshot->has_blocks[place->device + 1])
        return BOTH;
    return place->kind == GM_KIND_VMM && !life->is_mapped ? NOTHING : SEGMENT;
}

/* Where a trace has no stacks, they do not tell that the framework's pool asked: then its blocks do, which lie in it. */
static void find_holders(struct snapshot *snapshot)
{
    const struct gm_model_history *history = &snapshot->history;
    struct gm_ranges alive = {0};
    snapshot->holds_blocks = gm_allocate(history->count + 1, sizeof(*snapshot->holds_blocks));
    for (uint32_t step = 0; step < history->steps; step++) {
        if (!snapshot->order[step])
            continue;
        uint32_t number = (uint32_t)GM_STEP_LIFE(snapshot->order[step]);
        const struct gm_model_life *life = &history->lives[number];
        const struct gm_model_place *place = place_of_life(snapshot, life);
        bool ends = GM_STEP_ENDS(snapshot->order[step]);
        uint64_t at = life->address, end = gm_range_end(at, life->size);
        struct gm_range found;
        if (place->is_block) { /* which can lie in several mappings */
            for (; !ends && gm_ranges_find(&alive, at, end, &found); at = found.end)
                snapshot->holds_blocks[found.value] = true;
        } else if (place->kind == GM_KIND_DEVICE || life->is_mapped) {
            bool is_there = gm_ranges_find(&alive, at, end, &found);
            if (!ends && !is_there)
                gm_ranges_add(&alive, (struct gm_range){at, end, number});
            else if (ends && is_there && found.value == number)
                gm_ranges_remove(&alive, at);
        }
    }
    gm_ranges_free(&alive);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void write_viz_frames(struct snapshot *snapshot, uint32_t number)
{
    struct gm_pickle *pickle = &snapshot->pickle;
    uint32_t same = gm_model_same_stack(snapshot->model, number);
    uint32_t memo = gm_map_get(&snapshot->memo_of_stack, same);
    if (memo != GM_NONE) {
        gm_pickle_recall(pickle, memo);
        return;
    }
    const struct gm_stack *stack = gm_model_stack(snapshot->model, same);
    size_t count = gm_export_frame_count(stack);
    struct gm_pickle_list list;
    gm_pickle_open_list(pickle, &list);
    for (size_t i = 0; i < count; i++) {
        gm_pickle_item(pickle, &list);
        gm_pickle_open_dictionary(pickle);
        gm_pickle_string(pickle, "filename");
        gm_pickle_string(pickle, stack->frames[i].file ? stack->frames[i].file : "??");
        gm_pickle_string(pickle, "line");
        gm_pickle_number(pickle, stack->frames[i].line);
        gm_pickle_string(pickle, "name");
        gm_pickle_string(pickle, stack->frames[i].function);
        gm_pickle_close_dictionary(pickle);
    }
    gm_pickle_close_list(pickle, &list);
    gm_map_set(&snapshot->memo_of_stack, same, gm_pickle_remember(pickle));
}

static void write_field(struct snapshot *snapshot, const char *key, uint64_t value)
{
    gm_pickle_string(&snapshot->pickle, key);
    gm_pickle_number(&snapshot->pickle, value);
}

/* ---- events ---------------------------------------------------------------------------------- */

/* PyTorch's events have the bytes that were asked for, its blocks both. */
static uint64_t requested_of(const struct gm_model_life *life)
{
    return life->requested ? life->requested : life->size;
}

static void write_event(struct snapshot *snapshot, struct gm_pickle_list *list, const char *action,
                        const struct gm_model_life *life, uint64_t time_ns)
{
    struct gm_pickle *pickle = &snapshot->pickle;
    bool is_segment = strncmp(action, "segment", strlen("segment")) == 0;
    gm_pickle_item(pickle, list);
    gm_pickle_open_dictionary(pickle);
    gm_pickle_string(pickle, "action");
    gm_pickle_string(pickle, action);
    write_field(snapshot, "addr", life->address);
    write_field(snapshot, "size", is_segment ? life->size : requested_of(life));
    write_field(snapshot, "stream", 0);
    write_field(snapshot, "time_us", (snapshot->run->start_realtime_ns + time_ns) / 1000);
    gm_pickle_string(pickle, "frames");
    write_viz_frames(snapshot, snapshot->model->places[life->place].stack);
    gm_pickle_close_dictionary(pickle);
}

static void write_begin(struct snapshot *snapshot, struct gm_pickle_list *list,
                        const struct gm_model_life *life, enum role role)
{
    if (role == SEGMENT || role == BOTH)
        write_event(snapshot, list, life->is_mapped ? "segment_map" : "segment_alloc", life,
                    life->begin_ns);
    if (role == BLOCK || role == BOTH)
        write_event(snapshot, list, "alloc", life, life->begin_ns);
}

static void write_end(struct snapshot *snapshot, struct gm_pickle_list *list,
                      const struct gm_model_life *life, enum role role)
{
    if (role == BLOCK || role == BOTH) {
        write_event(snapshot, list, "free_requested", life, life->end_ns);
        write_event(snapshot, list, "free_completed", life, life->end_ns);
    }
    if (role == SEGMENT || role == BOTH)
        write_event(snapshot, list, life->is_mapped ? "segment_unmap" : "segment_free", life,
                    life->end_ns);
}

static void write_device_events(struct snapshot *snapshot, int device)
{
    const struct gm_model_history *history = &snapshot->history;
    struct gm_pickle_list list;
    gm_pickle_open_list(&snapshot->pickle, &list);
    for (uint32_t step = 0; step < history->steps; step++) {
        if (!snapshot->order[step])
            continue;
        const struct gm_model_life *life = &history->lives[GM_STEP_LIFE(snapshot->order[step])];
        if (!is_on(place_of_life(snapshot, life), device))
            continue;
        (GM_STEP_ENDS(snapshot->order[step]) ? write_end : write_begin)(snapshot, &list, life,
                                                                        role_of(snapshot, life));
    }
    gm_pickle_close_list(&snapshot->pickle, &list);
}

/* ---- segments at the end --------------------------------------------------------------------- */

struct piece {
    const struct gm_model_life *life;
    enum role role;
};

GM_ORDER(by_piece_address, struct piece,
         GM_UP(life->address) GM_UP(role) GM_UP(life)) /* a segment comes before its first block */

static void write_block(struct snapshot *snapshot, struct gm_pickle_list *list, uint64_t address,
                        uint64_t size, const struct gm_model_life *life)
{
    struct gm_pickle *pickle = &snapshot->pickle;
    if (size == 0)
        return;
    gm_pickle_item(pickle, list);
    gm_pickle_open_dictionary(pickle);
    write_field(snapshot, "address", address);
    write_field(snapshot, "size", size);
    write_field(snapshot, "requested_size", life ? requested_of(life) : size);
    gm_pickle_string(pickle, "state");
    gm_pickle_string(pickle, life ? "active_allocated" : "inactive");
    if (life) {
        gm_pickle_string(pickle, "frames");
        write_viz_frames(snapshot, snapshot->model->places[life->place].stack);
    }
    gm_pickle_close_dictionary(pickle);
}

/* A segment, from pieces in the order of their addresses. */
struct segment {
    const struct piece *pieces; /* the first says whose it is */
    size_t count;
    uint64_t end;
};

/* Whether a mapping goes on where the segment ends: PyTorch lets such a segment grow, by pieces of one
 * size. */
static bool segment_goes_on(const struct segment *segment, const struct piece *piece)
{
    const struct gm_model_life *first = segment->pieces[0].life;
    return first->is_mapped && piece->role == SEGMENT && piece->life->is_mapped &&
           piece->life->address == segment->end && piece->life->size == first->size;
}

/* The segment that begins with `pieces[0]`, and the blocks in it. A block of a segment that grows may
 * reach into the next mapping. */
static struct segment find_segment(const struct piece *pieces, size_t count)
{
    const struct gm_model_life *first = pieces[0].life;
    struct segment segment = {pieces, 1, first->address + first->size};
    for (; pieces[0].role == SEGMENT && segment.count < count; segment.count++) {
        const struct piece *piece = &pieces[segment.count];
        if (segment_goes_on(&segment, piece))
            segment.end += piece->life->size;
        else if (piece->role != BLOCK || piece->life->address >= segment.end ||
                 (!first->is_mapped && piece->life->address + piece->life->size > segment.end))
            break;
    }
    return segment;
}

/* A block of the segment that lies at or behind `at`; others are in its place, or reach beyond: the trace is
 * not whole. */
static bool is_block_of(const struct segment *segment, const struct piece *piece, uint64_t at)
{
    return piece->role != SEGMENT && piece->life->address >= at &&
           piece->life->address + piece->life->size <= segment->end;
}

static void write_segment(struct snapshot *snapshot, struct gm_pickle_list *list,
                          const struct segment *segment)
{
    struct gm_pickle *pickle = &snapshot->pickle;
    const struct gm_model_life *life = segment->pieces[0].life;
    uint64_t at = life->address, allocated = 0, requested = 0;
    for (size_t i = 0; i < segment->count; i++) {
        const struct gm_model_life *block = segment->pieces[i].life;
        if (!is_block_of(segment, &segment->pieces[i], at))
            continue;
        requested += requested_of(block);
        allocated += block->size;
        at = block->address + block->size;
    }
    gm_pickle_item(pickle, list);
    gm_pickle_open_dictionary(pickle);
    write_field(snapshot, "device", (uint64_t)snapshot->model->places[life->place].device);
    write_field(snapshot, "address", life->address);
    write_field(snapshot, "total_size", segment->end - life->address);
    write_field(snapshot, "allocated_size", allocated);
    write_field(snapshot, "active_size", allocated);
    write_field(snapshot, "requested_size", requested);
    write_field(snapshot, "stream", 0);
    gm_pickle_string(pickle, "segment_type");
    gm_pickle_string(pickle, life->size <= 2097152 ? "small" : "large");
    gm_pickle_string(pickle, "segment_pool_id");
    gm_pickle_pair(pickle, 0, 0);
    gm_pickle_string(pickle, "is_expandable");
    gm_pickle_bool(pickle, life->is_mapped);
    gm_pickle_string(pickle, "frames");
    write_viz_frames(snapshot, snapshot->model->places[life->place].stack);
    gm_pickle_string(pickle, "blocks");
    struct gm_pickle_list blocks;
    gm_pickle_open_list(pickle, &blocks);
    at = life->address;
    for (size_t i = 0; i < segment->count; i++) {
        const struct gm_model_life *block = segment->pieces[i].life;
        if (!is_block_of(segment, &segment->pieces[i], at))
            continue;
        write_block(snapshot, &blocks, at, block->address - at, NULL);
        write_block(snapshot, &blocks, block->address, block->size, block);
        at = block->address + block->size;
    }
    write_block(snapshot, &blocks, at, segment->end - at, NULL);
    gm_pickle_close_list(pickle, &blocks);
    gm_pickle_close_dictionary(pickle);
}

static void write_segments(struct snapshot *snapshot)
{
    const struct gm_model_history *history = &snapshot->history;
    struct piece *pieces = gm_allocate(history->count + 1, sizeof(*pieces));
    struct gm_pickle_list list;
    gm_pickle_open_list(&snapshot->pickle, &list);
    for (size_t i = 0; i < snapshot->run->device_count; i++) {
        size_t count = 0;
        for (size_t j = 0; j < history->count; j++) {
            const struct gm_model_life *life = &history->lives[j];
            enum role role = role_of(snapshot, life);
            if (life->end_step == GM_NONE && life->size && role != NOTHING &&
                snapshot->run->devices[i].id >= 0 &&
                is_on(place_of_life(snapshot, life), snapshot->run->devices[i].id))
                pieces[count++] = (struct piece){life, role};
        }
        qsort(pieces, count, sizeof(*pieces), by_piece_address);
        for (size_t at = 0; at < count;) {
            struct segment segment = find_segment(pieces + at, count - at);
            write_segment(snapshot, &list, &segment);
            at += segment.count;
        }
    }
    gm_pickle_close_list(&snapshot->pickle, &list);
    free(pieces);
}

/* ---- the snapshot ---------------------------------------------------------------------------- */

/* A list for each ordinal, empty ones too. */
static void write_traces(struct snapshot *snapshot)
{
    struct gm_pickle_list list;
    int last = -1;
    for (size_t i = 0; i < snapshot->run->device_count; i++)
        if (snapshot->run->devices[i].is_listed)
            last = snapshot->run->devices[i].id;
    gm_pickle_open_list(&snapshot->pickle, &list);
    for (int device = 0; device <= last; device++) {
        gm_pickle_item(&snapshot->pickle, &list);
        write_device_events(snapshot, device);
    }
    gm_pickle_close_list(&snapshot->pickle, &list);
}

static void write_memory_viz(FILE *out, const struct gm_model *model,
                             const struct gm_output_options *options)
{
    struct snapshot *snapshot = gm_allocate(1, sizeof(*snapshot));
    struct gm_pickle_list empty;
    (void)options;
    snapshot->model = model;
    snapshot->run = &model->runs[0];
    gm_model_history_with_moves(model, &snapshot->history);
    snapshot->order = gm_model_history_order(&snapshot->history);
    for (size_t i = 0; i < snapshot->run->pool_count; i++)
        snapshot->has_blocks[snapshot->run->pools[i].device + 1] = true;
    find_holders(snapshot);
    gm_pickle_begin(&snapshot->pickle, out);
    gm_pickle_open_dictionary(&snapshot->pickle);
    gm_pickle_string(&snapshot->pickle, "segments");
    write_segments(snapshot);
    gm_pickle_string(&snapshot->pickle, "device_traces");
    write_traces(snapshot);
    gm_pickle_string(&snapshot->pickle, "external_annotations");
    gm_pickle_open_list(&snapshot->pickle, &empty);
    gm_pickle_close_list(&snapshot->pickle, &empty);
    gm_pickle_string(&snapshot->pickle, "allocator_settings");
    gm_pickle_open_dictionary(&snapshot->pickle);
    gm_pickle_close_dictionary(&snapshot->pickle);
    gm_pickle_close_dictionary(&snapshot->pickle);
    gm_pickle_end(&snapshot->pickle);
    gm_map_free(&snapshot->memo_of_stack);
    gm_model_history_free(&snapshot->history);
    free(snapshot->holds_blocks);
    free(snapshot->order);
    free(snapshot);
}

const struct gm_output gm_export_memory_viz = {
    .name = "memory_viz", .is_of_run = true, .needs = GM_NEEDS_MOMENTS, .write = write_memory_viz};
