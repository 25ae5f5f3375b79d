/* See sections.h. */
#include "output/text/sections.h"

void gm_flight_text(const struct gm_view *view)
{
    const struct gm_model_run *run = view->run;
    if (run->is_overwritten)
        gm_page_paragraph(
            view->page, GM_WARNING, 0,
            "FLIGHT: the history before %s was overwritten (%s events, %s allocations). "
            "What was live then is known; totals and peaks are of the time since.",
            TIME(run->overwritten_until_ns), COUNT(run->overwritten.events),
            COUNT(run->overwritten.allocs));
}
