/* See text.h. */
#include "base/text.h"
#include "base/memory.h"
#include <string.h>

size_t gm_utf8_length(const unsigned char *bytes, size_t size)
{
    unsigned char first = bytes[0];
    size_t length = first < 0x80                     ? 1
                    : first >= 0xc2 && first <= 0xdf ? 2
                    : first >= 0xe0 && first <= 0xef ? 3
                    : first >= 0xf0 && first <= 0xf4 ? 4
                                                     : 0;
    if (length == 0 || length > size)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((bytes[i] & 0xc0) != 0x80)
            return 0;
    /* The second byte rules out overlong forms, surrogates and what lies beyond U+10FFFF. */
    if ((first == 0xe0 && bytes[1] < 0xa0) || (first == 0xed && bytes[1] > 0x9f) ||
        (first == 0xf0 && bytes[1] < 0x90) || (first == 0xf4 && bytes[1] > 0x8f))
        return 0;
    return length;
}

size_t gm_utf8_columns(const char *text)
{
    size_t columns = 0;
    for (; *text; text++)
        columns += ((unsigned char)*text & 0xc0) != 0x80;
    return columns;
}

bool gm_utf8_is_control(const unsigned char *character, size_t length)
{
    if (length == 2)
        return (character[0] == 0xc2 && character[1] < 0xa0) ||
               (character[0] == 0xd8 && character[1] == 0x9c);
    if (length != 3 || character[0] != 0xe2)
        return false;
    if (character[1] == 0x80)
        return character[2] == 0x8e || character[2] == 0x8f ||
               (character[2] >= 0xa8 && character[2] <= 0xae);
    return character[1] == 0x81 && character[2] >= 0xa6 && character[2] <= 0xa9;
}

/* Runners of CI take a line for a command that begins with "::" behind blanks, and, of an older form, where "##[" stands. Any
 * word may come to begin a line. */
static bool begins_command(const char *text, const char *at)
{
    bool begins_word = at == text || at[-1] == ' ';
    return (begins_word && at[0] == ':' && at[1] == ':') || strncmp(at, "##[", 3) == 0;
}

void gm_clean_text(char *text)
{
    unsigned char *at = (unsigned char *)text, *end = at + strlen(text);
    while (at < end) {
        size_t length = gm_utf8_length(at, (size_t)(end - at));
        if (length == 0 || *at < 0x20 || *at == 0x7f) {
            *at = '?';
            length = 1;
        } else if (gm_utf8_is_control(at, length)) {
            memset(at, '?', length);
        } else if (begins_command(text, (const char *)at)) {
            *at = '?';
        }
        at += length;
    }
}

char *gm_clean_copy(struct gm_text text)
{
    char *copy = gm_allocate(text.size + 1, 1);
    memcpy(copy, text.bytes, text.size);
    for (size_t i = 0; i < text.size; i++)
        if (copy[i] == 0)
            copy[i] = '?';
    gm_clean_text(copy);
    return copy;
}

bool gm_text_equals(struct gm_text one, struct gm_text other)
{
    return one.size == other.size && memcmp(one.bytes, other.bytes, one.size) == 0;
}

bool gm_text_contains(struct gm_text text, const char *part)
{
    return memmem(text.bytes, text.size, part, strlen(part)) != NULL;
}

struct gm_text gm_base_name(struct gm_text path)
{
    const char *slash = memrchr(path.bytes, '/', path.size);
    if (!slash)
        return path;
    size_t skip = (size_t)(slash + 1 - path.bytes);
    return (struct gm_text){path.bytes + skip, path.size - skip};
}

const char *gm_name_behind_slash(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    return slash ? slash + 1 : path ? path : "";
}

size_t gm_write_hex(char *to, const uint8_t *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; i++) {
        to[2 * i] = digits[bytes[i] >> 4];
        to[2 * i + 1] = digits[bytes[i] & 15];
    }
    to[2 * size] = 0;
    return 2 * size;
}

bool gm_name_starts_with(const char *name, const char *start)
{
    return strncmp(name, start, strlen(start)) == 0;
}

bool gm_name_ends_with(const char *name, const char *ending)
{
    size_t length = strlen(name), size = strlen(ending);
    return length > size && strcmp(name + length - size, ending) == 0;
}

char *gm_behind_mark(char *text)
{
    return text + (gm_name_starts_with(text, "\xEF\xBB\xBF") ? 3 : 0);
}
