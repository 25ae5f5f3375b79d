/*
 * The bytes of a Python str, without the interpreter's help: asking it for UTF-8 would allocate.
 */
#ifndef GPUMEM_PRELOAD_STACK_PYTHON_PYTHON_TEXT_H
#define GPUMEM_PRELOAD_STACK_PYTHON_PYTHON_TEXT_H

#include "stack/python/python_memory.h"
#include "stack/python/python_offsets.h"
#include <stddef.h>
#include <stdint.h>

/* Room for the longest string of a trace; what is longer is cut between two characters. */
#define GM_PYTHON_TEXT_MAX 4096u

struct gm_python_text {
    const char *bytes; /* UTF-8: in the str itself, or in `buffer` */
    size_t size;
    char buffer[GM_PYTHON_TEXT_MAX];
};

/*
 * Text of the str object at `object`, empty for what is not one. File names that are not valid
 * UTF-8 come out as on disk: Python keeps their odd bytes as lone surrogates.
 */
void gm_python_text(const struct gm_python_layout *layout, uint64_t object,
                    struct gm_python_text *text);

/* The state of a str, from the lowest bit of its kind. */
enum {
    GM_PYTHON_KIND_MASK = 7,
    GM_PYTHON_COMPACT = 1 << 3,
    GM_PYTHON_ASCII = 1 << 4,
};

static inline uint32_t gm_python_str_state(const struct gm_python_layout *layout, uint64_t object)
{
    return (uint32_t)gm_int(object + layout->header, GM_PYTHON_STR_STATE) >> layout->str_kind;
}

/* `data` comes behind a header of more than 8 bytes. */
static inline uint64_t gm_python_ends_mark(uint64_t object, unsigned data, uint64_t size)
{
    uint64_t end = gm_word(object + size, data - 8);
    return size >= 8 ? end ^ (size << 56) ^ (gm_word(object, data) << 1) : end;
}

/*
 * Marks: what tells a str or bytes object from another one at its address, in a few loads. That is
 * its hash where Python has asked for it, which it has of names and most line tables; else its size
 * and both ends, so that two which differ only in between are taken for one. For versions whose
 * code objects have no number, all with the ordinary header.
 */
static inline uint64_t gm_python_bytes_mark(uint64_t object)
{
    uint64_t hash = gm_word(object, GM_PYTHON_HASH);
    return hash != UINT64_MAX
               ? hash
               : gm_python_ends_mark(object, GM_PYTHON_BYTES_DATA, gm_word(object, GM_PYTHON_SIZE));
}

static inline uint64_t gm_python_str_mark(const struct gm_python_layout *layout, uint64_t object)
{
    uint64_t hash = gm_word(object, GM_PYTHON_HASH), size = gm_word(object, GM_PYTHON_SIZE);
    if (hash != UINT64_MAX)
        return hash;
    uint32_t state = gm_python_str_state(layout, object);
    if (!(state & GM_PYTHON_COMPACT)) /* the text is elsewhere */
        return size;
    unsigned data = state & GM_PYTHON_ASCII ? layout->str_ascii : layout->str_compact;
    return gm_python_ends_mark(object, data, size);
}

#endif
