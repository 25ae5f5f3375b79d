/* See alive.h. */
#include "flight/alive.h"
#include <string.h>

struct gm_alive gm_alive_on[GM_ALIVE_DEVICES];

static struct gm_alive *sums_of(const struct gm_carried *entry)
{
    return &gm_alive_on[entry->record.device < 0 ? 0 : entry->record.device + 1];
}

static bool is_counted(const struct gm_carried *entry)
{
    return gm_carried_is_memory(entry) && !entry->reference;
}

/* What the process took itself: as the report's sum of a device has it. */
static bool is_on_device(unsigned kind)
{
    return kind >= GM_KIND_DEVICE && kind < GM_KIND_EXTERNAL;
}

static unsigned kind_of_living(const struct gm_carried *entry)
{
    if (entry->record.type == GM_EVENT_VMM_IMPORT)
        return GM_KIND_EXTERNAL;
    return entry->record.kind < GM_KINDS ? entry->record.kind : GM_KIND_NONE;
}

uint64_t gm_alive_in_use(const struct gm_alive *sums)
{
    return gm_alive_bytes(sums) + sums->blocks - sums->pooled;
}

uint64_t gm_alive_bytes(const struct gm_alive *sums)
{
    uint64_t all = 0;
    for (unsigned kind = 0; kind < GM_KINDS; kind++)
        all += is_on_device(kind) ? sums->live[kind] : 0;
    return all;
}

/* Before something ends, and when it is asked for: not when memory comes, of which a pool may be
 * about to make a block. */
static uint64_t note_peak(struct gm_alive *sums)
{
    uint64_t now = gm_alive_in_use(sums);
    if (now > sums->peak)
        sums->peak = now;
    return sums->peak;
}

uint64_t gm_alive_peak(struct gm_alive *sums)
{
    return note_peak(sums);
}

/* The sum that the entry is part of. */
static uint64_t *counter_of_living(struct gm_alive *sums, const struct gm_carried *entry)
{
    return entry->role == GM_CARRY_BLOCK ? &sums->blocks : &sums->live[kind_of_living(entry)];
}

void gm_alive_enter(const struct gm_carried *entry)
{
    if (!is_counted(entry))
        return;
    struct gm_alive *sums = sums_of(entry);
    *counter_of_living(sums, entry) += entry->record.size;
    if (entry->pooled)
        sums->pooled += entry->record.size;
}

void gm_alive_leave(const struct gm_carried *entry)
{
    if (!is_counted(entry))
        return;
    struct gm_alive *sums = sums_of(entry);
    note_peak(sums);
    *counter_of_living(sums, entry) -= entry->record.size;
    if (entry->pooled)
        sums->pooled -= entry->record.size;
}

void gm_alive_pool(struct gm_carried *entry)
{
    if (entry->pooled || entry->ended || !is_counted(entry) || !is_on_device(kind_of_living(entry)))
        return;
    entry->pooled = true;
    sums_of(entry)->pooled += entry->record.size;
}

void gm_alive_restart(void)
{
    for (uint32_t n = 0; n < GM_ALIVE_DEVICES; n++)
        gm_alive_on[n].peak = gm_alive_in_use(&gm_alive_on[n]);
}

struct gm_left gm_alive_left(uint64_t since)
{
    struct gm_left left = {0, 0};
    for (uint32_t at = gm_carry_first(); at; at = gm_carry_at(at)->next) {
        const struct gm_carried *entry = gm_carry_at(at);
        if (!is_counted(entry) || entry->ended || entry->ignored || entry->pooled ||
            entry->record.time <= since)
            continue;
        left.bytes += entry->record.size;
        left.count++;
    }
    return left;
}

void gm_alive_forget(void)
{
    memset(gm_alive_on, 0, sizeof(gm_alive_on));
}
