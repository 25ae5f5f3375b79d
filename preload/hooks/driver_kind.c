/* See driver_kind.h. */
#include "hooks/driver_kind.h"
#include "base/change.h"
#include "interpose/real.h"
#include <stdatomic.h>

/* The simulator's answer (sim/driver/contents.c); it takes no lock. NULL: another driver. The
 * simulator is never unmapped. */
static _Atomic(bool (*)(void)) has_read_unknown;

void gm_driver_kind_note(void)
{
    struct gm_trace_header *header = gm_process_page->header;
    if (!header || !gm_real_driver_defines("gpumem_simulated_driver"))
        return;
    atomic_store(&has_read_unknown,
                 (bool (*)(void))gm_real_driver_function("gpumem_sim_has_read_unknown"));
    gm_change_begin();
    __atomic_fetch_or(&header->flags, GM_HEADER_SIMULATED, __ATOMIC_RELAXED);
    gm_change_end();
}

bool gm_driver_read_unknown(void)
{
    bool (*ask)(void) = atomic_load_explicit(&has_read_unknown, memory_order_relaxed);
    return ask && ask();
}
