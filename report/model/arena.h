/* Memory that is freed at once, and texts of which each stands there once. */
#ifndef GPUMEM_REPORT_MODEL_ARENA_H
#define GPUMEM_REPORT_MODEL_ARENA_H

#include "base/map.h"
#include "base/text.h"
#include <stddef.h>

/* All zero: empty. */
struct gm_arena {
    struct gm_arena_chunk *chunks; /* latest first */
    struct gm_map by_hash;         /* of a text -> number */
    struct gm_text *texts;
    size_t text_count;
    size_t text_capacity;
};

/* `count` zeroed elements of `size` bytes, which live as long as the arena. Never NULL. */
void *gm_arena_allocate(struct gm_arena *arena, size_t count, size_t size);

/* A copy of `bytes` bytes. */
void *gm_arena_copy(struct gm_arena *arena, const void *memory, size_t bytes);

/* The text as the arena keeps it: terminated, and equal texts are one. */
struct gm_text gm_arena_text(struct gm_arena *arena, struct gm_text text);

/* The same for a string; NULL stays NULL. */
const char *gm_arena_string(struct gm_arena *arena, const char *text);

void gm_arena_free(struct gm_arena *arena);

#endif
