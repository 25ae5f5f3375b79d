/* A memory snapshot of PyTorch as a trace: the same events as a recording of the program would have of its pools,
 * from the beginning of the snapshot's history to the moment at which it was taken. */
#ifndef GPUMEM_REPORT_TORCH_IMPORT_H
#define GPUMEM_REPORT_TORCH_IMPORT_H

#include <stddef.h>

struct gm_torch_snapshot;

/* The bytes of the trace, of gm_allocate_pages; the caller frees them. The snapshot has given them its image, and has
 * only its devices afterwards. */
unsigned char *gm_torch_import(struct gm_torch_snapshot *snapshot, size_t *size);

#endif
