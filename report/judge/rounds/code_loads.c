/* See code_loads.h. */
#include "judge/rounds/code_loads.h"
#include "base/memory.h"
#include <stdbool.h>
#include <stdlib.h>

void gm_code_load(struct gm_code_loads *loads, uint64_t address, const struct gm_code_load *load)
{
    gm_map_set(&loads->by_address, address, (uint32_t)loads->count);
    GM_APPEND(loads->entries, loads->capacity, loads->count, *load);
    loads->entries[loads->count - 1].begin = loads->progress;
    loads->entries[loads->count - 1].end = UINT64_MAX;
}

void gm_code_unload(struct gm_code_loads *loads, uint64_t address)
{
    uint32_t number = gm_map_get(&loads->by_address, address);
    if (number != GM_NONE && loads->entries[number].end == UINT64_MAX)
        loads->entries[number].end = loads->progress;
}

size_t gm_code_lines(const struct gm_code_loads *loads, struct gm_code_line **lines)
{
    struct gm_map by_line = {0};
    size_t count = 0, capacity = 0;
    *lines = NULL;
    for (size_t i = 0; i < loads->count; i++) {
        const struct gm_code_load *load = &loads->entries[i];
        if (load->end < loads->progress)
            continue;
        uint32_t number = gm_map_get(&by_line, load->line);
        if (number == GM_NONE) {
            number = (uint32_t)count;
            gm_map_set(&by_line, load->line, number);
            GM_APPEND(*lines, capacity, count, (struct gm_code_line){.before = load->begin});
        }
        struct gm_code_line *line = &(*lines)[number];
        bool is_apart = !line->latest || line->latest->begin != load->begin;
        line->times += is_apart;
        line->later += is_apart && load->begin > loads->progress / 2;
        line->modules++;
        line->latest = load;
    }
    gm_map_free(&by_line);
    return count;
}

void gm_code_loads_free(struct gm_code_loads *loads)
{
    free(loads->entries);
    gm_map_free(&loads->by_address);
}
