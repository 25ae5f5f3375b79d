/* See utf8.h. */
#include "base/utf8.h"

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
