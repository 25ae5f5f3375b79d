/* From the record clock of a trace to nanoseconds since its start. */
#ifndef GPUMEM_REPORT_BASE_CLOCK_H
#define GPUMEM_REPORT_BASE_CLOCK_H

#include <gpumem/trace.h>
#include <stdint.h>

struct gm_clock_scale {
    uint64_t origin;      /* on the record clock: the start of the trace */
    uint64_t ticks;       /* this many ticks ... */
    uint64_t nanoseconds; /* ... take this long; equal where the clock counts nanoseconds */
};

/* The scale the header's clock pairs give. Any header is taken, also a hostile one. */
struct gm_clock_scale gm_clock_scale(const struct gm_trace_header *header);

/* Nanoseconds from the start of the trace to `time`; 0 for what lies before it. */
uint64_t gm_clock_elapsed(const struct gm_clock_scale *scale, uint64_t time);

#endif
