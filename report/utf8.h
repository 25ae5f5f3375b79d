/* Which bytes are valid UTF-8. */
#ifndef GM_REPORT_UTF8_H
#define GM_REPORT_UTF8_H

#include <stddef.h>

/* Length of the character at `bytes`, of which `size` (1 at least) may be read; 0 if it is not
 * valid: cut, overlong, a surrogate, or beyond Unicode. */
size_t gm_utf8_length(const unsigned char *bytes, size_t size);

/* Columns that valid UTF-8 text takes on a terminal, taking each character for one. */
size_t gm_utf8_columns(const char *text);

#endif
