/* What is alive: one entry per allocation, found by address, by context or all in turn. */
#ifndef GPUMEM_REPORT_LEDGER_LIVES_H
#define GPUMEM_REPORT_LEDGER_LIVES_H

#include "base/map.h"
#include <gpumem/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gm_life_flag {
    GM_LIFE_ADDRESSED = 1u << 0, /* found by its address (VMM memory is known by handle instead) */
    GM_LIFE_LATE = 1u << 1,      /* its free came when the driver was shut down already */
    GM_LIFE_MORTAL = 1u << 2,    /* ends with its context; linked into that context's list */
    GM_LIFE_IGNORED = 1u << 3,   /* no leak, as the program says */
};

/* One allocation. */
struct gm_life {
    uint64_t address; /* or handle, for VMM memory */
    uint64_t size;    /* bytes */
    uint64_t time;    /* of birth, record clock */
    uint64_t entered; /* step of the ledger at which it came to life, or came back */
    uint32_t stack;
    uint32_t object;     /* of the VMM that this is the memory of; GM_NONE */
    uint32_t references; /* further openings of external memory at the same address */
    uint32_t next;       /* in the list of its context; GM_NONE at the end */
    uint32_t previous;
    uint32_t place;   /* for the observer of the ledger, who may set it when the life begins */
    uint16_t context; /* 0: unknown */
    uint16_t api;
    uint8_t kind; /* enum gm_kind; GM_KIND_NONE: the slot is free */
    int8_t device;
    uint8_t flags; /* enum gm_life_flag */
};
_Static_assert(sizeof(struct gm_life) == 64, "a life is one line of the cache");

struct gm_lives {
    struct gm_life *slots; /* each at a multiple of its size */
    void *memory;          /* in which they stand */
    size_t capacity;
    uint32_t used;  /* slots in use or free again */
    uint32_t free;  /* list by `next`; GM_NONE at the end */
    uint32_t count; /* alive */
    struct gm_map by_address;
};

void gm_lives_begin(struct gm_lives *lives);
void gm_lives_end(struct gm_lives *lives);

/* Makes room for one slot more. */
void gm_lives_grow(struct gm_lives *lives);

/* Adds a life and returns its number, which stays until it is removed. */
static inline uint32_t gm_lives_add(struct gm_lives *lives, const struct gm_life *life)
{
    uint32_t number = lives->free;
    if (number != GM_NONE) {
        lives->free = lives->slots[number].next;
    } else {
        if (lives->used == lives->capacity)
            gm_lives_grow(lives);
        number = lives->used++;
    }
    lives->slots[number] = *life;
    lives->slots[number].next = lives->slots[number].previous = GM_NONE;
    lives->count++;
    if (life->flags & GM_LIFE_ADDRESSED)
        gm_map_set(&lives->by_address, life->address, number);
    return number;
}

static inline void gm_lives_remove(struct gm_lives *lives, uint32_t number)
{
    struct gm_life *life = &lives->slots[number];
    if (life->flags & GM_LIFE_ADDRESSED)
        gm_map_remove(&lives->by_address, life->address);
    life->kind = GM_KIND_NONE;
    life->next = lives->free;
    lives->free = number;
    lives->count--;
}

/* Number of the life at an address, GM_NONE if there is none. */
static inline uint32_t gm_lives_find(const struct gm_lives *lives, uint64_t address)
{
    return gm_map_get(&lives->by_address, address);
}

/* Records are about to be booked: brings near what lives at their addresses. */
void gm_lives_prefetch(const struct gm_lives *lives, const struct gm_record *records, size_t count);

/* Puts a life at the front of the list that starts at `*first`, or takes it out. */
static inline void gm_lives_link(struct gm_lives *lives, uint32_t *first, uint32_t number)
{
    lives->slots[number].next = *first;
    lives->slots[number].previous = GM_NONE;
    if (*first != GM_NONE)
        lives->slots[*first].previous = number;
    *first = number;
}

static inline void gm_lives_unlink(struct gm_lives *lives, uint32_t *first, uint32_t number)
{
    const struct gm_life *life = &lives->slots[number];
    if (life->previous == GM_NONE)
        *first = life->next;
    else
        lives->slots[life->previous].next = life->next;
    if (life->next != GM_NONE)
        lives->slots[life->next].previous = life->previous;
}

#endif
