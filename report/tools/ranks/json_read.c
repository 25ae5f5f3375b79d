/* See json_read.h. */
#include "tools/ranks/json_read.h"
#include "base/memory.h"
#include "base/text.h"
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 16u
#define VALUES_MAX 200000u

struct reader {
    const char *at;
    const char *end;
    size_t values; /* so far */
    bool is_bad;
};

static void skip_blanks(struct reader *reader)
{
    while (reader->at < reader->end && strchr(" \t\r\n", *reader->at) && *reader->at)
        reader->at++;
}

/* The next character that is no blank, if it is this one. */
static bool take_character(struct reader *reader, char wanted)
{
    skip_blanks(reader);
    if (reader->at == reader->end || *reader->at != wanted)
        return false;
    reader->at++;
    return true;
}

static bool take_word(struct reader *reader, const char *word)
{
    size_t size = strlen(word);
    if ((size_t)(reader->end - reader->at) < size || memcmp(reader->at, word, size) != 0)
        return false;
    reader->at += size;
    return true;
}

/* ---- text ------------------------------------------------------------------------------------ */

static unsigned hex_digit(char character)
{
    static const char digits[] = "0123456789abcdef";
    const char *at = character ? strchr(digits, character | 0x20) : NULL;
    return at ? (unsigned)(at - digits) : 16;
}

/* The four digits of \uXXXX; false: they are none. */
static bool take_code(struct reader *reader, unsigned *code)
{
    *code = 0;
    if (reader->end - reader->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        unsigned digit = hex_digit(*reader->at++);
        if (digit > 15)
            return false;
        *code = *code * 16 + digit;
    }
    return true;
}

static char *put_utf8(char *to, unsigned code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

static char *take_escape(struct reader *reader, char *to)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    char name = reader->at < reader->end ? *reader->at++ : 0;
    const char *found = name ? strchr(names, name) : NULL;
    unsigned code, low;
    if (found) {
        *to++ = values[found - names];
        return to;
    }
    if (name != 'u' || !take_code(reader, &code)) {
        reader->is_bad = true;
        return to;
    }
    if (code >= 0xd800 && code < 0xdc00) {
        if (!take_word(reader, "\\u") || !take_code(reader, &low) || low < 0xdc00 || low > 0xdfff) {
            reader->is_bad = true;
            return to;
        }
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    return put_utf8(to, code ? code : '?'); /* a NUL would end the text */
}

/* Controls become '?', a line feed stays. */
static void clean(char *text)
{
    for (char *line = text; line;) {
        char *end = strchr(line, '\n');
        if (end)
            *end = 0;
        gm_clean_text(line);
        if (end)
            *end = '\n';
        line = end ? end + 1 : NULL;
    }
}

/* Behind the opening quote. */
static char *read_text(struct reader *reader)
{
    const char *end = reader->at;
    while (end < reader->end && *end != '"')
        end += *end == '\\' && end + 1 < reader->end ? 2 : 1;
    if (end >= reader->end) {
        reader->is_bad = true;
        return NULL;
    }
    /* No escape is shorter than what it stands for. */
    char *text = gm_allocate((size_t)(end - reader->at) + 1, 1), *to = text;
    while (!reader->is_bad && reader->at < end) {
        char character = *reader->at++;
        if (character == '\\')
            to = take_escape(reader, to);
        else
            *to++ = character ? character : '?';
    }
    *to = 0;
    reader->at = end + 1;
    clean(text);
    return text;
}

/* ---- values ---------------------------------------------------------------------------------- */

static void read_value(struct reader *reader, struct gm_value *value, unsigned depth);

static void read_json_number(struct reader *reader, struct gm_value *value)
{
    bool is_negative = take_word(reader, "-");
    uint64_t number = 0;
    const char *start = reader->at;
    for (; reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9'; reader->at++) {
        unsigned digit = (unsigned)(*reader->at - '0');
        number = number > ((uint64_t)INT64_MAX - digit) / 10 ? INT64_MAX : number * 10 + digit;
    }
    value->kind = GM_VALUE_NUMBER;
    value->number = is_negative ? -(int64_t)number : (int64_t)number;
    reader->is_bad |= reader->at == start;
}

static void read_members(struct reader *reader, struct gm_value *value, char end, unsigned depth)
{
    if (take_character(reader, end))
        return;
    do {
        char *key = NULL;
        if (end == '}') {
            key = take_character(reader, '"') ? read_text(reader) : NULL;
            reader->is_bad |= !key || !take_character(reader, ':');
        }
        GM_RESERVE(value->members, value->capacity, value->count + 1);
        struct gm_value *member = &value->members[value->count++];
        *member = (struct gm_value){.key = key};
        if (!reader->is_bad)
            read_value(reader, member, depth + 1);
    } while (!reader->is_bad && take_character(reader, ','));
    reader->is_bad |= !take_character(reader, end);
}

static void read_value(struct reader *reader, struct gm_value *value, unsigned depth)
{
    skip_blanks(reader);
    if (depth > DEPTH_MAX || ++reader->values > VALUES_MAX || reader->at == reader->end) {
        reader->is_bad = true;
    } else if (take_character(reader, '{')) {
        value->kind = GM_VALUE_OBJECT;
        read_members(reader, value, '}', depth);
    } else if (take_character(reader, '[')) {
        value->kind = GM_VALUE_ARRAY;
        read_members(reader, value, ']', depth);
    } else if (take_character(reader, '"')) {
        value->kind = GM_VALUE_TEXT;
        value->text = read_text(reader);
    } else if (take_word(reader, "true") || take_word(reader, "false")) {
        value->kind = GM_VALUE_BOOL;
        value->number = reader->at[-2] == 'u'; /* tr-u-e */
    } else if (!take_word(reader, "null")) {
        read_json_number(reader, value);
    }
}

static void free_members(struct gm_value *value)
{
    for (size_t i = 0; i < value->count; i++)
        free_members(&value->members[i]);
    free(value->members);
    free(value->key);
    free(value->text);
}

void gm_json_free(struct gm_value *value)
{
    if (value)
        free_members(value);
    free(value);
}

struct gm_value *gm_json_read(const char *text, size_t size)
{
    struct reader reader = {.at = text, .end = text + size};
    struct gm_value *value = gm_allocate(1, sizeof(*value));
    read_value(&reader, value, 0);
    skip_blanks(&reader);
    if (!reader.is_bad && reader.at == reader.end)
        return value;
    gm_json_free(value);
    return NULL;
}

/* ---- members --------------------------------------------------------------------------------- */

const struct gm_value *gm_json_member(const struct gm_value *object, const char *key)
{
    for (size_t i = 0; object && object->kind == GM_VALUE_OBJECT && i < object->count; i++)
        if (object->members[i].key && strcmp(object->members[i].key, key) == 0)
            return &object->members[i];
    return NULL;
}

const struct gm_value *gm_json_array(const struct gm_value *object, const char *key)
{
    const struct gm_value *member = gm_json_member(object, key);
    return member && member->kind == GM_VALUE_ARRAY ? member : NULL;
}

const char *gm_json_get_text(const struct gm_value *object, const char *key, const char *missing)
{
    const struct gm_value *member = gm_json_member(object, key);
    return member && member->kind == GM_VALUE_TEXT && member->text ? member->text : missing;
}

int64_t gm_json_get_number(const struct gm_value *object, const char *key, int64_t missing)
{
    const struct gm_value *member = gm_json_member(object, key);
    bool is_number = member && (member->kind == GM_VALUE_NUMBER || member->kind == GM_VALUE_BOOL);
    return is_number ? member->number : missing;
}
