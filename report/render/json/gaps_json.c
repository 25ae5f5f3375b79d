/* See sections.h. */
#include "analysis/recorder_counters.h"
#include "render/json/sections.h"
#include "verdict/completeness.h"

void gm_gaps_json(struct gm_json *json, const struct gm_analysis *analysis)
{
    struct gm_gap gap;
    gm_json_open_array(json, "gaps");
    for (size_t at = 0; gm_gap_next(analysis, &at, &gap);) {
        gm_json_open_object(json, NULL);
        gm_json_string(json, "code", gap.code);
        gm_json_bool(json, "loss", gap.effect == GM_GAP_LOSS);
        gm_json_number(json, "count", gap.count);
        gm_json_string(json, "text", gap.text);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

void gm_recorder_json(struct gm_json *json, const struct gm_analysis *analysis)
{
    const struct gm_trace *trace = analysis->trace;
    gm_json_open_object(json, "recorder");
    for (unsigned i = 0; i < GM_COUNTERS; i++)
        if (gm_counter_rule(i)->name)
            gm_json_number(json, gm_counter_rule(i)->name, trace->header.counters[i]);
    struct gm_text python = gm_trace_string(trace, trace->header.python_state);
    if (python.size)
        gm_json_text(json, "python", python);
    gm_json_close_object(json);
}
