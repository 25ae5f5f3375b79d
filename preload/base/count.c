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

void gm_count_up_to(enum gm_counter counter, uint64_t total)
{
    struct gm_trace_header *header = gm_process_page->header;
    if (!header)
        return;
    uint64_t *value = &header->counters[counter], before = __atomic_load_n(value, __ATOMIC_RELAXED);
    gm_change_begin();
    while (before < total && !__atomic_compare_exchange_n(value, &before, total, true,
                                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
    gm_change_end();
}
