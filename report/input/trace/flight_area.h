/* The area of a flight trace: a checkpoint, and the blocks behind it. */
#ifndef GPUMEM_REPORT_TRACE_FLIGHT_AREA_H
#define GPUMEM_REPORT_TRACE_FLIGHT_AREA_H

#include "input/trace/trace_file.h"

/*
 * Finds the checkpoint and the blocks in a FLIGHT extent, of which `size` bytes behind its header
 * are in the file. If the checkpoint that the history begins with is damaged, it begins with the
 * next one. Of a trace that is still written to, the area is copied first.
 */
void gm_flight_scan(struct gm_trace *trace, const unsigned char *payload, size_t size, bool alive);

/* Whether what stands outside the extents of the area is as it was when the trace was sealed. */
bool gm_flight_is_sealed(const struct gm_extent *extent);

#endif
