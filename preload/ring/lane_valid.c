/* Whether a thread's ring agrees with itself. For checked builds: base/assert.h. */
#include "ring/lane.h"

bool gm_lane_is_valid(const struct gm_thread *thread)
{
    const struct gm_lane *lane = gm_thread_lane(thread);
    uint64_t tail = __atomic_load_n(&lane->tail, __ATOMIC_ACQUIRE);
    uint64_t head = __atomic_load_n(&lane->head, __ATOMIC_ACQUIRE);
    return lane->capacity && (lane->capacity & (lane->capacity - 1)) == 0 && tail <= head &&
           head - tail <= lane->capacity && thread->mask == lane->capacity - 1 &&
           thread->records == (const struct gm_record *)(lane + 1);
}
