/* Which driver the process runs on: NVIDIA's, or the simulator's. */
#ifndef GPUMEM_PRELOAD_HOOKS_DRIVER_KIND_H
#define GPUMEM_PRELOAD_HOOKS_DRIVER_KIND_H

#include <stdbool.h>

/* Looks at the driver and notes in the trace if it is the simulator. Called when a context is new,
 * by when the driver is certainly loaded. */
void gm_driver_kind_note(void);

/* Whether the copy that the calling thread just made read, on a simulated device, what only kernels
 * could have written. Asked once for each copy. Always false with a genuine driver. */
bool gm_driver_read_unknown(void);

#endif
