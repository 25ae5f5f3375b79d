/* Contexts: which allocations end with which context, and who created it. */
#ifndef GPUMEM_REPORT_REPLAY_CONTEXT_H
#define GPUMEM_REPORT_REPLAY_CONTEXT_H

#include "base/map.h"
#include "ledger/counters.h"
#include <stdbool.h>
#include <stdint.h>

struct gm_entry;
struct gm_record;
struct gm_replay;
struct gm_journal;
struct gm_undo;

struct gm_context {
    bool known; /* a CONTEXT record told of it */
    bool primary;
    bool unseen_reference; /* in use without a RETAIN on record: someone we did not see holds it */
    uint32_t references;   /* of a primary context: RETAINs on record */
    uint32_t first_life;   /* list of the allocations that end with it */
    uint64_t address;      /* CUcontext */
    uint64_t time;         /* created or first seen, record clock */
    uint32_t stack;        /* who did */
    uint16_t api;
    int8_t device;
};

struct gm_contexts {
    struct gm_context *entries; /* [number] as in the records; [0]: none */
    size_t count;
    size_t capacity;
    struct gm_map by_address;
    uint32_t primary[GM_DEVICES];       /* number of the device's primary context; GM_NONE */
    uint32_t unknown_lives[GM_DEVICES]; /* lists: allocated in a context that is not known */
    uint32_t untold_lives;              /* in one whose end is not on record */
};

void gm_contexts_begin(struct gm_contexts *contexts);
void gm_contexts_end(struct gm_contexts *contexts);

/* The start of the list for allocations made in `context` (0: unknown) on `device`. */
uint32_t *gm_context_lives(struct gm_contexts *contexts, uint16_t context, int device);

/* An allocation was made in this context, so it is alive. */
void gm_context_used(struct gm_contexts *contexts, uint16_t context);

/* The records of the family. */
void gm_context_seen(struct gm_contexts *contexts, const struct gm_record *record);
void gm_context_carried(struct gm_contexts *contexts, const struct gm_record *record);
void gm_context_retained(struct gm_contexts *contexts, const struct gm_record *record);
void gm_context_released(struct gm_replay *replay, const struct gm_entry *entry,
                         struct gm_journal *journal);
void gm_context_ended(struct gm_replay *replay, const struct gm_entry *entry,
                      struct gm_journal *journal);
void gm_context_undo(struct gm_contexts *contexts, const struct gm_undo *undo);

#endif
