/* Turns linker-level symbol names into the names people wrote.
 *
 * Guarantees: nothing is allocated, time and output are bounded whatever the name holds, and what
 * comes out is valid UTF-8 without control characters. Relies on a stack of 4 MiB or more, as the
 * main thread has (GM_DEMANGLE_INPUT_LIMIT says why). */
#ifndef GPUMEM_REPORT_SYMBOLS_DEMANGLE_H
#define GPUMEM_REPORT_SYMBOLS_DEMANGLE_H

#include <stdbool.h>
#include <stddef.h>

enum {
    /* Longest mangled name that is decoded, in bytes; a longer one is shown as it is, cut. The
     * decoder's stack grows with the input: the worst name of this length that we know of needs
     * 2 MiB. Names from heavily templated code do reach several thousand bytes. */
    GM_DEMANGLE_INPUT_LIMIT = 8192,
    /* Enough room for every name that gm_demangle writes, its NUL included. */
    GM_DEMANGLE_OUTPUT_SIZE = 4096
};

/* Writes the readable form of `name` to `text`, always NUL-terminated: C++ (Itanium), Rust legacy
 * (its hash suffix left out) and Rust v0 are decoded, any other name is copied. What does not fit
 * is cut and ends in "...". Returns whether the name was decoded. `size` must be 4 at least. */
bool gm_demangle(const char *name, char *text, size_t size);

#endif
