/* See proto.h. */
#include "output/export/proto.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

enum wire { VARINT = 0, LENGTH = 2 };

static void add_varint(struct gm_export_text *message, uint64_t value)
{
    unsigned char bytes[10];
    size_t size = 0;
    for (; value >= 0x80; value >>= 7)
        bytes[size++] = (unsigned char)(value | 0x80);
    bytes[size++] = (unsigned char)value;
    gm_export_add_bytes(message, bytes, size);
}

static void add_bytes(struct gm_export_text *message, unsigned field, const void *bytes,
                      size_t size)
{
    add_varint(message, (uint64_t)field << 3 | LENGTH);
    add_varint(message, size);
    gm_export_add_bytes(message, bytes, size);
}

void gm_proto_number(struct gm_export_text *message, unsigned field, uint64_t value)
{
    add_varint(message, (uint64_t)field << 3 | VARINT);
    add_varint(message, value);
}

void gm_proto_text(struct gm_export_text *message, unsigned field, const char *text)
{
    add_bytes(message, field, text, strlen(text));
}

void gm_proto_message(struct gm_export_text *message, unsigned field, struct gm_export_text *part)
{
    add_bytes(message, field, part->bytes, part->size);
    part->size = 0;
}

uint32_t gm_proto_string(struct gm_proto_strings *strings, const char *string)
{
    if (!strings->count) {
        GM_RESERVE(strings->strings, strings->capacity, 1);
        strings->strings[strings->count++] = "";
    }
    if (!string || !*string)
        return 0;
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    for (const char *at = string; *at; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    uint32_t known;
    for (; (known = gm_map_get(&strings->by_hash, hash)) != GM_NONE; hash++)
        if (strcmp(strings->strings[known], string) == 0)
            return known;
    GM_RESERVE(strings->strings, strings->capacity, strings->count + 1);
    gm_map_set(&strings->by_hash, hash, (uint32_t)strings->count);
    strings->strings[strings->count] = string;
    return (uint32_t)strings->count++;
}

void gm_proto_strings_free(struct gm_proto_strings *strings)
{
    gm_map_free(&strings->by_hash);
    free(strings->strings);
    *strings = (struct gm_proto_strings){0};
}
