/* See python_text.h. */
#include "stack/python/python_text.h"
#include "stack/python/python_memory.h"
#include <string.h>

static uint32_t character(const char *data, unsigned kind, uint64_t index)
{
    uint32_t value = 0; /* little endian, as CPython's own arrays are on these machines */
    memcpy(&value, data + index * kind, kind);
    return value;
}

/* Writes one character, at most four bytes; returns how many. */
static unsigned encode_character(uint32_t character, char *out)
{
    if (character >= 0xdc80 && character <= 0xdcff) { /* a byte that was not UTF-8 in a file name */
        out[0] = (char)(character - 0xdc00);
        return 1;
    }
    if (character > 0x10ffff || (character >= 0xd800 && character <= 0xdfff))
        character = 0xfffd;
    if (character < 0x80) {
        out[0] = (char)character;
        return 1;
    }
    unsigned size = character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;
    for (unsigned at = size; --at > 0; character >>= 6)
        out[at] = (char)(0x80 | (character & 0x3f));
    out[0] = (char)((0xf00u >> size & 0xf0) | character);
    return size;
}

void gm_python_text(const struct gm_python_layout *layout, uint64_t object,
                    struct gm_python_text *text)
{
    text->bytes = text->buffer;
    text->size = 0;
    uint32_t state = gm_python_str_state(layout, object);
    uint64_t length = gm_word(object + layout->header, GM_PYTHON_SIZE);
    unsigned kind = state & GM_PYTHON_KIND_MASK;
    bool in_place = state & GM_PYTHON_COMPACT;
    const char *data;
    if (in_place)
        data = (const char *)(uintptr_t)object +
               (state & GM_PYTHON_ASCII ? layout->str_ascii : layout->str_compact);
    else
        data = (const char *)(uintptr_t)gm_word(object, layout->str_compact);
    if ((kind != 1 && kind != 2 && kind != 4) || !data)
        return;
    if (state & GM_PYTHON_ASCII) {
        text->bytes = data;
        text->size = length;
        return;
    }
    for (uint64_t i = 0; i < length && text->size + 4 <= sizeof(text->buffer); i++)
        text->size += encode_character(character(data, kind, i), text->buffer + text->size);
}
