/* See pattern.h. */
#include "gate/pattern.h"
#include <string.h>

/* `*` is the only wildcard, so the leftmost place of each piece between two of them is as good as
 * any: nothing is ever tried again. memmem takes linear time. */
bool gm_pattern_matches(const char *pattern, const char *text)
{
    size_t length = strlen(pattern), left = strlen(text);
    bool at_begin = length && pattern[0] == '^', at_end = length && pattern[length - 1] == '$';
    const char *end = pattern + length - (at_end && length > (size_t)at_begin);
    pattern += at_begin;
    for (bool first = true;; first = false) {
        const char *star = memchr(pattern, '*', (size_t)(end - pattern));
        size_t size = (size_t)((star ? star : end) - pattern);
        bool is_last = star == NULL;
        if (size > left)
            return false;
        if (first && at_begin) {
            if (memcmp(text, pattern, size) != 0 || (is_last && at_end && size != left))
                return false;
            text += size;
            left -= size;
        } else if (is_last && at_end) {
            return memcmp(text + left - size, pattern, size) == 0;
        } else if (size) {
            const char *found = memmem(text, left, pattern, size);
            if (!found)
                return false;
            left -= (size_t)(found - text) + size;
            text = found + size;
        }
        if (is_last)
            return true;
        pattern = star + 1;
    }
}
