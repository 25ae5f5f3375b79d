/* See python_told.h. */
#include "stack/python/python_told.h"
#include <stddef.h>
#include <string.h>

enum { COOKIE = 0, VERSION = 1, FREE_THREADED = 2 }; /* words in their place in all versions */

enum { IN_THREAD, IN_FRAME, IN_CODE, STRUCTURES };

/* The word that tells an offset, and what we do with it. */
struct told_offset {
    uint8_t word;
    uint8_t structure; /* that the offset is in */
    uint8_t width;     /* of what is there, and its alignment; 0: end of the list */
    uint8_t kept;      /* in struct gm_python_layout */
};

struct told_words {
    uint8_t size[STRUCTURES]; /* the words that tell how large the structures are */
    struct told_offset offsets[12];
    struct told_offset copies[3]; /* in free-threaded builds also these */
    struct {
        uint8_t word;
        uint8_t expected; /* with the ordinary header */
    } facts[5];           /* what the code relies on */
};

#define KEPT(field) offsetof(struct gm_python_layout, field)

/* ob_type, ob_sval of bytes; state and length of str, and where its characters can start. */
#define FACTS(type, bytes, state, length, characters)                                              \
    {                                                                                              \
        {type, GM_PYTHON_TYPE}, {bytes, GM_PYTHON_BYTES_DATA}, {state, GM_PYTHON_STR_STATE},       \
            {length, GM_PYTHON_SIZE}, {characters, GM_PYTHON_STR_CHARACTERS},                      \
    }

static const struct told_words words_of_13 = {
    .size = {19, 28, 34},
    .offsets =
        {
            {23, IN_THREAD, 8, KEPT(thread_frame)},
            {29, IN_FRAME, 8, KEPT(frame_previous)},
            {30, IN_FRAME, 8, KEPT(frame_code)},
            {31, IN_FRAME, 8, KEPT(frame_position)},
            {33, IN_FRAME, 1, KEPT(frame_owner)},
            {35, IN_CODE, 8, KEPT(code_filename)},
            {37, IN_CODE, 8, KEPT(code_name)},
            {38, IN_CODE, 8, KEPT(code_lines)},
            {39, IN_CODE, 4, KEPT(code_first_line)},
            {43, IN_CODE, 2, KEPT(code_bytecode)},
        },
    .facts = FACTS(45, 66, 68, 69, 70),
};

static const struct told_words words_of_14 = {
    .size = {22, 31, 39},
    .offsets =
        {
            {26, IN_THREAD, 8, KEPT(thread_frame)},
            {32, IN_FRAME, 8, KEPT(frame_previous)},
            {33, IN_FRAME, 8, KEPT(frame_code)},
            {34, IN_FRAME, 8, KEPT(frame_position)},
            {36, IN_FRAME, 1, KEPT(frame_owner)},
            {40, IN_CODE, 8, KEPT(code_filename)},
            {42, IN_CODE, 8, KEPT(code_name)},
            {43, IN_CODE, 8, KEPT(code_lines)},
            {44, IN_CODE, 4, KEPT(code_first_line)},
            {48, IN_CODE, 2, KEPT(code_bytecode)},
        },
    .copies = {{38, IN_FRAME, 4, KEPT(frame_copy)}, {49, IN_CODE, 8, KEPT(code_copies)}},
    .facts = FACTS(51, 76, 78, 79, 80),
};

static const struct told_words words_of_15 = {
    .size = {22, 39, 47},
    .offsets =
        {
            {26, IN_THREAD, 8, KEPT(thread_frame)},
            {27, IN_THREAD, 8, KEPT(thread_base)},
            {40, IN_FRAME, 8, KEPT(frame_previous)},
            {41, IN_FRAME, 8, KEPT(frame_code)},
            {42, IN_FRAME, 8, KEPT(frame_position)},
            {44, IN_FRAME, 1, KEPT(frame_owner)},
            {48, IN_CODE, 8, KEPT(code_filename)},
            {50, IN_CODE, 8, KEPT(code_name)},
            {51, IN_CODE, 8, KEPT(code_lines)},
            {52, IN_CODE, 4, KEPT(code_first_line)},
            {56, IN_CODE, 2, KEPT(code_bytecode)},
        },
    .copies = {{46, IN_FRAME, 4, KEPT(frame_copy)}, {57, IN_CODE, 8, KEPT(code_copies)}},
    .facts = FACTS(59, 88, 90, 91, 92),
};

