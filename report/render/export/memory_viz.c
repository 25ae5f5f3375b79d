/* A memory snapshot of PyTorch's form (torch.cuda.memory._dump_snapshot), for pytorch.org/memory_viz and
 * all that reads such files. Segments are what was allocated from CUDA on a device, whoever did; blocks
 * are the framework's. What lies in no framework's pool (NCCL's buffers, a library's workspace, a C
 * program's cudaMalloc) is a segment with one block of its own, so that the viewer's timeline has it.
 *
 * Physical memory of the VMM has a handle, not an address: where blocks lie in it, each is shown in a
 * segment of its own size. */
#include "base/memory.h"
#include "base/ranges.h"
#include "ledger/counters.h"
#include "render/export/pickle.h"
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

static const struct gm_model_place *place_of(const struct snapshot *snapshot,
                                             const struct gm_model_life *life)
{
    return &snapshot->model->places[life->place];
}

/* What an allocation is in the snapshot. */
static enum role role_of(const struct snapshot *snapshot, const struct gm_model_life *life)
{
    const struct gm_model_place *place = place_of(snapshot, life);
    if (place->is_block)
        return BLOCK;
    if (snapshot->holds_blocks[life - snapshot->history.lives])
        return SEGMENT;
    if (!place->pool || !snapshot->has_blocks[place->device + 1])
        return BOTH;
    return place->kind == GM_KIND_VMM ? NOTHING : SEGMENT;
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
        const struct gm_model_place *place = place_of(snapshot, life);
        bool ends = GM_STEP_ENDS(snapshot->order[step]);
        uint64_t end = gm_range_end(life->address, place->is_block ? 1 : life->size);
        struct gm_range found;
        bool is_there = gm_ranges_find(&alive, life->address, end, &found);
        if (place->is_block) {
            if (!ends && is_there)
                snapshot->holds_blocks[found.value] = true;
        } else if (place->kind == GM_KIND_DEVICE) {
            if (!ends && !is_there)
                gm_ranges_add(&alive, (struct gm_range){life->address, end, number});
            else if (ends && is_there && found.value == number)
                gm_ranges_remove(&alive, life->address);
        }
    }
    gm_ranges_free(&alive);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void write_frames(struct snapshot *snapshot, uint32_t number)
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
    write_frames(snapshot, snapshot->model->places[life->place].stack);
    gm_pickle_close_dictionary(pickle);
}

static void write_begin(struct snapshot *snapshot, struct gm_pickle_list *list,
                        const struct gm_model_life *life, enum role role)
{
    if (role == SEGMENT || role == BOTH)
        write_event(snapshot, list, "segment_alloc", life, life->begin_ns);
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
        write_event(snapshot, list, "segment_free", life, life->end_ns);
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
        if (!is_on(place_of(snapshot, life), device))
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

static int by_address(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;
    if (a->life->address != b->life->address)
        return a->life->address < b->life->address ? -1 : 1;
    if (a->role != b->role)
        return a->role == BLOCK ? 1 : -1; /* a segment comes before its first block */
    return a->life < b->life ? -1 : a->life > b->life;
}

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
        write_frames(snapshot, snapshot->model->places[life->place].stack);
    }
    gm_pickle_close_dictionary(pickle);
}

/* The segment that begins with `pieces[0]` and the blocks in it; returns how many pieces it took. */
static size_t write_segment(struct snapshot *snapshot, struct gm_pickle_list *list,
                            const struct piece *pieces, size_t count)
{
    struct gm_pickle *pickle = &snapshot->pickle;
    const struct gm_model_life *life = pieces[0].life;
    uint64_t address = life->address, end = address + life->size, at = address, allocated = 0;
    uint64_t requested = 0;
    bool is_own = pieces[0].role != SEGMENT;
    size_t taken = 1;
    while (!is_own && taken < count && pieces[taken].role == BLOCK &&
           pieces[taken].life->address + pieces[taken].life->size <= end) {
        requested += requested_of(pieces[taken].life);
        allocated += pieces[taken++].life->size;
    }
    allocated += is_own ? life->size : 0;
    requested += is_own ? requested_of(life) : 0;
    gm_pickle_item(pickle, list);
    gm_pickle_open_dictionary(pickle);
    write_field(snapshot, "device", (uint64_t)snapshot->model->places[life->place].device);
    write_field(snapshot, "address", address);
    write_field(snapshot, "total_size", life->size);
    write_field(snapshot, "allocated_size", allocated);
    write_field(snapshot, "active_size", allocated);
    write_field(snapshot, "requested_size", requested);
    write_field(snapshot, "stream", 0);
    gm_pickle_string(pickle, "segment_type");
    gm_pickle_string(pickle, life->size <= 2097152 ? "small" : "large");
    gm_pickle_string(pickle, "segment_pool_id");
    gm_pickle_pair(pickle, 0, 0);
    gm_pickle_string(pickle, "is_expandable");
    gm_pickle_bool(pickle, false);
    gm_pickle_string(pickle, "frames");
    write_frames(snapshot, snapshot->model->places[life->place].stack);
    gm_pickle_string(pickle, "blocks");
    struct gm_pickle_list blocks;
    gm_pickle_open_list(pickle, &blocks);
    for (size_t i = is_own ? 0 : 1; i < taken; i++) {
        const struct gm_model_life *block = pieces[i].life;
        if (block->address < at) /* two blocks in one place: the trace is not whole */
            continue;
        write_block(snapshot, &blocks, at, block->address - at, NULL);
        write_block(snapshot, &blocks, block->address, block->size, block);
        at = block->address + block->size;
    }
    write_block(snapshot, &blocks, at, end - at, NULL);
    gm_pickle_close_list(pickle, &blocks);
    gm_pickle_close_dictionary(pickle);
    return taken;
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
                is_on(place_of(snapshot, life), snapshot->run->devices[i].id))
                pieces[count++] = (struct piece){life, role};
        }
        qsort(pieces, count, sizeof(*pieces), by_address);
        for (size_t at = 0; at < count;)
            at += write_segment(snapshot, &list, pieces + at, count - at);
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
    gm_model_history(model, NULL, &snapshot->history);
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
    .name = "memory_viz", .needs = GM_NEEDS_MOMENTS, .write = write_memory_viz};
