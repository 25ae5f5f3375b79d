/*
 * Where packed records go: into a trace that grows (file_sink.c), or into the area of a flight
 * recorder (flight/flight.c). Ring, packing, drainer and seal know the interface alone.
 */
#ifndef GPUMEM_PRELOAD_RING_SINK_H
#define GPUMEM_PRELOAD_RING_SINK_H

#include <gpumem/trace.h>
#include <stdbool.h>
#include <stdint.h>

struct gm_thread;

struct gm_sink {
    /* Lanes are merged as they are packed: all share one packer, and no thread packs its own ring
     * but a full one. */
    bool merges_lanes;
    enum gm_counter refused; /* counts the records that `write` had no room for */

    /* Adds to a new trace what the sink needs there. False: the trace cannot be had. */
    bool (*begin)(void);

    /* The following three: caller holds the pack lock. */

    /* Up to which of its records a lane may be packed. That may be nothing, also of a full ring: the
     * caller tries again, shortly after. */
    uint64_t (*ready)(const struct gm_thread *thread);
    uint32_t (*block_records)(void); /* of one block, at most; 1..GM_BLOCK_RECORDS_MAX */
    /* Takes a block: its head, and the stored bytes. False if there is no room. */
    bool (*write)(const struct gm_block *block, const void *bytes);

    /* Seals what the sink has in the trace, if it changed since the last time. */
    void (*seal)(void);
};

extern const struct gm_sink gm_file_sink;

/* The one of this process. */
extern const struct gm_sink *gm_sink;

/* Chooses it. Before the trace is made: packing and seal ask it from then on. */
void gm_sink_choose(const struct gm_sink *sink);

#endif
