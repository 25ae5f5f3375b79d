/* See context.h. */
#include "replay/rules/context.h"
#include "base/each.h"
#include "base/limit.h"
#include "base/memory.h"
#include <stdlib.h>

void gm_contexts_begin(struct gm_contexts *contexts, struct gm_ledger *ledger, struct gm_vmm *vmm)
{
    *contexts = (struct gm_contexts){.ledger = ledger, .vmm = vmm};
    for (int i = 0; i < GM_DEVICES; i++)
        contexts->primary[i] = GM_NONE;
}

void gm_contexts_end(struct gm_contexts *contexts)
{
    free(contexts->entries);
    gm_map_free(&contexts->by_address);
}

static struct gm_context *context_at(struct gm_contexts *contexts, uint32_t number)
{
    GM_RESERVE(contexts->entries, contexts->capacity, (size_t)number + 1);
    while (contexts->count <= number)
        contexts->entries[contexts->count++] = (struct gm_context){.device = -1};
    return &contexts->entries[number];
}

void gm_context_used_first(struct gm_contexts *contexts, uint16_t context)
{
    struct gm_context *state = context_at(contexts, context);
    if (state->references == 0)
        state->unseen_reference = true;
}

void gm_context_seen(struct gm_contexts *contexts, const struct gm_record *record)
{
    if (record->context == 0 || record->context == GM_CONTEXT_UNTOLD)
        return;
    struct gm_context *context = context_at(contexts, record->context);
    if (!context->known) {
        GM_COPY_MEMBERS(context, record, time, stack, api);
    }
    context->known = true;
    context->address = record->address;
    context->device = record->device;
    context->primary = (record->flags & GM_FLAG_PRIMARY) != 0;
    gm_map_set(&contexts->by_address, record->address, record->context);
    if (context->primary)
        contexts->primary[gm_device_slot(record->device)] = record->context;
}

/* The context a record of the family is about; 0 if it is not known. */
static uint32_t context_meant(const struct gm_contexts *contexts, const struct gm_record *record,
                              bool primary)
{
    uint32_t number = gm_map_get(&contexts->by_address, record->address);
    if (number == GM_NONE && (primary || record->address == 0))
        number = contexts->primary[gm_device_slot(record->device)];
    return number == GM_NONE ? 0 : number;
}

static void hold_context(struct gm_context *context, const struct gm_record *record)
{
    context->references = record->size > UINT32_MAX ? UINT32_MAX : (uint32_t)record->size;
    context->unseen_reference = record->extra & 1;
}

/* A carried record says how the context is held, besides what it is (if that is known). */
void gm_context_carried(struct gm_contexts *contexts, const struct gm_record *record)
{
    if (record->context == 0)
        return;
    if (record->address)
        gm_context_seen(contexts, record);
    hold_context(context_at(contexts, record->context), record);
}

void gm_context_retained(struct gm_contexts *contexts, const struct gm_record *record)
{
    uint32_t number = context_meant(contexts, record, true);
    if (!number)
        return;
    /* The context may have been seen first by a call that did not tell what it is. */
    struct gm_context *context = context_at(contexts, number);
    context->primary = true;
    context->device = record->device;
    contexts->primary[gm_device_slot(record->device)] = number;
    context->references++;
}

/* Whose lives end, and whether those that were allocated on the device without telling where are
 * among them: they are if the context is its primary one. A carried record says it itself: it is
 * replayed when more is known than was then. */
struct ending {
    uint32_t number; /* 0: unknown */
    int device;
    bool primary;
};

static struct ending ending_of_context(const struct gm_contexts *contexts,
                                       const struct gm_entry *entry, uint32_t number)
{
    const struct gm_record *record = entry->record;
    struct ending ending = {number, record->device, (record->flags & GM_FLAG_PRIMARY) != 0};
    if (number && !entry->carried) {
        const struct gm_context *context = &contexts->entries[number];
        ending.primary = context->primary;
        ending.device = context->known ? context->device : record->device;
    }
    return ending;
}

static void end_list(struct gm_contexts *contexts, uint32_t context, int device,
                     struct gm_journal *journal)
{
    struct gm_ledger *ledger = contexts->ledger;
    uint32_t number;
    while ((number = gm_ledger_mortal(ledger, context, device)) != GM_NONE &&
           !gm_limits_reached()) {
        const struct gm_life life = ledger->lives.slots[number];
        gm_ledger_end_life(ledger, number, NULL, true, journal);
        if (life.kind == GM_KIND_ARRAY)
            gm_vmm_array_ended(contexts->vmm, life.address, journal);
    }
}

static void end_lives(struct gm_contexts *contexts, struct ending ending,
                      struct gm_journal *journal)
{
    if (ending.number)
        end_list(contexts, ending.number, 0, journal);
    if (ending.primary)
        end_list(contexts, 0, ending.device, journal);
}

void gm_context_released(struct gm_contexts *contexts, const struct gm_entry *entry,
                         struct gm_journal *journal)
{
    const struct gm_record *record = entry->record;
    uint32_t number =
        entry->carried ? (uint16_t)record->aux : context_meant(contexts, record, true);
    if (!number)
        return;
    struct gm_context *context = context_at(contexts, number);
    if (entry->carried)
        hold_context(context, record); /* how it was held before */
    bool unseen = context->references == 0;
    if (unseen && !context->unseen_reference)
        return;
    if (unseen)
        context->unseen_reference = false;
    else
        context->references--;
    gm_ledger_note(
        contexts->ledger, journal,
        &(struct gm_undo){.action = GM_UNDO_CONTEXT, .object = number, .unseen = unseen});
    if (context->references == 0 && !context->unseen_reference)
        end_lives(contexts, ending_of_context(contexts, entry, number), journal);
}

void gm_context_ended(struct gm_contexts *contexts, const struct gm_entry *entry,
                      struct gm_journal *journal)
{
    const struct gm_record *record = entry->record;
    uint32_t number =
        entry->carried ? (uint16_t)record->aux : context_meant(contexts, record, false);
    end_lives(contexts, ending_of_context(contexts, entry, number), journal);
}

void gm_context_undo(struct gm_contexts *contexts, const struct gm_undo *undo)
{
    struct gm_context *context = context_at(contexts, undo->object);
    if (undo->unseen)
        context->unseen_reference = true;
    else
        context->references++;
}
