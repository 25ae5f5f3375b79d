/* Whether what is carried agrees with itself and with the sums over it. For checked builds: base/assert.h. */
#include "flight/alive.h"
#include <string.h>

static bool is_in_chain(uint32_t number)
{
    const struct gm_carried *entry = gm_carry_at(number);
    uint32_t at = gm_carry_find(entry->role, entry->key);
    while (at && at != number)
        at = gm_carry_at(at)->chain;
    return at == number;
}

/* What is in a tree overlaps no other of its role, so that it is what is found at its place. */
static bool is_in_tree(uint32_t number)
{
    const struct gm_carried *entry = gm_carry_at(number);
    return entry->found &&
           gm_carry_overlapping(entry->role, entry->record.address, entry->record.size) == number;
}

bool gm_carry_is_valid(void)
{
    uint32_t count = 0, before = 0;
    for (uint32_t at = gm_carry_first(); at; before = at, at = gm_carry_at(at)->next) {
        const struct gm_carried *entry = gm_carry_at(at);
        if (entry->role == GM_CARRY_FREE || entry->role == GM_CARRY_NODE ||
            entry->previous != before || count++ == gm_carry_count() ||
            (entry->found && !is_in_chain(at)) || (entry->ranged && !is_in_tree(at)))
            return false;
    }
    return count == gm_carry_count();
}

/* The sums are those of the entries that have not ended. */
bool gm_alive_is_valid(void)
{
    static struct gm_alive kept[GM_ALIVE_DEVICES]; /* under gm_pack_lock, as all of this */
    bool is_valid = true;
    memcpy(kept, gm_alive_on, sizeof(kept));
    gm_alive_forget();
    for (uint32_t at = gm_carry_first(); at; at = gm_carry_at(at)->next)
        if (!gm_carry_at(at)->ended)
            gm_alive_enter(gm_carry_at(at));
    for (uint32_t n = 0; n < GM_ALIVE_DEVICES; n++)
        is_valid &= memcmp(kept[n].live, gm_alive_on[n].live, sizeof(kept[n].live)) == 0 &&
                    kept[n].blocks == gm_alive_on[n].blocks &&
                    kept[n].pooled == gm_alive_on[n].pooled;
    memcpy(gm_alive_on, kept, sizeof(kept));
    return is_valid;
}
