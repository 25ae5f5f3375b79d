/* See tables.h. */
#include "model/tables.h"
#include "base/memory.h"
#include "names/stacks/stacks.h"
#include <stdlib.h>
#include <string.h>

struct gm_model_stack_entry {
    uint32_t id; /* in the trace */
    uint16_t api;
    uint32_t same;           /* the first stack whose frames read the same */
    struct gm_stack stack;   /* once named */
    const uint32_t *numbers; /* of its frames; NULL: not named yet */
};

/* A frame whose texts live as long as the model. */
struct gm_model_named_frame {
    struct gm_frame frame;
    uint32_t number;
};

struct gm_model *gm_model_new(void)
{
    struct gm_model *model = gm_allocate(1, sizeof(*model));
    model->tables = gm_allocate(1, sizeof(*model->tables));
    return model;
}

void gm_model_free(struct gm_model *model)
{
    if (!model)
        return;
    struct gm_model_tables *tables = model->tables;
    free(tables->stacks);
    free(tables->frames);
    free(tables->named);
    free(tables->places);
    free(tables->runs);
    free(tables->ids.by_outline);
    free(tables->ids.of);
    free(tables->ids.outline);
    gm_map_free(&tables->stack_by_id);
    gm_map_free(&tables->stack_by_frames);
    gm_map_free(&tables->frame_by_hash);
    gm_map_free(&tables->named_by_hash);
    gm_map_free(&tables->place_by_hash);
    gm_arena_free(&tables->arena);
    free(tables);
    free(model);
}

struct gm_model_run *gm_model_add_run(struct gm_model *model)
{
    struct gm_model_tables *tables = model->tables;
    GM_RESERVE(tables->runs, tables->run_capacity, model->run_count + 1);
    model->runs = tables->runs;
    model->runs[model->run_count] = (struct gm_model_run){
        .rank = {-1, -1, -1}, .path = "", .pinned_peak = GM_NONE, .end = GM_NONE};
    return &model->runs[model->run_count++];
}

/* ---- hashes ---------------------------------------------------------------------------------- */

