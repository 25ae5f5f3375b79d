/* Patterns of suppressions: `*` stands for any text, `^` and `$` at the ends tie the pattern to the
 * ends of the text; without them it may stand anywhere, as LeakSanitizer has it. */
#ifndef GPUMEM_REPORT_GATE_PATTERN_H
#define GPUMEM_REPORT_GATE_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

/* Takes time in proportion to the text. */
bool gm_pattern_matches(const char *pattern, const char *text);

/* The text between two wildcards of the pattern that comes after the piece `last`, the first one for
 * NULL: part of all texts that match. Sets `size`, bytes; NULL where there is none. */
const char *gm_pattern_piece(const char *pattern, const char *last, size_t *size);

#endif
