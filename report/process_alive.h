/* Whether the process that wrote a trace still runs. */
#ifndef GM_REPORT_PROCESS_ALIVE_H
#define GM_REPORT_PROCESS_ALIVE_H

#include <stdbool.h>
#include <gpumem/trace.h>

/* True if this machine, in this boot, has a process of that number and start time. */
bool gm_process_alive(const struct gm_trace_header *header);

#endif
