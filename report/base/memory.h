/* Memory of the offline tool: running out of it ends the tool with a clear line, so no caller
 * checks. */
#ifndef GPUMEM_REPORT_BASE_MEMORY_H
#define GPUMEM_REPORT_BASE_MEMORY_H

#include <stddef.h>

/* `count` zeroed elements of `size` bytes. Never NULL. */
void *gm_allocate(size_t count, size_t size) __attribute__((returns_nonnull));

/* `size` zeroed bytes, 1 at least, in pages of their own, which take memory once they are written to; munmap() frees
 * them. Never NULL. */
void *gm_allocate_pages(size_t size) __attribute__((returns_nonnull));

/* Gives the kernel back the whole pages of what nobody reads again before it is freed or written to. */
void gm_give_back_pages(void *memory, size_t size);

/* Resizes to `count` elements; elements beyond the old ones are not initialized. Never NULL. */
void *gm_resize(void *memory, size_t count, size_t size) __attribute__((returns_nonnull));

/* A copy of a string. */
char *gm_copy_text(const char *text);

/* Makes room for `needed` elements in a growing array of the caller's. */
#define GM_RESERVE(array, capacity, needed)                                                        \
    do {                                                                                           \
        if (!(array) || (size_t)(needed) > (size_t)(capacity)) {                                   \
            size_t gm_new_capacity = gm_next_capacity((capacity), (needed));                       \
            (array) = gm_resize((array), gm_new_capacity, sizeof(*(array)));                       \
            (capacity) = gm_new_capacity;                                                          \
        }                                                                                          \
    } while (0)

/* Adds a value at the end of such an array. */
#define GM_APPEND(array, capacity, count, ...)                                                     \
    do {                                                                                           \
        GM_RESERVE(array, capacity, (count) + 1);                                                  \
        (array)[(count)++] = __VA_ARGS__;                                                          \
    } while (0)

/* At least `needed`, and far enough beyond `capacity` that growing stays linear in total. */
size_t gm_next_capacity(size_t capacity, size_t needed);

#endif
