/* Opens a trace: finds the extents of the file and checks them.
 *
 * Guarantees: whatever the file holds, what cannot be read is skipped and counted. A file that is
 * still being written is read as of one moment: rings are copied before the tables and blocks they
 * refer to are looked up. Relies on the file not shrinking while it is open (main.c turns the
 * signal of that into a clear ending).
 */
#ifndef GPUMEM_REPORT_TRACE_TRACE_OPEN_H
#define GPUMEM_REPORT_TRACE_TRACE_OPEN_H

#include "input/trace/trace_file.h"
#include <stddef.h>

/* A thread stamps a record before others can see it. What is younger than this may still get a
 * neighbour that comes before it. */
#define GM_TRACE_BEHIND_NS UINT64_C(100000000)

/* Opens a trace. On failure returns NULL and writes one line about it (without the path) to
 * `error`. Of a process that runs, all is read that it had done when this was called, and nothing
 * that it did later (gm_trace.until): for that it waits GM_TRACE_BEHIND_NS. */
struct gm_trace *gm_trace_open(const char *path, char *error, size_t error_size);

/* The same without waiting: of a process that runs, what it had done GM_TRACE_BEHIND_NS before.
 * `before`: an earlier look at the same run, or NULL. What was found intact then is not checked
 * again, or each look would read all that the process ever wrote. */
struct gm_trace *gm_trace_open_at_once(const char *path, const struct gm_trace *before, char *error,
                                       size_t error_size);

/* The same for a trace in memory, which must outlive it and be aligned to 64 bytes. */
struct gm_trace *gm_trace_open_memory(const void *bytes, size_t size, char *error,
                                      size_t error_size);

/* The same for bytes of gm_allocate_pages, which it takes over: they are freed at its end, or on failure. `path`: of
 * the file they were made from. */
struct gm_trace *gm_trace_open_made(const char *path, void *bytes, size_t size, char *error,
                                    size_t error_size);

void gm_trace_close(struct gm_trace *trace);

#endif
