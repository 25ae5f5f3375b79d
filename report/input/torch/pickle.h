/* Plain data out of Python's pickle format, protocols 0 to 5: None, booleans, numbers, strings, bytes, tuples,
 * lists, sets, dicts. Nothing is executed: an opcode that names code (GLOBAL, REDUCE, ...) or memory outside the
 * file ends the reading with an error that names it.
 *
 * What a large pickle holds many times its reader can take out while it is read (gm_pickle_reduce): a snapshot of 1 GB
 * then takes no more memory than that.
 *
 * Guarantees, whatever the bytes: memory and work grow with their number (about 100 bytes for each at most); what
 * contains what is never followed by recursion. Lists may contain themselves, so a reader of the values must not
 * follow them without an end.
 */
#ifndef GPUMEM_REPORT_TORCH_PICKLE_H
#define GPUMEM_REPORT_TORCH_PICKLE_H

#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gm_value_type {
    GM_VALUE_NONE,
    GM_VALUE_BOOL,    /* integer: 0 or 1 */
    GM_VALUE_INTEGER, /* as 64 bits, two's complement; what is beyond is taken for the nearest */
    GM_VALUE_REAL,
    GM_VALUE_TEXT,    /* str or bytes, in the file: not terminated, any bytes */
    GM_VALUE_LIST,    /* list, tuple or set */
    GM_VALUE_DICT,    /* keys and values in turn; of equal keys the last one counts */
    GM_VALUE_REDUCED, /* integer: the mark that a list or dict was given (gm_pickle_reduce) */
};

struct gm_value;

struct gm_items {
    struct gm_value *values;
    uint32_t count, capacity; /* values; of a dict twice the number of its keys */
    uint32_t mark;            /* for the reader of the values; 0 at first */
    uint32_t
        memo; /* while it is read: its only place in the memo, plus 1; 0: none; UINT32_MAX: it has several */
};

struct gm_value {
    uint32_t type; /* enum gm_value_type */
    uint32_t size; /* of a text, bytes */
    union {
        int64_t integer;
        double real;
        const char *bytes;
        struct gm_items *items;
    };
};

struct gm_pickle;

/* Whether bytes begin as a pickle of a dict, a list or a tuple does. */
bool gm_pickle_is_likely(const unsigned char *bytes, size_t size);

/* Called with each list and dict that was filled at one go. Not 0: its reader has what it needs of it, and this number
 * is what stands for it from then on. */
typedef uint32_t gm_pickle_reduce(void *context, const struct gm_value *container);

struct gm_pickle_source {
    const unsigned char *bytes; /* must outlive the pickle */
    size_t size;
    bool is_mapped; /* from a file, whose pages are given back once they are read */
};

/* Reads the pickle at the start of the source. `reduce` may be NULL. NULL with a line in `error` if it is cut, damaged
 * or more than plain data. */
struct gm_pickle *gm_pickle_read(const struct gm_pickle_source *source, gm_pickle_reduce *reduce,
                                 void *context, char *error, size_t error_size);
void gm_pickle_free(struct gm_pickle *pickle);

const struct gm_value *gm_pickle_root(const struct gm_pickle *pickle);

/* Values as what they are expected to be; NULL, or the default, where they are not. `value` may be NULL. */
const struct gm_value *gm_value_get(const struct gm_value *dict, const char *key);
struct gm_items *gm_value_items(const struct gm_value *value); /* of a list */
uint32_t
gm_value_mark(const struct gm_value *value); /* of a list or dict, reduced or not; else 0 */
uint64_t gm_value_number(const struct gm_value *value, uint64_t otherwise);
struct gm_text gm_value_text(const struct gm_value *value); /* empty if it is none */
bool gm_text_is(struct gm_text text, const char *wanted);

#endif
