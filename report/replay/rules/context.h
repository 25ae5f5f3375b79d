/* Contexts: which allocations end with which context, and who created it. */
#ifndef GPUMEM_REPORT_REPLAY_CONTEXT_H
#define GPUMEM_REPORT_REPLAY_CONTEXT_H

#include "base/map.h"
#include "replay/ledger/ledger.h"
#include "replay/rules/vmm.h"
#include <stdbool.h>
#include <stdint.h>

struct gm_context {
    bool known; /* a CONTEXT record told of it */
    bool primary;
    bool unseen_reference; /* in use without a RETAIN on record: someone we did not see holds it */
    uint32_t references;   /* of a primary context: RETAINs on record */
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
    uint32_t primary[GM_DEVICES]; /* number of the device's primary context; GM_NONE */
    struct gm_ledger *ledger;     /* where what ends with a context is booked */
    struct gm_vmm *vmm;           /* the same for the tiles of its sparse arrays */
};

void gm_contexts_begin(struct gm_contexts *contexts, struct gm_ledger *ledger, struct gm_vmm *vmm);
void gm_contexts_end(struct gm_contexts *contexts);

/* An allocation was made in this context, so it is alive. */
void gm_context_used_first(struct gm_contexts *contexts, uint16_t context);
static inline void gm_context_used(struct gm_contexts *contexts, uint16_t context)
{
    if (context == 0 || context == GM_CONTEXT_UNTOLD)
        return;
    if (context >= contexts->count || contexts->entries[context].references == 0)
        gm_context_used_first(contexts, context);
}

/* The records of the family. */
void gm_context_seen(struct gm_contexts *contexts, const struct gm_record *record);
void gm_context_carried(struct gm_contexts *contexts, const struct gm_record *record);
void gm_context_retained(struct gm_contexts *contexts, const struct gm_record *record);
void gm_context_released(struct gm_contexts *contexts, const struct gm_entry *entry,
                         struct gm_journal *journal);
void gm_context_ended(struct gm_contexts *contexts, const struct gm_entry *entry,
                      struct gm_journal *journal);
void gm_context_undo(struct gm_contexts *contexts, const struct gm_undo *undo);

#endif
