/* A trace built in memory, as include/gpumem/trace.h describes it: what is recorded elsewhere becomes what the reader
 * reads. Tables that are full take no more and count it, as the recorder's do. */
#ifndef GPUMEM_REPORT_TORCH_IMAGE_H
#define GPUMEM_REPORT_TORCH_IMAGE_H

#include "base/map.h"
#include "base/text.h"
#include <gpumem/trace.h>

/* Bytes that grow. */
struct gm_bytes {
    unsigned char *bytes;
    size_t size, capacity;
};

struct gm_image {
    struct gm_trace_header header;
    struct gm_bytes strings, modules, nodes, frames, names, environment;
    struct gm_bytes *lanes; /* of records */
    size_t lane_count, lane_capacity;
    uint16_t name_count;
    struct gm_map by_text, by_frame, by_node;
};

void gm_image_begin(struct gm_image *image);

/* References and numbers as records and tables have them; 0 if there is no room. Equal ones are one. */
uint32_t gm_image_string(struct gm_image *image, struct gm_text text);
uint32_t gm_image_frame(struct gm_image *image, struct gm_text file, struct gm_text function,
                        uint32_t line, uint32_t language);
uint32_t gm_image_node(struct gm_image *image, uint32_t parent, uint32_t frame);
uint16_t gm_image_module(struct gm_image *image, const char *path);
/* The function of a library that calls: the innermost frame of a stack. */
uint32_t gm_image_leaf(struct gm_image *image, uint32_t parent, uint16_t module);
uint16_t gm_image_api(struct gm_image *image, const char *name);
void gm_image_environment(struct gm_image *image, const char *name, struct gm_text value);

uint32_t gm_image_lane(struct gm_image *image);
void gm_image_add(struct gm_image *image, uint32_t lane, const struct gm_record *record);

/* Frees an image that is not finished, or is. */
void gm_image_free(struct gm_image *image);

/* The finished trace, of gm_allocate_pages; the caller frees it. The image is empty afterwards. */
unsigned char *gm_image_finish(struct gm_image *image, size_t *size);

#endif
