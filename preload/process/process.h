/*
 * The life of a recorded process: nothing until the first CUDA call, one trace, a mark at the end;
 * a forked child starts over. A process that loaded the driver behind our back leaves a trace
 * without records at its normal end: GM_HEADER_BYPASSED.
 */
#ifndef GPUMEM_PRELOAD_PROCESS_PROCESS_H
#define GPUMEM_PRELOAD_PROCESS_PROCESS_H

#include <gpumem/trace.h>
#include <stdbool.h>

/*
 * In a child made by fork or _Fork, on its thread: if a signal handler forked that had interrupted
 * the recorder, the child will return into the middle of it. It gets memory to go on with, and no
 * file.
 */
void gm_process_forked(void);

/* Marks the end in the trace, if this process has one; GM_END_NONE takes the mark back. `status`:
 * how it ends, as in the header. False: it has none. Async-signal-safe. */
bool gm_process_mark_end(enum gm_end end, uint32_t status);

/* The status of an exit with that code. */
static inline uint32_t gm_status_of_exit(int code)
{
    return GM_STATUS_TOLD | ((uint32_t)code & 0xff) << 8;
}

#endif
