/* See memory.h. */
#include "base/memory.h"
#include "base/exit_code.h"
#include "base/limit.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void out_of_memory(void)
{
    fputs("gpumem: out of memory\n", stderr);
    exit(GM_EXIT_UNREADABLE);
}

/* Saturated: what is too much is too much. */
static void note(size_t count, size_t size)
{
    size_t bytes;
    gm_limits_note_memory(__builtin_mul_overflow(count, size, &bytes) ? SIZE_MAX : bytes);
}

void *gm_allocate(size_t count, size_t size)
{
    note(count, size);
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        out_of_memory();
    return memory;
}

void *gm_resize(void *memory, size_t count, size_t size)
{
    note(count, size);
    void *moved = reallocarray(memory, count ? count : 1, size);
    if (!moved)
        out_of_memory();
    return moved;
}

char *gm_copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    return memcpy(gm_allocate(size, 1), text, size);
}

size_t gm_next_capacity(size_t capacity, size_t needed)
{
    size_t next = capacity + capacity / 2 + 16;
    return next > needed ? next : needed;
}
