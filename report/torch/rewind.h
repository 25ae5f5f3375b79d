/* From the state at the end of a history back to that at its beginning, event by event. */
#ifndef GPUMEM_REPORT_TORCH_REWIND_H
#define GPUMEM_REPORT_TORCH_REWIND_H

#include "torch/snapshot.h"

/* Fills in first_segments, first_blocks and contradictions of a device, and of its events gives_back and
 * block_size. */
void gm_torch_rewind(struct gm_torch_device *device);

#endif
