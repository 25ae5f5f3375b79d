/* See sections.h. */
#include "analysis/library_table.h"
#include "render/json/sections.h"

void gm_libraries_json(struct gm_json *json, const struct gm_analysis *analysis, int device)
{
    static const char *const moments[GM_LIBRARY_MOMENTS] = {
        [GM_AT_PEAK] = "at_peak",
        [GM_AT_END] = "at_end",
        [GM_AT_FAILURE] = "at_out_of_memory",
    };
    struct gm_libraries *libraries = gm_libraries_new(analysis->trace);
    struct gm_library_table table = gm_library_table_of(libraries, analysis, device);
    gm_json_open_array(json, "libraries");
    for (size_t i = 0; i < table.count; i++) {
        const struct gm_library_line *line = &table.lines[i];
        gm_json_open_object(json, NULL);
        gm_json_string(json, "library", line->name);
        gm_json_string(json, "pool", line->pool);
        for (unsigned moment = 0; moment < GM_LIBRARY_MOMENTS; moment++) {
            if (moment == GM_AT_FAILURE && !table.failure_time)
                continue;
            gm_json_open_object(json, moments[moment]);
            gm_json_number(json, "bytes", line->at[moment].bytes);
            gm_json_number(json, "count", line->at[moment].count);
            gm_json_close_object(json);
        }
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
    gm_library_table_free(&table);
    gm_libraries_free(libraries);
}
