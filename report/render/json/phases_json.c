/* See sections.h. */
#include "render/json/sections.h"

static void write_place(struct gm_json *json, const struct gm_phase_place *place,
                        const struct gm_phase_memory *memory)
{
    static const char *const names[] = {
        [GM_PHASE_DEVICE] = "device",
        [GM_PHASE_POOL] = "pool",
        [GM_PHASE_PINNED] = "pinned",
    };
    gm_json_open_object(json, NULL);
    gm_json_string(json, "where", names[place->where]);
    if (place->where == GM_PHASE_PINNED)
        gm_json_null(json, "device");
    else
        gm_json_signed(json, "device", place->device);
    gm_json_number(json, "peak", memory->peak);
    gm_json_signed(json, "growth", memory->growth);
    gm_json_signed(json, "largest_growth", memory->largest_growth);
    gm_json_number(json, "first_start", memory->first);
    gm_json_number(json, "last_end", memory->last);
    gm_json_number(json, "allocs", memory->allocs);
    gm_json_number(json, "frees", memory->frees);
    gm_json_number(json, "allocated", memory->allocated);
    gm_json_close_object(json);
}

/* NULL where there is no name: the start and the end. */
static void write_name(struct gm_json *json, const struct gm_analysis *analysis, const char *key,
                       uint32_t name)
{
    if (name)
        gm_json_text(json, key, gm_trace_string(analysis->trace, name));
    else
        gm_json_null(json, key);
}

static void write_path(struct gm_json *json, const struct gm_analysis *analysis,
                       const struct gm_phase *phase)
{
    const struct gm_phase *path[GM_PHASE_DEPTH];
    size_t count = 0;
    for (; count < GM_PHASE_DEPTH; phase = &analysis->phases.entries[phase->parent]) {
        path[count++] = phase;
        if (phase->parent == GM_NONE)
            break;
    }
    gm_json_open_array(json, "path");
    while (count-- > 0)
        gm_json_text(json, NULL, gm_trace_string(analysis->trace, path[count]->name));
    gm_json_close_array(json);
    write_name(json, analysis, "domain", path[0]->from);
}

static void write_phase(struct gm_json *json, const struct gm_analysis *analysis,
                        const struct gm_phase *phase)
{
    gm_json_open_object(json, NULL);
    if (phase->is_interval) {
        write_name(json, analysis, "from", phase->from);
        write_name(json, analysis, "to", phase->name);
    } else {
        write_path(json, analysis, phase);
    }
    gm_json_number(json, "count", phase->count);
    gm_json_number(json, "unfinished", phase->unfinished);
    gm_json_number(json, "time_ns", gm_phase_time(phase, &analysis->trace->clock));
    gm_json_open_array(json, "memory");
    for (size_t i = 0; i < phase->memory_count; i++)
        if (gm_phase_is_touched(&phase->memory[i]))
            write_place(json, &analysis->phases.places[i], &phase->memory[i]);
    gm_json_close_array(json);
    gm_json_close_object(json);
}

void gm_phases_json(struct gm_json *json, const struct gm_analysis *analysis, size_t top)
{
    const struct gm_phases *phases = &analysis->phases;
    gm_json_number(json, "phase_count", phases->count);
    gm_json_number(json, "phases_not_kept", phases->not_kept);
    gm_json_open_array(json, "phases");
    for (size_t i = 0; i < phases->count && i < top; i++)
        write_phase(json, analysis, &phases->entries[phases->order[i]]);
    gm_json_close_array(json);
}
