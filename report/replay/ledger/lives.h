/* What is alive: one entry per allocation, found by address, by context or all in turn. */
#ifndef GPUMEM_REPORT_LEDGER_LIVES_H
#define GPUMEM_REPORT_LEDGER_LIVES_H

#include "replay/ledger/index.h"
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
    uint8_t kind;  /* enum gm_kind; GM_KIND_NONE: the slot is free */
    int8_t device; /* set with `slot`: gm_life_set_device */
    uint8_t flags; /* enum gm_life_flag */
    uint8_t slot;  /* gm_device_slot(device): asked for again and again */
};
_Static_assert(sizeof(struct gm_life) == 64, "a life is one line of the cache");

struct gm_lives {
    struct gm_life *slots; /* each at a multiple of its size */
    void *memory;          /* in which they stand */
    size_t capacity;
    uint32_t used;  /* slots in use or free again */
    uint32_t free;  /* list by `next`; GM_NONE at the end */
    uint32_t count; /* alive */
    struct gm_index by_address;
};

void gm_lives_begin(struct gm_lives *lives);
void gm_lives_end(struct gm_lives *lives);

/* Makes room for one slot more. */
void gm_lives_grow(struct gm_lives *lives);

static inline struct gm_indexed gm_lives_indexed(const struct gm_lives *lives)
{
    return (struct gm_indexed){lives->slots, sizeof(*lives->slots)};
}

/* A slot for a life that is about to begin, which the caller fills in, all but its links, and enters.
 * Valid until the next one is asked for. */
static inline struct gm_life *gm_lives_draft(struct gm_lives *lives)
{
    uint32_t number = lives->free;
    if (number == GM_NONE) {
        if (lives->used == lives->capacity)
            gm_lives_grow(lives);
        return &lives->slots[lives->used++];
    }
    lives->free = lives->slots[number].next;
    return &lives->slots[number];
}

/* Where an address goes in the index; the slot is filled if something lives there. NULL: there is no
 * room. */
static inline struct gm_index_slot *gm_lives_place(struct gm_lives *lives, uint64_t address)
{
    return gm_index_place(&lives->by_address, address, gm_lives_indexed(lives));
}

/* Enters a draft and returns its number, which stays until it is removed. `slot`: where its address
 * goes in the index; NULL: it has none, or there is no room. */
static inline uint32_t gm_lives_enter(struct gm_lives *lives, struct gm_life *life,
                                      struct gm_index_slot *slot)
{
    uint32_t number = (uint32_t)(life - lives->slots);
    life->next = life->previous = GM_NONE;
    lives->count++;
    if (slot)
        gm_index_fill(&lives->by_address, slot, number);
    return number;
}

/* The slot of the index for what lives at an address, NULL if there is nothing. */
static inline struct gm_index_slot *gm_lives_slot(const struct gm_lives *lives, uint64_t address)
{
    return gm_index_get(&lives->by_address, address, gm_lives_indexed(lives));
}

/* `slot`: of its address in the index; NULL: it is to be looked for, if the life has one. */
static inline void gm_lives_remove(struct gm_lives *lives, uint32_t number,
                                   struct gm_index_slot *slot)
{
    struct gm_life *life = &lives->slots[number];
    if (!slot && life->flags & GM_LIFE_ADDRESSED)
        slot = gm_lives_slot(lives, life->address);
    if (slot)
        gm_index_empty(&lives->by_address, slot);
    life->kind = GM_KIND_NONE;
    life->next = lives->free;
    lives->free = number;
    lives->count--;
}

/* Number of the life at an address, GM_NONE if there is none. */
static inline uint32_t gm_lives_find(const struct gm_lives *lives, uint64_t address)
{
    const struct gm_index_slot *slot = gm_lives_slot(lives, address);
    return slot ? slot->number : GM_NONE;
}

/* Records are about to be booked: brings near what lives at their addresses. */
void gm_lives_prefetch(const struct gm_lives *lives, const struct gm_record *records, size_t count);

/* Puts a life at the front of the list that starts at `*first`, or takes it out: if none was before it, the
 * list starts with the next one then. */
static inline void gm_lives_link(struct gm_lives *lives, uint32_t *first, struct gm_life *life)
{
    uint32_t number = (uint32_t)(life - lives->slots);
    life->next = *first;
    life->previous = GM_NONE;
    if (*first != GM_NONE)
        lives->slots[*first].previous = number;
    *first = number;
}

static inline void gm_lives_unlink(struct gm_lives *lives, const struct gm_life *life)
{
    if (life->previous != GM_NONE)
        lives->slots[life->previous].next = life->next;
    if (life->next != GM_NONE)
        lives->slots[life->next].previous = life->previous;
}

#endif
