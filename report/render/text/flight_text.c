/* See sections.h. */
#include "base/size.h"
#include "render/text/sections.h"

void gm_flight_text(struct gm_page *page, const struct gm_trace *trace)
{
    const struct gm_checkpoint *checkpoint = trace->checkpoint;
    if (!checkpoint)
        return;
    gm_page_paragraph(page, GM_WARNING, 0,
                      "FLIGHT: the history before %s was overwritten (%s events, %s allocations). "
                      "What was live then is known; totals and peaks are of the time since.",
                      TIME(gm_clock_elapsed(&trace->clock, checkpoint->time)),
                      COUNT(checkpoint->before.events), COUNT(checkpoint->before.allocs));
}
