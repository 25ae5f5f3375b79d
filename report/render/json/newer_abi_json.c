/* See sections.h. */
#include "render/json/sections.h"
#include "verdict/newer_abi.h"

void gm_newer_abi_json(struct gm_json *json, const struct gm_trace *trace)
{
    gm_json_open_array(json, "newer_abi");
    for (size_t i = 0; i < GM_NEWER_ABI_MAX; i++) {
        const struct gm_newer_abi *entry = &trace->header.newer_abi[i];
        if (!entry->api)
            continue;
        gm_json_open_object(json, NULL);
        gm_json_text(json, "name", gm_newer_abi_name(trace, entry));
        gm_json_number(json, "form", entry->form);
        gm_json_number(json, "cuda_version", entry->version);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}
