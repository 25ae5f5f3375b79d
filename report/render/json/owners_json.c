/* See sections.h. */
#include "render/json/sections.h"
#include "render/json_where.h"

void gm_owners_json(struct gm_json *json, const struct gm_analysis *analysis,
                    struct gm_stacks *stacks, const struct gm_sites *owners, size_t top)
{
    gm_json_number(json, "owner_count", owners->count);
    gm_json_open_array(json, "owners");
    for (size_t i = 0; i < owners->count && i < top; i++) {
        const struct gm_site *site = &owners->entries[i];
        gm_json_open_object(json, NULL);
        gm_json_number(json, "bytes", site->bytes);
        gm_json_number(json, "count", site->count);
        gm_json_kind(json, site->kind, site->device);
        gm_json_where(json, stacks, analysis, site->stack, site->api);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}
