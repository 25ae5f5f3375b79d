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

/* This moment on the clocks of this machine, which are also those of a trace that a living process
 * writes here. `ticks` is 0 where the processor's counter is not known to us. */
struct gm_clock_pair gm_clock_now(void);

/* The scale between the start of a trace and a later moment of the same machine: better than the
 * header's while the process runs, which writes its latest pair now and then, or not yet. */
struct gm_clock_scale gm_clock_scale_until(const struct gm_trace_header *header,
                                           const struct gm_clock_pair *now);

/* The record clock at a moment of this machine. */
uint64_t gm_clock_record_time(const struct gm_trace_header *header,
                              const struct gm_clock_pair *moment);

/* Nanoseconds from the start of the trace to `time`; 0 for what lies before it. */
uint64_t gm_clock_elapsed(const struct gm_clock_scale *scale, uint64_t time);

/* The first time, above the start of the trace, of which gm_clock_elapsed() is `elapsed` or more; the highest one if there
 * is none. */
uint64_t gm_clock_reaches(const struct gm_clock_scale *scale, uint64_t elapsed);

#endif
