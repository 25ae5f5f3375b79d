/* Opens what gpumem reads: a trace, or a memory snapshot of PyTorch, which becomes one. What a file is, its first
 * bytes say. */
#ifndef GPUMEM_REPORT_TORCH_OPEN_H
#define GPUMEM_REPORT_TORCH_OPEN_H

#include "input/torch/snapshot.h"
#include "input/trace/trace_open.h"

/* As gm_trace_open. */
struct gm_trace *gm_torch_open(const char *path, char *error, size_t error_size);

/* Maps a file that begins as a pickle does. False: it is none, or cannot be read. */
bool gm_torch_map(const char *path, struct gm_pickle_source *file);
void gm_torch_unmap(const struct gm_pickle_source *file);

#endif
