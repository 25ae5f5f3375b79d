/*
 * Reading the interpreter's memory: plainly, once its structures are known to be as expected.
 */
#ifndef GPUMEM_PRELOAD_STACK_PYTHON_PYTHON_MEMORY_H
#define GPUMEM_PRELOAD_STACK_PYTHON_PYTHON_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t gm_word(uint64_t object, unsigned offset)
{
    uint64_t value;
    memcpy(&value, (const char *)(uintptr_t)object + offset, sizeof(value));
    return value;
}

static inline int32_t gm_int(uint64_t object, unsigned offset)
{
    int32_t value;
    memcpy(&value, (const char *)(uintptr_t)object + offset, sizeof(value));
    return value;
}

static inline uint8_t gm_byte(uint64_t object, unsigned offset)
{
    return *((const uint8_t *)(uintptr_t)object + offset);
}

#endif
