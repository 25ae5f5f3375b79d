/* Whether the process that wrote a trace still runs. */
#ifndef GPUMEM_REPORT_BASE_PROCESS_ALIVE_H
#define GPUMEM_REPORT_BASE_PROCESS_ALIVE_H

#include <gpumem/trace.h>
#include <stdbool.h>

/* True if this machine, in this boot, has a process of that number and start time. The number is that
 * of the process's own PID namespace (a container's): where that is not ours, all processes are looked
 * through for it. */
bool gm_process_alive(const struct gm_trace_header *header);

/* When process `pid` of our own namespace began, in the clock ticks since the boot that /proc tells; 0: it does
 * not run. */
uint64_t gm_process_start(const char *pid);

#endif
