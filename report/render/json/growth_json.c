/* See sections.h. */
#include "analysis/growing.h"
#include "render/json/sections.h"
#include "render/json_where.h"

static void write_growing(struct gm_json *json, const struct gm_analysis *analysis,
                          struct gm_stacks *stacks, const struct gm_growing *growing)
{
    static const char *const kinds[] = {
        [GM_MOMENT_NONE] = "any mark",
        [GM_MOMENT_MARK] = "mark",
        [GM_MOMENT_RANGE] = "range",
    };
    const struct gm_active_site *site = gm_growing_site(analysis, growing);
    gm_json_open_object(json, NULL);
    gm_json_number(json, "growth", gm_growing_bytes(growing));
    gm_json_string(json, "series", kinds[growing->series->kind]);
    gm_json_text(json, "name", gm_trace_string(analysis->trace, growing->series->name));
    gm_json_number(json, "marks", growing->series->marks);
    gm_json_number(json, "over", growing->over);
    gm_json_open_array(json, "bytes");
    for (size_t i = 0; i <= GM_GROWTH_PARTS; i++)
        gm_json_number(json, NULL, growing->bytes[i]);
    gm_json_close_array(json);
    gm_json_bool(json, "is_block", site->is_block);
    gm_json_kind(json, site->kind, site->device);
    gm_json_where(json, stacks, analysis, site->stack, site->api);
    gm_json_close_object(json);
}

void gm_growth_json(struct gm_json *json, const struct gm_analysis *analysis,
                    struct gm_stacks *stacks, size_t top)
{
    const struct gm_growth *growth = &analysis->activity.growth;
    size_t shown = 0;
    gm_json_open_array(json, "growing");
    for (size_t i = 0; i < growth->found_count && shown < top; i++)
        if (gm_growth_counts(analysis, &growth->found[i])) {
            write_growing(json, analysis, stacks, &growth->found[i]);
            shown++;
        }
    gm_json_close_array(json);
}
