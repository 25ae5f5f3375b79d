/* Which driver the process runs on: NVIDIA's, or the simulator's. */
#ifndef GPUMEM_PRELOAD_HOOKS_DRIVER_KIND_H
#define GPUMEM_PRELOAD_HOOKS_DRIVER_KIND_H

/* Looks at the driver and notes in the trace if it is the simulator. Called when a context is new,
 * by when the driver is certainly loaded. */
void gm_driver_kind_note(void);

#endif
