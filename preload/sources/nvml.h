/*
 * Samples of what this process and all others use on a device, as NVML tells it. What a process
 * uses beyond the allocations on record is what the driver holds for it: contexts, modules, local
 * memory. NVML makes no context and needs none.
 *
 * Guarantees: no NVML function is ever called on a thread of the host's, and no hook waits for one.
 * A thread of our own asks: when a context is new, when a module was loaded, once a second, and a
 * last time at a normal end (which waits for it, half a second at most). There is no such thread
 * with GPUMEM_NVML=0, and none before the first context; where NVML is absent it ends at once.
 */
#ifndef GPUMEM_PRELOAD_SOURCES_NVML_H
#define GPUMEM_PRELOAD_SOURCES_NVML_H

/*
 * A context is new on `device` (-1 unknown: does nothing). The first time in a process this starts
 * the thread, which opens NVML. Preserves errno.
 */
void gm_nvml_context(int device);

/* Memory may have gone where no record tells: asks for a sample soon. Preserves errno. */
void gm_nvml_request(void);

#endif
