/* See flight_show.h. */
#include "render/sections/flight_show.h"
#include "base/size.h"

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

void gm_flight_json(struct gm_json *json, const struct gm_trace *trace)
{
    const struct gm_checkpoint *checkpoint = trace->checkpoint;
    if (!checkpoint) {
        gm_json_null(json, "overwritten");
        return;
    }
    gm_json_open_object(json, "overwritten");
    gm_json_number(json, "until_ns", gm_clock_elapsed(&trace->clock, checkpoint->time));
    gm_json_number(json, "events", checkpoint->before.events);
    gm_json_number(json, "allocs", checkpoint->before.allocs);
    gm_json_number(json, "frees", checkpoint->before.frees);
    gm_json_number(json, "implicit_frees", checkpoint->before.implicit_frees);
    gm_json_number(json, "failed", checkpoint->before.failed);
    gm_json_number(json, "copies", checkpoint->before.copies);
    gm_json_number(json, "copied_bytes", checkpoint->before.copied);
    gm_json_close_object(json);
}
