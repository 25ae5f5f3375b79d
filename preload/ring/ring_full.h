/* What a recording thread does about a ring that fills up. */
#ifndef GPUMEM_PRELOAD_RING_RING_FULL_H
#define GPUMEM_PRELOAD_RING_RING_FULL_H

#include "ring/lane.h"

/*
 * Looks how far the ring is packed, when head has reached limit, and sets the next limit. When the
 * ring is half full, goes on in a larger one; where that cannot be had or it is as large as it may
 * be, wakes the drainer, or packs it here if there is no CPU for the drainer. In a full one makes
 * room: packs it here, or waits for the drainer that is at it. Returns false when a record must be
 * dropped instead (GPUMEM_ON_FULL=drop), and counts it.
 */
bool gm_thread_look(struct gm_thread *thread);

#endif
