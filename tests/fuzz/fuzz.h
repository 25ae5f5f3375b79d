/* What the fuzz targets share. Each reads one input; fuzz_main.c makes it a program without a fuzzer. */
#ifndef GPUMEM_TESTS_FUZZ_H
#define GPUMEM_TESTS_FUZZ_H

#include "base/memory.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What must hold for any input. */
static inline void demand(bool condition)
{
    if (!condition)
        abort();
}

/* The input as a text of lines, which the caller frees. */
static inline char *text_of(const uint8_t *data, size_t size)
{
    char *text = gm_allocate(size + 1, 1); /* with a NUL behind it */
    if (size)
        memcpy(text, data, size);
    for (size_t i = 0; i < size; i++)
        if (!text[i])
            text[i] = '\n';
    return text;
}

/* At most `max` lines of the text, which is changed. Returns their number. */
static inline size_t split(char *text, char **lines, size_t max)
{
    size_t count = 0;
    for (char *rest = text, *line; count < max && (line = strsep(&rest, "\n"));)
        lines[count++] = line;
    return count;
}

#endif
