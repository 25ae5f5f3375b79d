/*
 * Line numbers from the tables that CPython's compiler writes beside the bytecode.
 */
#ifndef GPUMEM_PRELOAD_STACK_PYTHON_PYTHON_LINES_H
#define GPUMEM_PRELOAD_STACK_PYTHON_PYTHON_LINES_H

#include <stddef.h>
#include <stdint.h>

enum gm_python_lines {
    GM_LINES_LNOTAB,    /* to 3.9, co_lnotab: (bytes of code, line delta) pairs */
    GM_LINES_RANGES,    /* 3.10, PEP 626: (bytes of code, line delta) pairs, with lineless ranges */
    GM_LINES_LOCATIONS, /* from 3.11, PEP 657: variable-length entries with columns */
};

/*
 * Line of the instruction at byte offset `lasti`; `first_line` for a frame that has not begun
 * (lasti below 0), 0 where the compiler gave none. Never reads beyond `size` bytes of the table.
 */
uint32_t gm_python_line(enum gm_python_lines format, const uint8_t *table, size_t size,
                        int32_t first_line, int32_t lasti);

#endif
