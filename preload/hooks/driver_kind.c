/* See driver_kind.h. */
#include "hooks/driver_kind.h"
#include "base/change.h"
#include "interpose/real.h"

void gm_driver_kind_note(void)
{
    struct gm_trace_header *header = gm_process_page->header;
    if (!header || !gm_real_driver_defines("gpumem_simulated_driver"))
        return;
    gm_change_begin();
    __atomic_fetch_or(&header->flags, GM_HEADER_SIMULATED, __ATOMIC_RELAXED);
    gm_change_end();
}
