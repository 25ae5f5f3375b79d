/*
 * What the hand-written answers share. They are compiled together with the generated stubs of one
 * library, without NVIDIA's headers, so that one text serves every version: the declarations below
 * and in answers/ are those parts of the public interfaces that an answer needs.
 */
#ifndef GPUMEM_SIM_DRY_ANSWERS_COMMON_H
#define GPUMEM_SIM_DRY_ANSWERS_COMMON_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Marks a function that replaces the generated one; stub_library.py looks for the macro. */
#define ANSWER(name, ...)                                                                          \
    long name(__VA_ARGS__);                                                                        \
    long name(__VA_ARGS__)
#define ANSWER_TEXT(name, ...)                                                                     \
    const char *name(__VA_ARGS__);                                                                 \
    const char *name(__VA_ARGS__)

/* What a program gets as a handle: memory of its own, which it may only pass on. Never given back:
 * some bytes for each object that a program makes. */
static inline void *gpumem_stub_handle(void)
{
    return calloc(1, 256);
}

/* One line for the launcher. */
static inline void gpumem_stub_write(const char *what)
{
    const char *status = getenv("GPUMEM_DRY_STATUS");
    FILE *file = status ? fopen(status, "ae") : NULL;
    if (file) {
        fprintf(file, "%s\n", what);
        fclose(file);
    }
}

/* The same, once. */
static inline void gpumem_stub_tell(const char *what)
{
    static int told;
    if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED))
        gpumem_stub_write(what);
}

/* major, minor, patch by libraryPropertyType */
static inline long gpumem_stub_property(int type, int *value, int major, int minor, int patch)
{
    if (value)
        *value = type == 0 ? major : type == 1 ? minor : patch;
    return 0;
}

#endif
