/* Writes a pickle of protocol 2, of plain data and only with opcodes that PyTorch's MemoryViz.js reads.
 * Strings, and what the caller marks, stand in it once and are referred to by the memo. */
#ifndef GPUMEM_REPORT_RENDER_EXPORT_PICKLE_H
#define GPUMEM_REPORT_RENDER_EXPORT_PICKLE_H

#include "output/export/proto.h"

struct gm_pickle {
    FILE *out;
    struct gm_proto_strings strings;
    struct gm_map memo_of_string; /* number of the string -> of the memo */
    uint32_t memos;
};

void gm_pickle_begin(struct gm_pickle *pickle, FILE *out);
void gm_pickle_end(struct gm_pickle *pickle);

void gm_pickle_number(struct gm_pickle *pickle, uint64_t value);
void gm_pickle_bool(struct gm_pickle *pickle, bool value);

/* The text must stay until the end. NULL is "". */
void gm_pickle_string(struct gm_pickle *pickle, const char *text);

/* A list, or a dictionary of strings. In a list each item stands between gm_pickle_item and the next:
 * readers take only so many at once. */
struct gm_pickle_list {
    size_t count;
};
void gm_pickle_open_list(struct gm_pickle *pickle, struct gm_pickle_list *list);
void gm_pickle_item(struct gm_pickle *pickle, struct gm_pickle_list *list);
void gm_pickle_close_list(struct gm_pickle *pickle, struct gm_pickle_list *list);
void gm_pickle_open_dictionary(struct gm_pickle *pickle);
void gm_pickle_close_dictionary(struct gm_pickle *pickle);

/* Remembers the value that was written last; puts a remembered one. */
uint32_t gm_pickle_remember(struct gm_pickle *pickle);
void gm_pickle_recall(struct gm_pickle *pickle, uint32_t memo);

/* A pair of numbers. */
void gm_pickle_pair(struct gm_pickle *pickle, uint64_t first, uint64_t second);

#endif
