/* Patterns of suppressions: `*` stands for any text, `^` and `$` at the ends tie the pattern to the
 * ends of the text; without them it may stand anywhere, as LeakSanitizer has it. */
#ifndef GPUMEM_REPORT_GATE_PATTERN_H
#define GPUMEM_REPORT_GATE_PATTERN_H

#include <stdbool.h>

/* Takes time in proportion to the text. */
bool gm_pattern_matches(const char *pattern, const char *text);

#endif
