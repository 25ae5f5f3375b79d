/* See unpaired.h. */
#include "replay/ledger/unpaired.h"
#include "base/limit.h"

uint64_t gm_unpaired_since(const struct gm_record *record)
{
    uint64_t before = GM_CLOCK_SKEW;
    if (record->type == GM_EVENT_GRAPH_LAUNCH)
        before += record->extra; /* as long as its call took */
    return record->time > before ? record->time - before : 0;
}

void gm_unpaired_note(struct gm_unpaired *unpaired, enum gm_unpaired_kind kind,
                      const struct gm_record *record, uint64_t address, uint32_t lane)
{
    struct gm_unpaired_note *note = &unpaired->notes[unpaired->next++ % GM_UNPAIRED_KEPT];
    unpaired->count += note->kind == GM_UNPAIRED_NONE;
    *note = (struct gm_unpaired_note){address, record->time, lane, (uint8_t)kind};
}

static void clear(struct gm_unpaired *unpaired, struct gm_unpaired_note *note)
{
    note->kind = GM_UNPAIRED_NONE;
    unpaired->count--;
}

bool gm_unpaired_take(struct gm_unpaired *unpaired, enum gm_unpaired_kind kind, uint64_t address,
                      uint64_t since, uint32_t *lane)
{
    gm_limits_spend(unpaired->count);
    for (uint32_t i = 0, left = unpaired->count; left; i++) {
        struct gm_unpaired_note *note = &unpaired->notes[i];
        left -= note->kind != GM_UNPAIRED_NONE;
        if (note->kind != kind || note->address != address || note->lane == *lane ||
            note->time < since)
            continue;
        *lane = note->lane;
        clear(unpaired, note);
        return true;
    }
    return false;
}

bool gm_unpaired_is_in(const struct gm_unpaired *unpaired, uint64_t low, uint64_t high)
{
    for (uint32_t i = 0, left = unpaired->count; left; i++) {
        const struct gm_unpaired_note *note = &unpaired->notes[i];
        left -= note->kind != GM_UNPAIRED_NONE;
        if (note->kind != GM_UNPAIRED_NONE && note->address >= low && note->address <= high)
            return true;
    }
    return false;
}

void gm_unpaired_drop(struct gm_unpaired *unpaired, uint64_t address, uint32_t lane)
{
    for (uint32_t i = 0; unpaired->count && i < GM_UNPAIRED_KEPT; i++) {
        struct gm_unpaired_note *note = &unpaired->notes[i];
        if (note->kind == GM_UNPAIRED_FREE && note->address == address && note->lane == lane)
            clear(unpaired, note);
    }
}
