/* See sections.h. */
#include "output/json/sections.h"

void gm_holes_json(struct gm_json *json, const struct gm_holes *holes)
{
    gm_json_open_object(json, "fragmentation");
    GM_JSON_MEMBERS(json, holes, allocations, live, span);
    gm_json_number(json, "holes", holes->count);
    gm_json_number(json, "free", holes->free);
    gm_json_number(json, "largest_hole", holes->largest);
    gm_json_thousandths(json, "fragmentation", gm_holes_fragmentation(holes));
    gm_json_close_object(json);
}

static void write_tally(struct gm_json *json, const struct gm_model_tally *tally, const char *key)
{
    GM_JSON_OBJECT(json, key, tally, live, peak, peak_time_ns, allocs, frees, implicit_frees);
}

static void write_residual(struct gm_json *json, const char *key,
                           const struct gm_model_residual *residual)
{
    GM_JSON_OBJECT(json, key, residual, bytes, used, tracked, time_ns, estimated);
}

static void write_device_samples(struct gm_json *json, const struct gm_model_device *device)
{
    if (device->samples) {
        gm_json_number(json, "sampled_by_process", device->used_by_process);
        gm_json_number(json, "sampled_by_all", device->fullest.bytes);
        gm_json_number(json, "sampled_by_all_time_ns", device->fullest.time_ns);
    }
    if (device->residuals) {
        gm_json_open_object(json, "residual");
        gm_json_number(json, "samples", device->residuals);
        write_residual(json, "largest", &device->largest);
        write_residual(json, "last", &device->last);
        gm_json_close_object(json);
    }
}

static void write_libraries(struct gm_json *json, const struct gm_model_device *device)
{
    static const char *const moments[GM_LIBRARY_MOMENTS] = {
        [GM_AT_PEAK] = "at_peak",
        [GM_AT_END] = "at_end",
        [GM_AT_FAILURE] = "at_out_of_memory",
    };
    gm_json_open_array(json, "libraries");
    for (size_t i = 0; i < device->library_count; i++) {
        const struct gm_library_line *line = &device->libraries[i];
        gm_json_open_object(json, NULL);
        gm_json_string(json, "library", line->name);
        gm_json_string(json, "pool", line->pool);
        for (unsigned moment = 0; moment < GM_LIBRARY_MOMENTS; moment++) {
            if (moment == GM_AT_FAILURE && !device->has_failed)
                continue;
            GM_JSON_OBJECT(json, moments[moment], &line->at[moment], bytes, count);
        }
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

static void write_device(struct gm_json_view *view, const struct gm_model_device *device)
{
    static const uint8_t kinds[] = {GM_KIND_DEVICE, GM_KIND_MANAGED, GM_KIND_ARRAY,
                                    GM_KIND_VMM,    GM_KIND_GRAPH,   GM_KIND_EXTERNAL};
    const struct gm_model_moment *peak = gm_model_moment(view->run, device->peak);
    struct gm_json *json = view->json;
    gm_json_open_object(json, NULL);
    gm_json_signed(json, "id", device->id);
    if (device->name.size)
        gm_json_text(json, "name", device->name);
    if (device->total)
        gm_json_number(json, "total", device->total);
    GM_JSON_MEMBERS(json, &device->all, live, peak, peak_time_ns);
    gm_json_open_object(json, "kinds");
    for (size_t kind = 0; kind < sizeof(kinds); kind++)
        write_tally(json, &device->kinds[kinds[kind]], gm_kind_name(kinds[kind]));
    gm_json_close_object(json);
    if (peak) {
        gm_json_open_object(json, "at_peak");
        gm_owners_json(view, peak);
        gm_holes_json(json, &peak->holes);
        gm_json_close_object(json);
    }
    gm_json_open_object(json, "at_end");
    gm_holes_json(json, &device->holes_at_end);
    gm_json_close_object(json);
    write_device_samples(json, device);
    write_libraries(json, device);
    gm_json_close_object(json);
}

void gm_devices_json(struct gm_json_view *view)
{
    gm_json_open_array(view->json, "devices");
    for (size_t i = 0; i < view->run->device_count; i++)
        if (view->run->devices[i].is_listed)
            write_device(view, &view->run->devices[i]);
    gm_json_close_array(view->json);
}

void gm_host_json(struct gm_json_view *view)
{
    const struct gm_model_tally *host = view->run->host;
    gm_json_open_object(view->json, "host");
    write_tally(view->json, &host[GM_KIND_PINNED], "pinned");
    write_tally(view->json, &host[GM_KIND_REGISTERED], "registered");
    write_tally(view->json, &host[GM_KIND_HOST_VMM], "vmm");
    gm_json_close_object(view->json);
    gm_json_open_object(view->json, "pinned_at_peak");
    gm_owners_json(view, gm_model_moment(view->run, view->run->pinned_peak));
    gm_json_close_object(view->json);
}
