/* See birthplace.h. */
#include "judge/rounds/birthplace.h"
#include "names/stacks/category.h"
#include "replay/ledger/counters.h"

enum gm_round_sort gm_round_sort_of(const struct gm_round_tellers *tellers, bool is_block,
                                    unsigned kind, uint32_t stack)
{
    static const uint32_t kinds =
        1u << GM_KIND_DEVICE | 1u << GM_KIND_MANAGED | 1u << GM_KIND_ARRAY | 1u << GM_KIND_VMM;
    if (is_block)
        return GM_ROUND_BLOCKS;
    if (!(kinds >> kind & 1) || gm_owners_get(tellers->owners, stack) & GM_OWNER_VENDOR)
        return GM_ROUND_SORTS;
    return gm_owners_cache(tellers->owners, kind, stack) ? GM_ROUND_CACHED : GM_ROUND_OWN;
}

struct gm_round_birthplace gm_round_birthplace_of(const struct gm_round_tellers *tellers,
                                                  bool is_block, unsigned kind, int device,
                                                  uint32_t stack)
{
    struct gm_round_birthplace place = {
        .device = device,
        .sort = gm_round_sort_of(tellers, is_block, kind, stack),
    };
    if (place.sort == GM_ROUND_SORTS)
        return place;
    place.category = gm_categories_get(tellers->categories, stack);
    /* Without any stack, all that the stream holds is one place. */
    place.line = gm_callers_line(tellers->callers, stack) + 1;
    place.way = gm_callers_way(tellers->callers, stack);
    return place;
}
