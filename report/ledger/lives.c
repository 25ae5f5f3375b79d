/* See lives.h. */
#include "ledger/lives.h"
#include "base/memory.h"
#include <stdlib.h>

void gm_lives_begin(struct gm_lives *lives)
{
    *lives = (struct gm_lives){.free = GM_NONE};
}

void gm_lives_end(struct gm_lives *lives)
{
    free(lives->slots);
    gm_map_free(&lives->by_address);
}

uint32_t gm_lives_add(struct gm_lives *lives, const struct gm_life *life)
{
    uint32_t number = lives->free;
    if (number != GM_NONE) {
        lives->free = lives->slots[number].next;
    } else {
        number = lives->used++;
        GM_RESERVE(lives->slots, lives->capacity, lives->used);
    }
    lives->slots[number] = *life;
    lives->slots[number].next = lives->slots[number].previous = GM_NONE;
    lives->count++;
    if (life->flags & GM_LIFE_ADDRESSED)
        gm_map_set(&lives->by_address, life->address, number);
    return number;
}

void gm_lives_remove(struct gm_lives *lives, uint32_t number)
{
    struct gm_life *life = &lives->slots[number];
    if (life->flags & GM_LIFE_ADDRESSED)
        gm_map_remove(&lives->by_address, life->address);
    life->kind = GM_KIND_NONE;
    life->next = lives->free;
    lives->free = number;
    lives->count--;
}

uint32_t gm_lives_find(const struct gm_lives *lives, uint64_t address)
{
    return gm_map_get(&lives->by_address, address);
}

void gm_lives_link(struct gm_lives *lives, uint32_t *first, uint32_t number)
{
    lives->slots[number].next = *first;
    lives->slots[number].previous = GM_NONE;
    if (*first != GM_NONE)
        lives->slots[*first].previous = number;
    *first = number;
}

void gm_lives_unlink(struct gm_lives *lives, uint32_t *first, uint32_t number)
{
    const struct gm_life *life = &lives->slots[number];
    if (life->previous == GM_NONE)
        *first = life->next;
    else
        lives->slots[life->previous].next = life->next;
    if (life->next != GM_NONE)
        lives->slots[life->next].previous = life->previous;
}
