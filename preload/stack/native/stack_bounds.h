/*
 * Where stacks lie and whether memory may be read, by raw system calls. errno is preserved.
 */
#ifndef GPUMEM_PRELOAD_STACK_NATIVE_STACK_BOUNDS_H
#define GPUMEM_PRELOAD_STACK_NATIVE_STACK_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The stack that the calling thread was started on, as [*low, *high): everything above the stack
 * pointer in it stays readable while the thread lives. Slow (reads /proc/self/maps). False when it
 * cannot be told.
 */
bool gm_stack_of_thread(uint64_t *low, uint64_t *high);

/* Whether the page that holds `address` can be read now. */
bool gm_page_is_readable(uint64_t address);

#endif
