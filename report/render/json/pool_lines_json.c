/* See sections.h. */
#include "pool/pool_lines.h"
#include "render/json/sections.h"

void gm_pool_lines_json(struct gm_json *json, const struct gm_analysis *analysis,
                        struct gm_stacks *stacks, const struct gm_sites *owners, size_t top)
{
    struct gm_pool_lines lines = gm_pool_lines_of(analysis->callers, owners);
    gm_json_open_array(json, "lines");
    for (size_t i = 0; i < lines.count && i < top; i++) {
        const struct gm_pool_line *line = &lines.entries[i];
        const struct gm_frame *frame =
            gm_stack_telling_frame(gm_stacks_get(stacks, line->stack, line->api));
        gm_json_open_object(json, NULL);
        gm_json_number(json, "bytes", line->bytes);
        gm_json_number(json, "count", line->count);
        gm_json_string(json, "function", frame ? frame->function : NULL);
        gm_json_string(json, "file", frame ? frame->file : NULL);
        gm_json_number(json, "line", frame ? frame->line : 0);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
    gm_pool_lines_free(&lines);
}
