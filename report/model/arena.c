/* See arena.h. */
#include "model/arena.h"
#include "base/memory.h"
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_SIZE ((size_t)65536)

struct gm_arena_chunk {
    struct gm_arena_chunk *next;
    size_t used;
    size_t size;
    alignas(max_align_t) unsigned char bytes[];
};

static struct gm_arena_chunk *add_chunk(struct gm_arena *arena, size_t least)
{
    size_t size = least > CHUNK_SIZE ? least : CHUNK_SIZE;
    struct gm_arena_chunk *chunk = gm_allocate(1, sizeof(*chunk) + size);
    chunk->size = size;
    chunk->next = arena->chunks;
    return arena->chunks = chunk;
}

void *gm_arena_allocate(struct gm_arena *arena, size_t count, size_t size)
{
    size_t align = alignof(max_align_t);
    if (size && count > (SIZE_MAX - align) / size)
        count = SIZE_MAX / size / 2; /* which there is not: gm_allocate ends with a clear line */
    size_t bytes = (count * size + align - 1) / align * align;
    struct gm_arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->size - chunk->used < bytes)
        chunk = add_chunk(arena, bytes);
    void *memory = chunk->bytes + chunk->used;
    chunk->used += bytes;
    return memory;
}

void *gm_arena_copy(struct gm_arena *arena, const void *memory, size_t bytes)
{
    void *copy = gm_arena_allocate(arena, bytes, 1);
    if (bytes)
        memcpy(copy, memory, bytes);
    return copy;
}

/* FNV-1a. */
static uint64_t hash_of(struct gm_text text)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < text.size; i++)
        hash = (hash ^ (unsigned char)text.bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static bool is_same_text(struct gm_text one, struct gm_text other)
{
    return one.size == other.size && (!one.size || memcmp(one.bytes, other.bytes, one.size) == 0);
}

struct gm_text gm_arena_text(struct gm_arena *arena, struct gm_text text)
{
    uint64_t hash = hash_of(text);
    uint32_t known;
    for (; (known = gm_map_get(&arena->by_hash, hash)) != GM_NONE; hash++)
        if (is_same_text(arena->texts[known], text))
            return arena->texts[known];
    char *copy = gm_arena_allocate(arena, text.size + 1, 1);
    if (text.size)
        memcpy(copy, text.bytes, text.size);
    GM_RESERVE(arena->texts, arena->text_capacity, arena->text_count + 1);
    arena->texts[arena->text_count] = (struct gm_text){copy, text.size};
    gm_map_set(&arena->by_hash, hash, (uint32_t)arena->text_count);
    return arena->texts[arena->text_count++];
}

const char *gm_arena_string(struct gm_arena *arena, const char *text)
{
    return text ? gm_arena_text(arena, (struct gm_text){text, strlen(text)}).bytes : NULL;
}

void gm_arena_free(struct gm_arena *arena)
{
    for (struct gm_arena_chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    gm_map_free(&arena->by_hash);
    free(arena->texts);
    *arena = (struct gm_arena){0};
}
