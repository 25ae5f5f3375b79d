/* See assert.h. Not part of the library that users get. */
#include "base/assert.h"
#include <stdio.h>
#include <stdlib.h>

void gm_recorder_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "gpumem: %s:%d: does not hold: %s\n", file, line, condition);
    abort();
}
