/* See memory.h. */
#include "base/memory.h"
#include "base/exit_code.h"
#include "base/limit.h"
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define LARGE_PAGE ((size_t)2 << 20)
#define LARGE (4 * LARGE_PAGE) /* what is smaller is not rounded up */

static _Noreturn void out_of_memory(void)
{
    fputs("gpumem: out of memory\n", stderr);
    exit(GM_EXIT_UNREADABLE);
}

/* Saturated: what is too much is too much. `there`: bytes of it that there are already. */
static void note_allocation(size_t count, size_t size, size_t there)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        bytes = SIZE_MAX;
    gm_limits_note_memory(bytes > there ? bytes - there : 0);
}

/* What is looked up all over is worth few, large pages. The kernel may say no. */
static void *ask_for_large_pages(void *memory, size_t bytes)
{
    uintptr_t start = ((uintptr_t)memory + LARGE_PAGE - 1) & ~(uintptr_t)(LARGE_PAGE - 1);
    uintptr_t end = ((uintptr_t)memory + bytes) & ~(uintptr_t)(LARGE_PAGE - 1);
    int saved = errno;
    if (start < end)
        madvise((void *)start, end - start, MADV_HUGEPAGE);
    errno = saved;
    return memory;
}

void *gm_allocate(size_t count, size_t size)
{
    note_allocation(count, size, 0);
    void *memory = calloc(count ? count : 1, size);
    if (!memory)
        out_of_memory();
    return count * size < LARGE ? memory : ask_for_large_pages(memory, count * size);
}

void *gm_allocate_pages(size_t size)
{
    note_allocation(size, 1, 0);
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        out_of_memory();
    return memory;
}

void gm_give_back_pages(void *memory, size_t size)
{
    uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    uintptr_t start = ((uintptr_t)memory + page - 1) & ~(page - 1);
    uintptr_t end = ((uintptr_t)memory + size) & ~(page - 1);
    if (start < end)
        madvise((void *)start, end - start, MADV_DONTNEED);
}

void *gm_resize(void *memory, size_t count, size_t size)
{
    note_allocation(count, size, malloc_usable_size(memory));
    void *moved = reallocarray(memory, count ? count : 1, size);
    if (!moved)
        out_of_memory();
    return count * size < LARGE ? moved : ask_for_large_pages(moved, count * size);
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
