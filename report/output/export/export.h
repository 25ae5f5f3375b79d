/* What exports share. An export is an output of the model of one trace, in the format of another
 * program: same trace, same bytes. Sums of every export are those of the report, within a group
 * (gm_place_group): blocks lie in memory that other groups count. */
#ifndef GPUMEM_REPORT_RENDER_EXPORT_EXPORT_H
#define GPUMEM_REPORT_RENDER_EXPORT_EXPORT_H

#include "model/history.h"
#include "output/output.h"
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

extern const struct gm_output gm_export_collapsed;
extern const struct gm_output gm_export_csv;
extern const struct gm_output gm_export_memory_viz;
extern const struct gm_output gm_export_ndjson;
extern const struct gm_output gm_export_openmetrics;
extern const struct gm_output gm_export_perfetto;
extern const struct gm_output gm_export_pprof;
extern const struct gm_output gm_export_speedscope;
extern const struct gm_output gm_export_sqlite;

/* Two runs as one profile of pprof: what `newer` has counts up; what `base` has counts down, with the
 * label by which pprof itself marks the samples of `-diff_base`. Models of any number of traces. */
void gm_pprof_write_difference(FILE *out, const struct gm_model *base,
                               const struct gm_model *newer);

/* ---- text ------------------------------------------------------------------------------------ */

/* A text that grows; all zero: empty. Always terminated once something was added. */
struct gm_export_text {
    char *bytes;
    size_t size;
    size_t capacity;
};

void gm_export_add(struct gm_export_text *text, const char *piece);
void gm_export_add_bytes(struct gm_export_text *text, const void *bytes, size_t size);
void gm_export_text_free(struct gm_export_text *text);

/* "step (train.py:61)": what a frame is called where there is one text for it. The file is without
 * its folders. Appended to `text`. */
void gm_export_frame(struct gm_export_text *text, const struct gm_frame *frame);

/* The frame that tells a reader most, as above, in at most so many bytes; "" without frames. The
 * caller frees it. */
#define GM_EXPORT_PLACE_TEXT 160
char *gm_export_place(const struct gm_model *model, const struct gm_model_place *place);

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Stacks by the numbers that they have in one export: 0, 1, 2 ... in the order of their use. */
struct gm_export_stacks {
    struct gm_map numbers; /* of a stack in the model -> in the export */
    uint32_t *stacks;      /* in the model */
    size_t count;
    size_t capacity;
};

uint32_t gm_export_stack(struct gm_export_stacks *stacks, const struct gm_model *model,
                         uint32_t stack);
void gm_export_stacks_free(struct gm_export_stacks *stacks);

/* How many frames of a stack are shown: as many as the limits allow (base/limit.h). */
size_t gm_export_frame_count(const struct gm_stack *stack);

#endif
