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
    if (memory->where == GM_PHASE_PINNED)
        gm_json_null(json, "device");
    else
        gm_json_signed(json, "device", memory->device);
    gm_json_number(json, "peak", memory->sums.peak);
    gm_json_signed(json, "growth", memory->sums.growth);
    gm_json_signed(json, "largest_growth", memory->sums.largest_growth);
    gm_json_number(json, "first_start", memory->sums.first);
    gm_json_number(json, "last_end", memory->sums.last);
    gm_json_number(json, "allocs", memory->sums.allocs);
    gm_json_number(json, "frees", memory->sums.frees);
    gm_json_number(json, "allocated", memory->sums.allocated);
    gm_json_close_object(json);
}

/* null where there is no name: the start and the end. */
static void write_name(struct gm_json *json, const char *key, struct gm_text name, bool has_name)
{
    if (has_name)
        gm_json_text(json, key, name);
    else
        gm_json_null(json, key);
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
    write_name(view->json, "domain", path[0]->from, path[0]->has_from);
}

static void write_phase(struct gm_json_view *view, const struct gm_model_phase *phase)
{
    struct gm_json *json = view->json;
    gm_json_open_object(json, NULL);
    if (phase->is_interval) {
        write_name(json, "from", phase->from, phase->has_from);
        write_name(json, "to", phase->name, phase->has_name);
    } else {
        write_path(view, phase);
    }
    gm_json_number(json, "count", phase->count);
    gm_json_number(json, "unfinished", phase->unfinished);
    gm_json_number(json, "time_ns", phase->time_ns);
    gm_json_open_array(json, "memory");
    for (size_t i = 0; i < phase->memory_count; i++)
        write_memory(json, &phase->memory[i]);
    gm_json_close_array(json);
    gm_json_close_object(json);
}

void gm_phases_json(struct gm_json_view *view)
{
    const struct gm_model_run *run = view->run;
    gm_json_number(view->json, "phase_count", run->phase_count);
    gm_json_number(view->json, "phases_not_kept", run->phases_not_kept);
    gm_json_open_array(view->json, "phases");
    for (size_t i = 0; i < run->phase_count && i < view->top; i++)
        write_phase(view, &run->phases[run->phase_order[i]]);
    gm_json_close_array(view->json);
}
