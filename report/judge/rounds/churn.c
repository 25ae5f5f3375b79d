/* See churn.h. */
#include "judge/rounds/churn.h"
#include "base/memory.h"
#include <stdlib.h>

static struct gm_churn_device *churn_device(struct gm_churn *churn, int device)
{
    return &churn->device[gm_device_slot(device)];
}

static void note_place(struct gm_churn *churn, uint64_t line, const struct gm_churn_place *place,
                       uint64_t again)
{
    uint64_t key = line * 0x9e3779b97f4a7c15u ^ (uint8_t)place->device;
    uint32_t number = gm_map_get(&churn->by_line, key);
    if (number == GM_NONE && churn->place_count < GM_CHURN_PLACES) {
        number = (uint32_t)churn->place_count;
        GM_APPEND(churn->places, churn->place_capacity, churn->place_count, *place);
        churn->places[number].bytes = 0;
        gm_map_set(&churn->by_line, key, number);
    }
    if (number != GM_NONE)
        churn->places[number].bytes = gm_add_saturated(churn->places[number].bytes, again);
}

void gm_churn_take(struct gm_churn *churn, uint64_t line, const struct gm_churn_place *place)
{
    struct gm_churn_device *of = churn_device(churn, place->device);
    uint64_t again = place->bytes < of->returned ? place->bytes : of->returned;
    of->live += place->bytes;
    of->peak = of->live > of->peak ? of->live : of->peak;
    of->returned -= again;
    of->again = gm_add_saturated(of->again, again);
    of->taken += again > 0;
    of->refused += of->was_refused;
    of->was_refused = of->gives_back = false;
    if (again)
        note_place(churn, line, place, again);
}

void gm_churn_give(struct gm_churn *churn, int device, uint64_t size)
{
    struct gm_churn_device *of = churn_device(churn, device);
    of->live -= size < of->live ? size : of->live;
    of->returned += size;
    of->batches += !of->gives_back;
    of->gives_back = true;
}

void gm_churn_refuse(struct gm_churn *churn, int device)
{
    churn_device(churn, device)->was_refused = true;
}

const struct gm_churn_place *gm_churn_most(const struct gm_churn *churn, int device)
{
    const struct gm_churn_place *most = NULL;
    for (size_t i = 0; i < churn->place_count; i++)
        if (churn->places[i].device == device && (!most || churn->places[i].bytes > most->bytes))
            most = &churn->places[i];
    return most;
}

void gm_churn_free(struct gm_churn *churn)
{
    free(churn->places);
    gm_map_free(&churn->by_line);
}
