/* See pickle.h. The opcodes are those of Python's Lib/pickletools.py. */
#include "output/export/pickle.h"
#include <string.h>

#define ITEMS_AT_ONCE 1000u /* Python's own; MemoryViz.js passes them as arguments of one call */

static void put_byte(struct gm_pickle *pickle, int byte)
{
    putc_unlocked(byte, pickle->out);
}

static void put_little(struct gm_pickle *pickle, uint64_t value, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        put_byte(pickle, (int)(value >> (8 * i) & 0xff));
}

void gm_pickle_begin(struct gm_pickle *pickle, FILE *out)
{
    *pickle = (struct gm_pickle){.out = out};
    fputs("\x80\x02", out);
}

void gm_pickle_end(struct gm_pickle *pickle)
{
    put_byte(pickle, '.');
    gm_proto_strings_free(&pickle->strings);
    gm_map_free(&pickle->memo_of_string);
}

/* ---- values ---------------------------------------------------------------------------------- */

void gm_pickle_number(struct gm_pickle *pickle, uint64_t value)
{
    if (value <= UINT8_MAX) {
        put_byte(pickle, 'K');
        put_little(pickle, value, 1);
    } else if (value <= UINT16_MAX) {
        put_byte(pickle, 'M');
        put_little(pickle, value, 2);
    } else if (value <= INT32_MAX) {
        put_byte(pickle, 'J');
        put_little(pickle, value, 4);
    } else {
        unsigned size = value >> 63 ? 9 : 8; /* the last bit is the sign */
        put_byte(pickle, 0x8a);
        put_byte(pickle, (int)size);
        put_little(pickle, value, 8);
        if (size == 9)
            put_byte(pickle, 0);
    }
}

void gm_pickle_bool(struct gm_pickle *pickle, bool value)
{
    put_byte(pickle, value ? 0x88 : 0x89);
}

uint32_t gm_pickle_remember(struct gm_pickle *pickle)
{
    put_byte(pickle, pickle->memos <= UINT8_MAX ? 'q' : 'r');
    put_little(pickle, pickle->memos, pickle->memos <= UINT8_MAX ? 1 : 4);
    return pickle->memos++;
}

void gm_pickle_recall(struct gm_pickle *pickle, uint32_t memo)
{
    put_byte(pickle, memo <= UINT8_MAX ? 'h' : 'j');
    put_little(pickle, memo, memo <= UINT8_MAX ? 1 : 4);
}

void gm_pickle_string(struct gm_pickle *pickle, const char *text)
{
    uint32_t number = gm_proto_string(&pickle->strings, text);
    uint32_t memo = gm_map_get(&pickle->memo_of_string, number);
    if (memo != GM_NONE) {
        gm_pickle_recall(pickle, memo);
        return;
    }
    size_t size = text ? strlen(text) : 0;
    put_byte(pickle, 'X');
    put_little(pickle, size, 4);
    fwrite(text ? text : "", 1, size, pickle->out);
    gm_map_set(&pickle->memo_of_string, number, gm_pickle_remember(pickle));
}

void gm_pickle_pair(struct gm_pickle *pickle, uint64_t first, uint64_t second)
{
    gm_pickle_number(pickle, first);
    gm_pickle_number(pickle, second);
    put_byte(pickle, 0x86);
}

/* ---- containers ------------------------------------------------------------------------------ */

void gm_pickle_open_list(struct gm_pickle *pickle, struct gm_pickle_list *list)
{
    list->count = 0;
    put_byte(pickle, ']');
}

void gm_pickle_item(struct gm_pickle *pickle, struct gm_pickle_list *list)
{
    if (list->count && list->count % ITEMS_AT_ONCE == 0)
        put_byte(pickle, 'e');
    if (list->count++ % ITEMS_AT_ONCE == 0)
        put_byte(pickle, '(');
}

void gm_pickle_close_list(struct gm_pickle *pickle, struct gm_pickle_list *list)
{
    if (list->count)
        put_byte(pickle, 'e');
}

void gm_pickle_open_dictionary(struct gm_pickle *pickle)
{
    put_byte(pickle, '}');
    put_byte(pickle, '(');
}

void gm_pickle_close_dictionary(struct gm_pickle *pickle)
{
    put_byte(pickle, 'u');
}
