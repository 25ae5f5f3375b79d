/*
 * What the interpreter tells debuggers about itself: from CPython 3.13 on, _PyRuntime begins with
 * _Py_DebugOffsets, a row of words. Which word is which differs from one minor version to the next.
 */
#ifndef GPUMEM_PRELOAD_STACK_PYTHON_PYTHON_TOLD_H
#define GPUMEM_PRELOAD_STACK_PYTHON_PYTHON_TOLD_H

#include "stack/python/python_offsets.h"
#include <stdbool.h>
#include <stdint.h>

enum { GM_PYTHON_TELLS_FROM = 13 };

/* Whether `told`, which may be NULL, is such a row. */
bool gm_python_tells(const uint64_t *told);

bool gm_python_tells_free_threaded(const uint64_t *told);

/*
 * Fills in what `layout`, a copy of the version's row, lacks. Returns NULL, or why what is told is
 * not believed: it is of another version, of one that is not released yet (its structures still
 * change), or an offset cannot be.
 */
const char *gm_python_take_told(const uint64_t *told, struct gm_python_layout *layout);

#endif
