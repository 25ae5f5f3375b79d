/* Sorted array of address ranges; the contract is in symbolize_intervals.h. */
#include "names/symbols/symbolize_intervals.h"
#include "base/order.h"

#include <stdlib.h>

/* Sound files need one or two steps: ranges of one kind hardly overlap. */
enum { SEARCH_STEPS = 256 };

bool gm_intervals_add(struct gm_intervals *set, struct gm_interval item)
{
    if (item.start >= item.end)
        return true;
    if (set->count == set->capacity) {
        size_t capacity = set->capacity == 0 ? 16 : set->capacity * 2;
        struct gm_interval *items = realloc(set->items, capacity * sizeof(*items));
        if (items == NULL)
            return false;
        set->items = items;
        set->capacity = capacity;
    }
    set->items[set->count++] = item;
    return true;
}

/* A search goes backwards, so what is to be found first comes last. */
GM_ORDER(compare_intervals, struct gm_interval,
         GM_UP(start) GM_DOWN(end) GM_UP(preference) GM_DOWN(value))

void gm_intervals_sort(struct gm_intervals *set)
{
    if (set->count > 1)
        qsort(set->items, set->count, sizeof(set->items[0]), compare_intervals);
}

void gm_intervals_clear(struct gm_intervals *set)
{
    free(set->items);
    *set = (struct gm_intervals){0};
}

struct gm_interval_search gm_intervals_search(const struct gm_intervals *set, uint64_t address)
{
    size_t at;

    GM_BISECT(at, set->count, set->items[at].start <= address);
    return (struct gm_interval_search){
        .set = set, .address = address, .position = at, .steps_left = SEARCH_STEPS};
}

const struct gm_interval *gm_intervals_next(struct gm_interval_search *search)
{
    while (search->position > 0 && search->steps_left > 0) {
        const struct gm_interval *item = &search->set->items[--search->position];
        search->steps_left--;
        if (search->address < item->end)
            return item;
    }
    return NULL;
}
