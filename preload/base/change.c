/* See change.h. */
#include "base/change.h"

struct gm_lock gm_seal_lock = GM_LOCK(GM_RANK_SEAL);
_Atomic uint32_t gm_changes;

void gm_unseal(void)
{
    gm_lock_take(&gm_seal_lock);
    struct gm_trace_header *header = gm_process_page->header;
    if (header) /* else a child, where its parent's trace is not mapped */
        __atomic_store_n(&header->seal, 0, __ATOMIC_RELEASE);
    gm_lock_release(&gm_seal_lock);
}
