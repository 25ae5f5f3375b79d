/* See pattern.h. */
#include "tools/gate/pattern.h"
#include <string.h>

struct pattern {
    const char *begin, *end; /* without what ties it to the ends of the text */
    bool at_begin, at_end;
};

static struct pattern parse(const char *text)
{
    size_t length = strlen(text);
    bool at_begin = length && text[0] == '^', at_end = length && text[length - 1] == '$';
    return (struct pattern){.begin = text + at_begin,
                            .end = text + length - (at_end && length > (size_t)at_begin),
                            .at_begin = at_begin,
                            .at_end = at_end};
}

const char *gm_pattern_piece(const char *pattern, const char *last, size_t *size)
{
    struct pattern parsed = parse(pattern);
    const char *piece = last ? last + *size : parsed.begin;
    while (piece < parsed.end && *piece == '*')
        piece++;
    const char *star = memchr(piece, '*', (size_t)(parsed.end - piece));
    *size = (size_t)((star ? star : parsed.end) - piece);
    return *size ? piece : NULL;
}

/* `*` is the only wildcard, so the leftmost place of each piece between two of them is as good as
 * any: nothing is ever tried again. memmem takes linear time. */
bool gm_pattern_matches(const char *pattern, const char *text)
{
    struct pattern parsed = parse(pattern);
    size_t left = strlen(text);
    pattern = parsed.begin;
    for (bool first = true;; first = false) {
        const char *star = memchr(pattern, '*', (size_t)(parsed.end - pattern));
        size_t size = (size_t)((star ? star : parsed.end) - pattern);
        bool is_last = star == NULL;
        if (size > left)
            return false;
        if (first && parsed.at_begin) {
            if (memcmp(text, pattern, size) != 0 || (is_last && parsed.at_end && size != left))
                return false;
            text += size;
            left -= size;
        } else if (is_last && parsed.at_end) {
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