static const struct told_words *words_of(unsigned minor)
{
    return minor == 13   ? &words_of_13
           : minor == 14 ? &words_of_14
           : minor == 15 ? &words_of_15
                         : NULL;
}

bool gm_python_tells(const uint64_t *told)
{
    return told && memcmp(&told[COOKIE], "xdebugpy", 8) == 0 && told[FREE_THREADED] <= 1;
}

bool gm_python_tells_free_threaded(const uint64_t *told)
{
    return gm_python_tells(told) && told[FREE_THREADED];
}

/* PY_VERSION_HEX: major, minor, micro, then four bits of level and four of serial. */
static const char *refuse_version(uint64_t version, unsigned minor)
{
    enum { CANDIDATE = 0xc }; /* from which on a version's structures stay as they are */
    if (version >> 16 != (0x300u | minor))
        return "validation failed: the interpreter tells another version";
    if ((version >> 4 & 0xf) < CANDIDATE)
        return "not released yet: an alpha or beta version";
    return NULL;
}

/* The bytes of its structure that the `told` offsets up to now lie in, so that none overlap. */
struct room {
    uint64_t size;
    uint8_t used[512];
};

/* Keeps an offset if it can be one. */
static bool take_offset(const uint64_t *told, const struct told_offset *offset, struct room *room,
                        struct gm_python_layout *layout)
{
    const uint64_t value = told[offset->word];
    const uint64_t end = value + offset->width;
    if (end < value || end > room->size || end > sizeof(room->used) || value % offset->width)
        return false;
    for (uint64_t at = value; at < end; at++)
        if (room->used[at]++)
            return false;
    const uint16_t kept = (uint16_t)value;
    memcpy((char *)layout + offset->kept, &kept, sizeof(kept));
    return true;
}

static bool take_all(const uint64_t *told, const struct told_offset *offsets,
                     struct room rooms[STRUCTURES], struct gm_python_layout *layout)
{
    for (; offsets->width; offsets++)
        if (!take_offset(told, offsets, &rooms[offsets->structure], layout))
            return false;
    return true;
}

const char *gm_python_take_told(const uint64_t *told, struct gm_python_layout *layout)
{
    const struct told_words *words = words_of(layout->minor);
    if (!gm_python_tells(told) || !words)
        return "validation failed: the interpreter does not tell its offsets";
    const char *why = refuse_version(told[VERSION], layout->minor);
    if (why)
        return why;
    struct room rooms[STRUCTURES] = {{0}};
    for (unsigned i = 0; i < STRUCTURES; i++)
        rooms[i].size = told[words->size[i]];
    memset(rooms[IN_THREAD].used, 1, 8); /* 0 stands for none */
    memset(rooms[IN_CODE].used, 1, layout->header + GM_PYTHON_SIZE + 8u);
    bool holds = take_all(told, words->offsets, rooms, layout) &&
                 (layout->chain != GM_CHAIN_COPIES || take_all(told, words->copies, rooms, layout));
    for (unsigned i = 0; i < sizeof(words->facts) / sizeof(words->facts[0]); i++)
        holds = holds && told[words->facts[i].word] == words->facts[i].expected + layout->header;
    layout->str_ascii = GM_PYTHON_STR_CHARACTERS + layout->header;
    layout->str_compact = layout->str_ascii + 16; /* utf8_length and utf8 stand between */
    return holds ? NULL : "validation failed: the interpreter tells offsets that cannot be";
}