static uint64_t mix_hash(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

/* Names of one arena are one if they are equal. */
static uint64_t mix_name(uint64_t hash, const char *name)
{
    return mix_hash(hash, (uint64_t)(uintptr_t)name);
}

/* ---- frames ---------------------------------------------------------------------------------- */

static bool is_same_frame(const struct gm_frame *one, const struct gm_frame *other)
{
    return one->function == other->function && one->file == other->file &&
           one->line == other->line && one->module == other->module &&
           one->framework == other->framework && one->trouble == other->trouble &&
           one->script == other->script && one->inlined == other->inlined;
}

static uint64_t hash_frame(const struct gm_frame *frame)
{
    uint64_t hash = (uint64_t)frame->line << 2 | (uint64_t)frame->script << 1 | frame->inlined;
    hash = mix_name(mix_name(hash, frame->function), frame->file);
    return mix_name(mix_name(mix_name(hash, frame->module), frame->framework), frame->trouble);
}

static uint32_t add_table_frame(struct gm_model_tables *tables, const struct gm_frame *frame)
{
    struct gm_frame own = *frame;
    const char **names[] = {&own.function, &own.file, &own.module, &own.framework, &own.trouble};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        *names[i] = gm_arena_string(&tables->arena, *names[i]);
    uint64_t hash = hash_frame(&own);
    uint32_t known;
    for (; (known = gm_map_get(&tables->frame_by_hash, hash)) != GM_NONE; hash++)
        if (is_same_frame(&tables->frames[known], &own))
            return known;
    GM_RESERVE(tables->frames, tables->frame_capacity, tables->frame_count + 1);
    tables->frames[tables->frame_count] = own;
    gm_map_set(&tables->frame_by_hash, hash, (uint32_t)tables->frame_count);
    return (uint32_t)tables->frame_count++;
}

/* The same for a frame whose texts stay: most have been met before, with the same pointers. */
static uint32_t add_named_frame(struct gm_model_tables *tables, const struct gm_frame *frame)
{
    uint64_t hash = hash_frame(frame);
    uint32_t known;
    for (; (known = gm_map_get(&tables->named_by_hash, hash)) != GM_NONE; hash++)
        if (is_same_frame(&tables->named[known].frame, frame))
            return tables->named[known].number;
    GM_RESERVE(tables->named, tables->named_capacity, tables->named_count + 1);
    struct gm_model_named_frame *added = &tables->named[tables->named_count];
    *added = (struct gm_model_named_frame){*frame, add_table_frame(tables, frame)};
    gm_map_set(&tables->named_by_hash, hash, (uint32_t)tables->named_count++);
    return added->number;
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Gives an entry its frames, which must stay, and says which was the first with the same ones.
 * `add` gives a frame its number. */
static void
set_frames(struct gm_model_tables *tables, uint32_t number, const struct gm_stack *stack,
           uint32_t (*add)(struct gm_model_tables *tables, const struct gm_frame *frame))
{
    uint32_t *numbers = gm_arena_allocate(&tables->arena, stack->count + 1, sizeof(*numbers));
    uint64_t hash = mix_hash(stack->cut, stack->count);
    struct gm_model_stack_entry *entry = &tables->stacks[number];
    for (size_t i = 0; i < stack->count; i++)
        hash = mix_hash(hash, numbers[i] = add(tables, &stack->frames[i]));
    entry->numbers = numbers;
    entry->same = number;
    uint32_t known;
    for (; (known = gm_map_get(&tables->stack_by_frames, hash)) != GM_NONE; hash++) {
        const struct gm_model_stack_entry *other = &tables->stacks[known];
        if (other->stack.count != stack->count || other->stack.cut != stack->cut ||
            memcmp(other->numbers, numbers, stack->count * sizeof(*numbers)) != 0)
            continue;
        entry->same = known;
        entry->stack = other->stack;
        return;
    }
    gm_map_set(&tables->stack_by_frames, hash, number);
    entry->stack = *stack;
}

static uint32_t new_stack(struct gm_model_tables *tables, uint32_t id, uint16_t api)
{
    GM_RESERVE(tables->stacks, tables->stack_capacity, tables->stack_count + 1);
    tables->stacks[tables->stack_count] = (struct gm_model_stack_entry){.id = id, .api = api};
    return (uint32_t)tables->stack_count++;
}

uint32_t gm_model_add_trace_stack(struct gm_model *model, uint32_t id, uint16_t api)
{
    struct gm_model_tables *tables = model->tables;
    uint64_t key = id | (uint64_t)api << 32;
    uint32_t number = gm_map_get(&tables->stack_by_id, key);
    if (number == GM_NONE) {
        number = new_stack(tables, id, api);
        gm_map_set(&tables->stack_by_id, key, number);
    }
    return number;
}

uint32_t gm_model_add_stack(struct gm_model *model, const struct gm_stack *stack)
{
    struct gm_model_tables *tables = model->tables;
    uint32_t number = new_stack(tables, 0, 0);
    set_frames(tables, number, stack, add_table_frame);
    struct gm_model_stack_entry *entry = &tables->stacks[number];
    if (entry->same != number) {
        tables->stack_count--;
        return entry->same;
    }
    entry->stack.frames = gm_arena_allocate(&tables->arena, stack->count, sizeof(struct gm_frame));
    for (size_t i = 0; i < stack->count; i++)
        entry->stack.frames[i] = tables->frames[entry->numbers[i]];
    return number;
}

static const struct gm_model_stack_entry *named(const struct gm_model *model, uint32_t number)
{
    struct gm_model_tables *tables = model->tables;
    struct gm_model_stack_entry *entry = &tables->stacks[number];
    if (!entry->numbers)
        set_frames(tables, number, gm_stacks_get(tables->names, entry->id, entry->api),
                   add_named_frame);
    return entry;
}

const struct gm_stack *gm_model_stack(const struct gm_model *model, uint32_t number)
{
    return &named(model, number)->stack;
}

uint32_t gm_model_same_stack(const struct gm_model *model, uint32_t number)
{
    return named(model, number)->same;
}

size_t gm_model_stack_count(const struct gm_model *model)
{
    return model->tables->stack_count;
}

uint64_t gm_model_outline(const struct gm_model *model, uint32_t number)
{
    const struct gm_model_tables *tables = model->tables;
    return tables->names ? gm_stacks_outline(tables->names, tables->stacks[number].id) : 0;
}

const uint32_t *gm_model_frames(const struct gm_model *model, uint32_t stack)
{
    return named(model, stack)->numbers;
}

const struct gm_frame *gm_model_frame(const struct gm_model *model, uint32_t frame)
{
    return &model->tables->frames[frame];
}

size_t gm_model_frame_count(const struct gm_model *model)
{
    return model->tables->frame_count;
}

/* ---- places ---------------------------------------------------------------------------------- */

static bool is_same_place(const struct gm_model_place *one, const struct gm_model_place *other)
{
    return one->stack == other->stack && one->api == other->api && one->library == other->library &&
           one->pool == other->pool && one->kind == other->kind && one->device == other->device &&
           one->leak_class == other->leak_class && one->is_block == other->is_block;
}

uint32_t gm_model_add_place(struct gm_model *model, const struct gm_model_place *place)
{
    struct gm_model_tables *tables = model->tables;
    struct gm_model_place own = *place;
    own.api = gm_arena_string(&tables->arena, own.api);
    own.library = gm_arena_string(&tables->arena, own.library);
    own.pool = gm_arena_string(&tables->arena, own.pool);
    uint64_t hash = own.stack | (uint64_t)own.kind << 32 | (uint64_t)(uint8_t)own.device << 40 |
                    (uint64_t)own.leak_class << 48 | (uint64_t)own.is_block << 56;
    hash = mix_name(mix_name(mix_name(mix_hash(hash, 0), own.api), own.library), own.pool);
    uint32_t known;
    for (; (known = gm_map_get(&tables->place_by_hash, hash)) != GM_NONE; hash++)
        if (is_same_place(&tables->places[known], &own))
            return known;
    GM_RESERVE(tables->places, tables->place_capacity, model->place_count + 1);
    tables->places[model->place_count] = own;
    model->places = tables->places;
    gm_map_set(&tables->place_by_hash, hash, (uint32_t)model->place_count);
    return (uint32_t)model->place_count++;
}

/* ---- answers --------------------------------------------------------------------------------- */

const struct gm_model_device *gm_model_device(const struct gm_model_run *run, int id)
{
    for (size_t i = 0; i < run->device_count; i++)
        if (run->devices[i].id == id)
            return &run->devices[i];
    return NULL;
}

const struct gm_model_pool *gm_model_pool(const struct gm_model_run *run, int device)
{
    for (size_t i = 0; i < run->pool_count; i++) {
        const struct gm_model_moment *peak = gm_model_moment(run, run->pools[i].at_peak);
        if (run->pools[i].device == device && peak && peak->pool)
            return &run->pools[i];
    }
    return NULL;
}

const struct gm_model_moment *gm_model_moment(const struct gm_model_run *run, uint32_t number)
{
    return number == GM_NONE ? NULL : &run->moments[number];
}

/* The user's innermost frame in which a stack differs from one that reads the same and is not meant; NULL: there is
 * none. */
static const struct gm_frame *differing_frame(const struct gm_model *model, uint32_t number,
                                              uint32_t other)
{
    if (number == GM_NONE || other == GM_NONE)
        return NULL;
    const struct gm_stack *stack = gm_model_stack(model, number);
    const struct gm_stack *unlike = gm_model_stack(model, other);
    const struct gm_frame *frame = gm_stack_telling_frame(stack);
    if (!gm_frames_read_same(frame, gm_stack_telling_frame(unlike)))
        return NULL;
    const struct gm_frame *end = stack->frames + stack->count;
    const struct gm_frame *differs = gm_stack_difference(stack, unlike);
    while (differs && differs < end && differs->framework)
        differs++;
    return differs > frame && differs < end ? differs : NULL;
}

static const struct gm_frame *named_frame(const struct gm_model *model, uint32_t stack,
                                          uint32_t unlike)
{
    const struct gm_frame *differs = differing_frame(model, stack, unlike);
    if (stack == GM_NONE)
        return NULL;
    return differs && !differs->script ? differs
                                       : gm_stack_telling_frame(gm_model_stack(model, stack));
}

const struct gm_frame *gm_model_place_frame(const struct gm_model *model,
                                            const struct gm_model_place *place)
{
    return named_frame(model, place->stack, place->unlike);
}

const struct gm_frame *gm_model_finding_frame(const struct gm_model *model,
                                              const struct gm_model_finding *finding)
{
    return named_frame(model, finding->stack, finding->unlike);
}

const struct gm_frame *gm_model_finding_by(const struct gm_model *model,
                                           const struct gm_model_finding *finding)
{
    const struct gm_frame *differs = differing_frame(model, finding->stack, finding->unlike);
    return differs && differs->script ? differs : NULL;
}
