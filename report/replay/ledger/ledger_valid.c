/* Whether the parts of a ledger agree with one another (ledger.h). For checked builds: base/assert.h. */
#include "replay/ledger/ledger.h"
#include <string.h>

/* Each slot holds the hash of its element and is found by its address. */
bool gm_index_is_valid(const struct gm_index *index, struct gm_indexed of)
{
    size_t filled = 0;
    for (size_t at = 0; at < index->capacity; at++) {
        const struct gm_index_slot *slot = &index->slots[at];
        uint64_t address;
        if (slot->number == GM_NONE)
            continue;
        memcpy(&address, (const char *)of.elements + slot->number * of.stride, sizeof(address));
        if (slot->hash != gm_index_hash(index, address) ||
            gm_index_find(index, address, of) != slot || ++filled == index->capacity)
            return false;
    }
    return filled == index->count;
}

static bool is_life_sound(const struct gm_life *life)
{
    return gm_kind_is_valid(life->kind) && life->slot == gm_device_slot(life->device) &&
           (life->flags & GM_LIFE_ADDRESSED) == (life->object == GM_NONE ? GM_LIFE_ADDRESSED : 0);
}

/* Each slot in use is alive, or in the list of free ones. */
static bool are_slots_counted(const struct gm_lives *lives)
{
    uint32_t alive = 0, unused = 0;
    for (uint32_t i = 0; i < lives->used; i++) {
        bool is_alive = lives->slots[i].kind != GM_KIND_NONE;
        if (is_alive && !is_life_sound(&lives->slots[i]))
            return false;
        alive += is_alive;
    }
    for (uint32_t at = lives->free; at != GM_NONE; at = lives->slots[at].next)
        if (at >= lives->used || lives->slots[at].kind != GM_KIND_NONE || unused++ == lives->used)
            return false;
    return alive == lives->count && alive + unused == lives->used && lives->used <= lives->capacity;
}

/* What the index names is alive and has an address. */
static bool is_index_of_the_living(const struct gm_lives *lives)
{
    for (size_t i = 0; i < lives->by_address.capacity; i++) {
        uint32_t number = lives->by_address.slots[i].number;
        if (number != GM_NONE &&
            (number >= lives->used || lives->slots[number].kind == GM_KIND_NONE ||
             !(lives->slots[number].flags & GM_LIFE_ADDRESSED)))
            return false;
    }
    return gm_index_is_valid(&lives->by_address, gm_lives_indexed(lives));
}

/* Length of a list of lives that end with a context, linked in both directions; GM_NONE: it is not. */
static uint32_t length_of_list(const struct gm_lives *lives, uint32_t first)
{
    uint32_t length = 0, before = GM_NONE;
    for (uint32_t at = first; at != GM_NONE; before = at, at = lives->slots[at].next) {
        if (at >= lives->used || lives->slots[at].previous != before ||
            !(lives->slots[at].flags & GM_LIFE_MORTAL) || length++ == lives->used)
            return GM_NONE;
    }
    return length;
}

static bool are_mortals_listed(const struct gm_ledger *ledger)
{
    const struct gm_lives *lives = &ledger->lives;
    uint64_t listed = length_of_list(lives, ledger->mortals.first_untold), mortals = 0;
    for (size_t i = 0; i < ledger->mortals.count; i++)
        listed += length_of_list(lives, ledger->mortals.first[i]);
    for (size_t i = 0; i < GM_DEVICES; i++)
        listed += length_of_list(lives, ledger->mortals.first_unknown[i]);
    for (uint32_t i = 0; i < lives->used; i++)
        mortals +=
            lives->slots[i].kind != GM_KIND_NONE && (lives->slots[i].flags & GM_LIFE_MORTAL) != 0;
    return listed == mortals;
}

/* The sums of what lives are those that were counted, and no peak is below them. */
static bool are_sums_right(const struct gm_ledger *ledger)
{
    struct gm_counters sums = {0};
    for (uint32_t i = 0; i < ledger->lives.used; i++) {
        const struct gm_life *life = &ledger->lives.slots[i];
        if (life->kind != GM_KIND_NONE)
            gm_counters_add(&sums, life->kind, life->slot, life->size, 0, 0);
    }
    const struct gm_counters *counted = &ledger->counters;
    for (size_t i = 0; i < GM_DEVICES; i++) {
        const struct gm_device_totals *device = &counted->device[i];
        for (unsigned kind = 0; kind <= GM_KIND_EXTERNAL; kind++)
            if (device->kind[kind].live != sums.device[i].kind[kind].live ||
                device->kind[kind].live > device->kind[kind].peak.bytes)
                return false;
        if (device->live != sums.device[i].live || device->live > device->peak.bytes)
            return false;
    }
    for (unsigned kind = 0; kind < GM_KINDS; kind++)
        if (counted->host[kind].live != sums.host[kind].live)
            return false;
    return counted->live == sums.live;
}

bool gm_ledger_is_valid(const struct gm_ledger *ledger)
{
    return are_slots_counted(&ledger->lives) && is_index_of_the_living(&ledger->lives) &&
           are_mortals_listed(ledger) && are_sums_right(ledger);
}
