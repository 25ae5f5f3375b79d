/* See json.h. */
#include "output/json.h"
#include "base/text.h"
#include <inttypes.h>
#include <string.h>

static void indent(struct gm_json *json)
{
    static const char spaces[] = "\n                                "; /* for GM_JSON_DEPTH */
    _Static_assert(sizeof(spaces) == 2 + 2 * GM_JSON_DEPTH, "a line feed, two blanks a level");
    if (!json->on_one_line)
        fwrite_unlocked(spaces, 1, 1 + 2 * json->depth, json->out);
}

/* Such that steer a terminal are of two or three bytes. */
static void write_character(struct gm_json *json, const unsigned char *at, size_t length)
{
    if (!gm_utf8_is_control(at, length)) {
        fwrite(at, 1, length, json->out);
        return;
    }
    fprintf(json->out, "\\u%04x",
            length == 2 ? (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu)
                        : (at[0] & 0xfu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu));
}

/* Bytes that stand for themselves: nearly all. */
static size_t plain_length(const unsigned char *at, const unsigned char *end)
{
    const unsigned char *start = at;
    while (at < end && *at >= 0x20 && *at < 0x7f && *at != '"' && *at != '\\' && *at != '<')
        at++;
    return (size_t)(at - start);
}

static void write_json_text(struct gm_json *json, struct gm_text text)
{
    const unsigned char *at = (const unsigned char *)text.bytes, *end = at + text.size;
    putc_unlocked('"', json->out);
    while (at < end) {
        size_t plain = plain_length(at, end);
        if (plain) {
            fwrite_unlocked(at, 1, plain, json->out);
            at += plain;
            continue;
        }
        size_t length = gm_utf8_length(at, (size_t)(end - at));
        if (length == 0)
            fprintf(json->out, "\\\\x%02x", *at++);
        else if (*at == '"' || *at == '\\')
            fprintf(json->out, "\\%c", *at++);
        else if (*at < 0x20 || *at == 0x7f || (*at == '<' && json->in_html))
            fprintf(json->out, "\\u%04x", *at++);
        else {
            write_character(json, at, length);
            at += length;
        }
    }
    putc_unlocked('"', json->out);
}

/* What stands before a value: a comma, a new line, the key. */
static void begin_member(struct gm_json *json, const char *key)
{
    if (json->depth) {
        if (json->has_members[json->depth])
            fputc(',', json->out);
        json->has_members[json->depth] = true;
        indent(json);
    }
    if (key) {
        write_json_text(json, (struct gm_text){key, strlen(key)});
        fputs(": ", json->out);
    }
}

static void open_level(struct gm_json *json, const char *key, char bracket)
{
    begin_member(json, key);
    fputc(bracket, json->out);
    json->depth++;
    json->has_members[json->depth] = false;
}

static void close_level(struct gm_json *json, char bracket)
{
    bool had_members = json->has_members[json->depth--];
    if (had_members)
        indent(json);
    fputc(bracket, json->out);
}

void gm_json_open_object(struct gm_json *json, const char *key)
{
    open_level(json, key, '{');
}

void gm_json_close_object(struct gm_json *json)
{
    close_level(json, '}');
}

void gm_json_open_array(struct gm_json *json, const char *key)
{
    open_level(json, key, '[');
}

void gm_json_close_array(struct gm_json *json)
{
    close_level(json, ']');
}

void gm_json_number(struct gm_json *json, const char *key, uint64_t value)
{
    begin_member(json, key);
    fprintf(json->out, "%" PRIu64, value);
}

void gm_json_signed(struct gm_json *json, const char *key, int64_t value)
{
    begin_member(json, key);
    fprintf(json->out, "%" PRId64, value);
}

void gm_json_bool(struct gm_json *json, const char *key, bool value)
{
    begin_member(json, key);
    fputs(value ? "true" : "false", json->out);
}

void gm_json_null(struct gm_json *json, const char *key)
{
    begin_member(json, key);
    fputs("null", json->out);
}

void gm_json_text(struct gm_json *json, const char *key, struct gm_text text)
{
    begin_member(json, key);
    write_json_text(json, text);
}

void gm_json_string(struct gm_json *json, const char *key, const char *text)
{
    if (text)
        gm_json_text(json, key, (struct gm_text){text, strlen(text)});
    else
        gm_json_null(json, key);
}

void gm_json_thousandths(struct gm_json *json, const char *key, unsigned value)
{
    begin_member(json, key);
    fprintf(json->out, "%u.%03u", value / 1000, value % 1000);
}

void gm_json_end(struct gm_json *json)
{
    fputc('\n', json->out);
}
