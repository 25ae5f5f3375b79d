/* Text from traces and files: untrusted until it is clean. */
#ifndef GPUMEM_REPORT_BASE_TEXT_H
#define GPUMEM_REPORT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a trace: untrusted, not terminated. */
struct gm_text {
    const char *bytes; /* never NULL */
    size_t size;
};

/* Length of the character at `bytes`, of which `size` (1 at least) may be read; 0 if it is not
 * valid: cut, overlong, a surrogate, or beyond Unicode. */
size_t gm_utf8_length(const unsigned char *bytes, size_t size);

/* Whether a valid character beyond ASCII steers a terminal instead of being shown: U+0080..U+009F,
 * or one that changes the order or the lines of others: U+061C, U+200E, U+200F, U+2028..U+202E,
 * U+2066..U+2069. */
bool gm_utf8_is_control(const unsigned char *character, size_t length);

/* Columns that valid UTF-8 text takes on a terminal, taking each character for one. */
size_t gm_utf8_columns(const char *text);

/* Replaces, in place, each control character, each byte that is not part of valid UTF-8, and what
 * only changes the order or the lines of other characters (U+202E ...) by '?', and the first
 * character of what a runner of CI may take for a command ("::" at the begin of a word, "##["), so
 * that no text from a file can steer a terminal or a runner, or break an export. */
void gm_clean_text(char *text);

/* Where a text begins behind the mark of the order of bytes that editors put before UTF-8. */
char *gm_behind_mark(char *text);

/* A clean, terminated copy; a NUL within the text becomes '?', too. The caller frees it. */
char *gm_clean_copy(struct gm_text text);

bool gm_text_equals(struct gm_text one, struct gm_text other);

/* Whether `part` stands somewhere in the text. */
bool gm_text_contains(struct gm_text text, const char *part);

/* The last component of a path. */
struct gm_text gm_base_name(struct gm_text path);

/* The same of a terminated path: where it begins. "" for NULL. */
const char *gm_name_behind_slash(const char *path);

/* Writes two digits for each byte, and a terminator; returns how many digits. */
size_t gm_write_hex(char *to, const uint8_t *bytes, size_t size);

bool gm_name_starts_with(const char *name, const char *start);

/* Whether a name has `ending` behind something else. */
bool gm_name_ends_with(const char *name, const char *ending);

#endif
