/* See top.h. One line for each look: docs/top.md. */
#include "base/text.h"
#include "output/json.h"
#include "replay/ledger/counters.h"
#include "tools/top/top.h"

static void write_pool(struct gm_json *json, const struct gm_block_totals *blocks)
{
    if (!blocks->allocs)
        return;
    gm_json_open_object(json, "framework_blocks");
    gm_json_number(json, "live", blocks->live);
    gm_json_number(json, "peak", blocks->peak.bytes);
    gm_json_number(json, "reserved", blocks->reserved);
    gm_json_number(json, "reserved_peak", blocks->reserved_peak.bytes);
    gm_json_close_object(json);
}

static void write_top_devices(struct gm_json *json, const struct gm_follow *follow)
{
    gm_json_open_array(json, "devices");
    for (int slot = 0; slot < GM_DEVICES; slot++) {
        const struct gm_device_totals *totals = &follow->replay->ledger.counters.device[slot];
        const struct gm_follow_device *device = &follow->devices[slot];
        if (!totals->seen && !device->used)
            continue;
        gm_json_open_object(json, NULL);
        gm_json_signed(json, "id", slot - 1);
        if (device->total)
            gm_json_number(json, "total", device->total);
        gm_json_number(json, "live", totals->live);
        gm_json_number(json, "peak", totals->peak.bytes);
        if (device->used) {
            gm_json_number(json, "used_by_process", device->used);
            gm_json_number(json, "residual", device->residual);
        }
        write_pool(json, &follow->blocks->device[slot]);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

static void write_top_places(struct gm_json *json, const struct gm_top *top,
                             const struct gm_follow *follow)
{
    gm_json_open_array(json, "places");
    for (size_t i = 0; i < top->place_count; i++) {
        const struct gm_top_place *place = &top->places[i];
        gm_json_open_object(json, NULL);
        GM_JSON_MEMBERS(json, &place->site, bytes, count);
        gm_json_signed(json, "grown", place->grown);
        gm_json_string(json, "kind", gm_kind_name(place->site.kind));
        GM_JSON_IF(json, "device", !gm_kind_is_host(place->site.kind), place->site.device);
        gm_json_bool(json, "is_block", place->is_block);
        gm_json_string(json, "api", gm_trace_api(follow->trace, place->site.api));
        gm_json_string(json, "place", place->name);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

void gm_top_json(FILE *out, const struct gm_top *top, const struct gm_follow *follow)
{
    static const char *const endings[] = {[GM_ENDING_NORMAL] = "normal",
                                          [GM_ENDING_RUNNING] = "running",
                                          [GM_ENDING_CUT] = "cut",
                                          [GM_ENDING_FAILED] = "failed"};
    const struct gm_trace_header *header = &follow->trace->header;
    struct gm_json json = {.out = out, .on_one_line = true};
    gm_json_open_object(&json, NULL);
    gm_json_number(&json, "pid", header->pid);
    gm_json_text(&json, "executable",
                 gm_trace_field(header->executable, sizeof(header->executable)));
    gm_json_string(&json, "ending", endings[follow->trace->ending]);
    gm_json_bool(&json, "simulated", header->flags & GM_HEADER_SIMULATED);
    GM_JSON_MEMBERS(&json, follow, as_of_ns, events);
    gm_json_number(&json, "grown_since_ns", top->since_ns);
    write_top_devices(&json, follow);
    gm_json_open_object(&json, "pinned");
    gm_json_number(&json, "live", follow->replay->ledger.counters.host[GM_KIND_PINNED].live);
    gm_json_number(&json, "peak", follow->replay->ledger.counters.host[GM_KIND_PINNED].peak.bytes);
    gm_json_close_object(&json);
    gm_json_open_array(&json, "libraries");
    for (size_t i = 0; i < top->library_count; i++) {
        gm_json_open_object(&json, NULL);
        gm_json_string(&json, "library", top->libraries[i].name);
        GM_JSON_MEMBERS(&json, &top->libraries[i], bytes, count);
        gm_json_close_object(&json);
    }
    gm_json_close_array(&json);
    write_top_places(&json, top, follow);
    gm_json_close_object(&json);
    gm_json_end(&json);
    fflush(out);
}
