/* Counters of the trace's header, by which the recorder tells what it could not do. */
#ifndef GPUMEM_PRELOAD_BASE_COUNT_H
#define GPUMEM_PRELOAD_BASE_COUNT_H

#include <gpumem/trace.h>
#include <stdint.h>

/* Adds to a counter; does nothing in a process without a trace. From any thread, without a lock. */
void gm_count(enum gm_counter counter, uint64_t amount);

/* Brings a counter up to `total`, for what the process counted itself, also before there was a
 * trace. Several threads may tell what they saw: the larger number is the later. */
void gm_count_up_to(enum gm_counter counter, uint64_t total);

#endif
