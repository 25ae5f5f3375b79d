/* Writes messages of protocol buffers: https://protobuf.dev/programming-guides/encoding. A message is
 * built in a text of its own and then added to the one around it. */
#ifndef GPUMEM_REPORT_RENDER_EXPORT_PROTO_H
#define GPUMEM_REPORT_RENDER_EXPORT_PROTO_H

#include "output/export/export.h"

/* An integer or an enum; signed ones in two's complement. */
void gm_proto_number(struct gm_export_text *message, unsigned field, uint64_t value);

void gm_proto_text(struct gm_export_text *message, unsigned field, const char *text);

/* Adds a message as a field of another one, and empties it for the next. */
void gm_proto_message(struct gm_export_text *message, unsigned field, struct gm_export_text *part);

/* Strings by number, each once. Number 0 is "". */
struct gm_proto_strings {
    struct gm_map by_hash;
    const char **strings; /* of the caller's, which must stay */
    size_t count;
    size_t capacity;
};

uint32_t gm_proto_string(struct gm_proto_strings *strings, const char *string);
void gm_proto_strings_free(struct gm_proto_strings *strings);

#endif
