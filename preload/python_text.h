/*
 * The bytes of a Python str, without the interpreter's help: asking it for UTF-8 would allocate.
 */
#ifndef GPUMEM_PRELOAD_PYTHON_TEXT_H
#define GPUMEM_PRELOAD_PYTHON_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include "python_offsets.h"

/* Room for the longest string of a trace; what is longer is cut between two characters. */
#define GM_PYTHON_TEXT_MAX 4096u

struct gm_python_text {
    const char *bytes; /* UTF-8: in the str itself, or in `buffer` */
    size_t size;
    char buffer[GM_PYTHON_TEXT_MAX];
};

/*
 * Text of the str object at `object`, empty for what is not one. File names that are not valid
 * UTF-8 come out as on disk: Python keeps their odd bytes as lone surrogates.
 */
void gm_python_text(const struct gm_python_layout *layout, uint64_t object,
                    struct gm_python_text *text);

#endif
