/* Whether the process that wrote a trace still runs. */
#ifndef GPUMEM_REPORT_BASE_PROCESS_ALIVE_H
#define GPUMEM_REPORT_BASE_PROCESS_ALIVE_H

#include <gpumem/trace.h>
#include <stdbool.h>

/* True if this machine, in this boot, has a process of that number and start time. */
bool gm_process_alive(const struct gm_trace_header *header);

#endif
