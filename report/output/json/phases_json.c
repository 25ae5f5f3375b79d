/* See sections.h. */
#include "output/json/sections.h"

static void write_memory(struct gm_json *json, const struct gm_model_phase_memory *memory)
{
    static const char *const names[] = {
        [GM_PHASE_DEVICE] = "device",
        [GM_PHASE_POOL] = "pool",
        [GM_PHASE_PINNED] = "pinned",
    };
    gm_json_open_object(json, NULL);
    gm_json_string(json, "where", names[memory->where]);
    GM_JSON_IF(json, "device", memory->where != GM_PHASE_PINNED, memory->device);
    GM_JSON_MEMBERS(json, &memory->sums, peak, growth, largest_growth);
    gm_json_number(json, "first_start", memory->sums.first);
    gm_json_number(json, "last_end", memory->sums.last);
    GM_JSON_MEMBERS(json, &memory->sums, allocs, frees, allocated);
    gm_json_close_object(json);
}

static void write_path(struct gm_json_view *view, const struct gm_model_phase *phase)
{
    const struct gm_model_phase *path[GM_PHASE_DEPTH];
    size_t count = 0;
    for (; count < GM_PHASE_DEPTH; phase = &view->run->phases[phase->parent]) {
        path[count++] = phase;
        if (phase->parent == GM_NONE)
            break;
    }
    gm_json_open_array(view->json, "path");
    while (count-- > 0)
        gm_json_text(view->json, NULL, path[count]->name);
    gm_json_close_array(view->json);
    GM_JSON_IF(view->json, "domain", path[0]->has_from, path[0]->from);
}

static void write_phase(struct gm_json_view *view, const struct gm_model_phase *phase)
{
    struct gm_json *json = view->json;
    gm_json_open_object(json, NULL);
    if (phase->is_interval) {
        GM_JSON_IF(json, "from", phase->has_from, phase->from);
        GM_JSON_IF(json, "to", phase->has_name, phase->name);
    } else {
        write_path(view, phase);
    }
    GM_JSON_MEMBERS(json, phase, count, unfinished, time_ns);
    gm_json_open_array(json, "memory");
    for (size_t i = 0; i < phase->memory_count; i++)
        write_memory(json, &phase->memory[i]);
    gm_json_close_array(json);
    gm_json_close_object(json);
}

void gm_phases_json(struct gm_json_view *view)
{
    const struct gm_model_run *run = view->run;
    GM_JSON_MEMBERS(view->json, run, phase_count, phases_not_kept);
    gm_json_open_array(view->json, "phases");
    for (size_t i = 0; i < run->phase_count && i < view->top; i++)
        write_phase(view, &run->phases[run->phase_order[i]]);
    gm_json_close_array(view->json);
}
