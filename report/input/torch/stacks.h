/* Stacks of a memory snapshot of PyTorch as nodes of a trace. */
#ifndef GPUMEM_REPORT_TORCH_STACKS_H
#define GPUMEM_REPORT_TORCH_STACKS_H

#include "input/torch/image.h"
#include "input/torch/pickle.h"

#define GM_TORCH_DEPTH_MAX 512u /* frames of a stack: as deep as the recorder goes */

/* The frame that a dict with "filename", "name" and "line" tells; 0 if there is no room. */
uint32_t gm_torch_frame(struct gm_image *image, const struct gm_value *value);

/* What the user's own text of an event is below: a stack of one frame; 0 of an empty text. */
uint32_t gm_torch_metadata(struct gm_image *image, struct gm_text metadata);

/* The same frames as those of `stack`, called from `outermost` (0: nothing). */
uint32_t gm_torch_stack_below(struct gm_image *image, uint32_t outermost, uint32_t stack);

/* Where the innermost frame of a stack is, and the stack that called it; 0: none did. */
uint32_t gm_torch_caller(const struct gm_image *image, uint32_t stack, struct gm_text *file,
                         uint32_t *line);

#endif
