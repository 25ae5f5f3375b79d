/* Frames, stacks and places, each of which stands in a model once, and the memory of the model. */
#ifndef GPUMEM_REPORT_MODEL_TABLES_H
#define GPUMEM_REPORT_MODEL_TABLES_H

#include "model/arena.h"
#include "model/model.h"

/* The ids of stacks, made for all of an outline when one is asked for. */
struct gm_model_ids {
    struct gm_model_outlined {
        uint64_t outline;
        uint32_t stack;
    } * by_outline;    /* all stacks */
    uint64_t *of;      /* [stack]; 0: not made yet */
    uint64_t *outline; /* [stack] */
    size_t count;      /* stacks that the model had then */
};

struct gm_model_tables {
    struct gm_arena arena;
    struct gm_model_ids ids;

    /* Where stacks come from that are not named yet, and what events are replayed from; NULL of
     * models that are made of others. */
    struct gm_stacks *names;
    const struct gm_analysis *analysis;

    struct gm_model_stack_entry *stacks;
    size_t stack_count;
    size_t stack_capacity;
    struct gm_map stack_by_id;     /* id and API -> number */
    struct gm_map stack_by_frames; /* hash -> number */

    struct gm_frame *frames;
    size_t frame_count;
    size_t frame_capacity;
    struct gm_map frame_by_hash;
    struct gm_model_named_frame
        *named; /* frames as `names` gave them: compared by their pointers */
    size_t named_count;
    size_t named_capacity;
    struct gm_map named_by_hash;

    struct gm_model_place *places;
    size_t place_capacity;
    struct gm_map place_by_hash;

    struct gm_model_run *runs;
    size_t run_capacity;
};

struct gm_model *gm_model_new(void);

/* Adds a run, all zero. Runs added before can move. */
struct gm_model_run *gm_model_add_run(struct gm_model *model);

/* The number of the stack of that id in the trace, for a call of API function number `api`. */
uint32_t gm_model_add_trace_stack(struct gm_model *model, uint32_t id, uint16_t api);

/* The number of a stack with these frames, which are copied. */
uint32_t gm_model_add_stack(struct gm_model *model, const struct gm_stack *stack);

/* The number of a place; its names are copied. */
uint32_t gm_model_add_place(struct gm_model *model, const struct gm_model_place *place);

size_t gm_model_stack_count(const struct gm_model *model);

/* The outline of a stack (stacks.h); of models that are made of others all have one. */
uint64_t gm_model_outline(const struct gm_model *model, uint32_t number);

/* Zeroed elements in the memory of the model. */
#define GM_MODEL_ARRAY(model, type, count)                                                         \
    ((type *)gm_arena_allocate(&(model)->tables->arena, (count), sizeof(type)))

#endif
