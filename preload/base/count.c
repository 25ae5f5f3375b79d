/* See count.h. */
#include "base/count.h"
#include "base/change.h"

void gm_count(enum gm_counter counter, uint64_t amount)
{
    struct gm_trace_header *header = gm_process_page->header;
    if (!header || !amount)
        return;
    gm_change_begin();
    __atomic_fetch_add(&header->counters[counter], amount, __ATOMIC_RELAXED);
    gm_change_end();
}
