/* See sections.h. */
#include "render/json/sections.h"

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
