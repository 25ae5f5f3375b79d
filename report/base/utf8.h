/* Which bytes are valid UTF-8. */
#ifndef GPUMEM_REPORT_BASE_UTF8_H
#define GPUMEM_REPORT_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>

/* Length of the character at `bytes`, of which `size` (1 at least) may be read; 0 if it is not
 * valid: cut, overlong, a surrogate, or beyond Unicode. */
size_t gm_utf8_length(const unsigned char *bytes, size_t size);

/* Whether a valid character beyond ASCII steers a terminal instead of being shown: U+0080..U+009F,
 * or one that changes the order or the lines of others: U+061C, U+200E, U+200F, U+2028..U+202E,
 * U+2066..U+2069. */
bool gm_utf8_is_control(const unsigned char *character, size_t length);

/* Columns that valid UTF-8 text takes on a terminal, taking each character for one. */
size_t gm_utf8_columns(const char *text);

#endif
