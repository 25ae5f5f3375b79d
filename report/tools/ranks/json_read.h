/* Reads JSON that is untrusted: one value, all of it in memory. Bounded in depth and in the number of
 * values; integers alone, as our own files have them. Text is clean but for line feeds. */
#ifndef GPUMEM_REPORT_RANKS_JSON_READ_H
#define GPUMEM_REPORT_RANKS_JSON_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gm_value_kind {
    GM_VALUE_NULL,
    GM_VALUE_BOOL,
    GM_VALUE_NUMBER,
    GM_VALUE_TEXT,
    GM_VALUE_ARRAY,
    GM_VALUE_OBJECT
};

struct gm_value {
    enum gm_value_kind kind;
    char *key;      /* of a member of an object; else NULL */
    int64_t number; /* what is beyond the bounds is the bound; of BOOL 0 or 1 */
    char *text;     /* of TEXT */
    struct gm_value *members;
    size_t count;
    size_t capacity;
};

/* NULL if it is no JSON, more than one value, or too much. */
struct gm_value *gm_json_read(const char *text, size_t size);
void gm_json_free(struct gm_value *value);

/* A member of an object. The getters return what stands there or, if it is not there or of another
 * kind, NULL or `missing`. */
const struct gm_value *gm_json_member(const struct gm_value *object, const char *key);
const struct gm_value *gm_json_array(const struct gm_value *object, const char *key);
const char *gm_json_get_text(const struct gm_value *object, const char *key, const char *missing);
int64_t gm_json_get_number(const struct gm_value *object, const char *key, int64_t missing);

#endif
