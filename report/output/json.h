/* Writes JSON as a stream: nothing is kept but the nesting. Integers are exact; text may be any
 * bytes. */
#ifndef GPUMEM_REPORT_RENDER_JSON_H
#define GPUMEM_REPORT_RENDER_JSON_H

#include "base/each.h"
#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define GM_JSON_DEPTH 16

struct gm_json {
    FILE *out;
    unsigned depth;
    bool on_one_line; /* instead of indented */
    bool in_html;     /* it stands in a page, which '<' would end */
    bool has_members[GM_JSON_DEPTH];
};

/* In the following, `key` is the name of the member; NULL inside an array and at the top. */

void gm_json_open_object(struct gm_json *json, const char *key);
void gm_json_close_object(struct gm_json *json);
void gm_json_open_array(struct gm_json *json, const char *key);
void gm_json_close_array(struct gm_json *json);

void gm_json_number(struct gm_json *json, const char *key, uint64_t value);
void gm_json_signed(struct gm_json *json, const char *key, int64_t value);
void gm_json_bool(struct gm_json *json, const char *key, bool value);
void gm_json_null(struct gm_json *json, const char *key);

/* NULL is written as null. */
void gm_json_string(struct gm_json *json, const char *key, const char *text);

/* Any bytes: what is no valid UTF-8 is written as \xHH in the text. */
void gm_json_text(struct gm_json *json, const char *key, struct gm_text text);

/* `value` thousandths. */
void gm_json_thousandths(struct gm_json *json, const char *key, unsigned value);

/* The value as JSON, by its type: the writer above that takes it. Enums are numbers. */
#define GM_JSON_PUT(json, key, value)                                                              \
    _Generic((value), \
        bool: gm_json_bool, \
        int8_t: gm_json_signed, int: gm_json_signed, \
        int64_t: gm_json_signed, \
        uint8_t: gm_json_number, \
        unsigned: gm_json_number, \
        uint64_t: gm_json_number, \
        char *: gm_json_string, \
        const char *: gm_json_string, \
        struct gm_text: gm_json_text)(json, key, value)

/* The same where there is a value; else null. */
#define GM_JSON_IF(json, key, is_there, value)                                                     \
    ((is_there) ? GM_JSON_PUT(json, key, value) : gm_json_null(json, key))

/* Members of the struct that `of` points to, which JSON calls as C does; and an object of them. */
#define GM_JSON_MEMBER(json, of, member) GM_JSON_PUT(json, #member, (of)->member);
#define GM_JSON_MEMBERS(json, of, ...)                                                             \
    do {                                                                                           \
        GM_EACH(GM_JSON_MEMBER, json, of, __VA_ARGS__)                                             \
    } while (0)
#define GM_JSON_OBJECT(json, key, of, ...)                                                         \
    do {                                                                                           \
        gm_json_open_object(json, key);                                                            \
        GM_EACH(GM_JSON_MEMBER, json, of, __VA_ARGS__)                                             \
        gm_json_close_object(json);                                                                \
    } while (0)

/* The line feed at the end of a document. */
void gm_json_end(struct gm_json *json);

#endif
