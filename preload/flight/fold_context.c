/* See fold_context.h: contexts. A context is a few numbers, so it is not its records that are carried but
 * what they amount to: one CONTEXT record each, with the references in its size. */
#include "flight/fold_context.h"
#include "base/room.h"
#include "flight/fold_lives.h"
#include "flight/fold_vmm.h"
#include <string.h>

#define CONTEXTS 65536u /* all numbers a record can name */
#define DEVICES 129u    /* [ordinal + 1] */
#define CHAINS 4096u    /* of the index by address */

struct context {
    struct gm_record record; /* time, stack and api of the first; address, device, flags: latest */
    bool known;              /* a CONTEXT record told of it */
    bool unseen;             /* in use without a RETAIN on record */
    bool indexed;            /* it is found by its address */
    uint16_t chain;          /* the next in the index */
    uint32_t references;     /* RETAINs less RELEASEs */
    uint32_t releases;       /* RELEASEs that may yet be undone */
};

static struct context *contexts;
static uint32_t context_end;      /* one past the largest number */
static uint16_t primary[DEVICES]; /* 0: unknown */
static uint16_t index_of[CHAINS]; /* the first of each chain; 0: none */

static uint32_t primary_slot(int device)
{
    return device < 0 ? 0 : (uint32_t)device + 1;
}

static uint16_t *chain_of(uint64_t address)
{
    return &index_of[address * 0x9e3779b97f4a7c15u >> 52];
}

/* The latest context with this address; 0 if there is none. */
static uint16_t find_context(uint64_t address)
{
    uint16_t number = *chain_of(address);
    while (number && contexts[number].record.address != address)
        number = contexts[number].chain;
    return number;
}

static void take_out_context(uint16_t number)
{
    uint16_t *link = chain_of(contexts[number].record.address);
    while (*link != number)
        link = &contexts[*link].chain;
    *link = contexts[number].chain;
    contexts[number].indexed = false;
}

static void put_in(uint16_t number)
{
    uint16_t *first = chain_of(contexts[number].record.address);
    contexts[number].chain = *first;
    contexts[number].indexed = true;
    *first = number;
}

static struct context *context_at(uint16_t number)
{
    if (number >= context_end)
        context_end = number + 1u;
    return &contexts[number];
}

/* The context a record is about; 0 if it is not known. */
static uint32_t context_meant(const struct gm_record *record, bool is_primary)
{
    uint16_t number = find_context(record->address);
    if (number)
        return number;
    return is_primary || record->address == 0 ? primary[primary_slot(record->device)] : 0;
}

static void note_context(const struct gm_record *record)
{
    if (!record->context || record->context == GM_CONTEXT_UNTOLD)
        return;
    struct context *context = context_at(record->context);
    uint16_t before = find_context(record->address);
    if (before)
        take_out_context(before);
    if (context->indexed)
        take_out_context(record->context);
    if (!context->known)
        context->record = *record;
    context->known = true;
    context->record.address = record->address;
    put_in(record->context);
    context->record.device = record->device;
    context->record.flags = record->flags;
    if (record->flags & GM_FLAG_PRIMARY)
        primary[primary_slot(record->device)] = record->context;
}

static void retained(const struct gm_record *record)
{
    uint32_t number = context_meant(record, true);
    if (!number)
        return;
    struct context *context = &contexts[number];
    context->record.flags |= GM_FLAG_PRIMARY;
    context->record.device = record->device;
    primary[primary_slot(record->device)] = (uint16_t)number;
    context->references++;
}

/* As report/replay/rules/replay.c has it. */
static bool is_mortal(const struct gm_record *record)
{
    static const uint32_t kinds = 1u << GM_KIND_DEVICE | 1u << GM_KIND_MANAGED |
                                  1u << GM_KIND_ARRAY | 1u << GM_KIND_PINNED |
                                  1u << GM_KIND_REGISTERED | 1u << GM_KIND_EXTERNAL;
    return (kinds >> record->kind & 1) && !(record->flags & (GM_FLAG_POOL | GM_FLAG_ASYNC));
}

/* Memory of another owner ends as often as it was opened, wherever that was. */
static void end_references(uint32_t life, uint32_t ending)
{
    uint64_t address = gm_carry_at(life)->key;
    for (uint32_t number; (number = gm_carry_find(GM_CARRY_LIFE, address)) != life && number;)
        gm_fold_end(number, ending, true);
}

/* All that ends with the context, and what was allocated on the device without telling where, if
 * this is its primary one. The ENDING says so: it may be replayed when more is known than now. */
static void end_lives(const struct gm_record *record, uint32_t number, uint32_t ending)
{
    const struct context *context = &contexts[number];
    bool is_primary = ((number ? context->record.flags : record->flags) & GM_FLAG_PRIMARY) != 0;
    int8_t device = number && context->known ? context->record.device : record->device;
    if (ending) {
        struct gm_record *told = &gm_carry_at(ending)->record;
        told->aux = number;
        told->device = device;
        told->flags = is_primary ? GM_FLAG_PRIMARY : 0;
    }
    for (uint32_t life = gm_carry_first(), next; life; life = next) {
        const struct gm_carried *entry = gm_carry_at(life);
        uint32_t its = entry->record.context;
        bool ends =
            entry->role == GM_CARRY_LIFE && entry->found && !entry->reference &&
            is_mortal(&entry->record) &&
            (its ? its == number
                 : is_primary && primary_slot(entry->record.device) == primary_slot(device));
        if (ends)
            end_references(life, ending);
        if (ends && entry->record.kind == GM_KIND_ARRAY)
            gm_fold_vmm_array_ended(entry->key, ending);
        next = gm_carry_at(life)->next;
        if (ends)
            gm_fold_end(life, ending, true);
    }
}

static void released(const struct gm_record *record, uint32_t ending)
{
    uint32_t number = context_meant(record, true);
    struct context *context = &contexts[number];
    if (!number || (!context->references && !context->unseen))
        return;
    bool unseen = context->references == 0;
    if (ending) { /* as it is replayed: from how the context was held before */
        gm_carry_at(ending)->record.aux = number;
        gm_carry_at(ending)->record.size = context->references;
        gm_carry_at(ending)->record.extra = context->unseen;
        gm_carry_at(ending)->other = number;
        gm_carry_at(ending)->unseen = unseen;
        context->releases++;
    }
    if (unseen)
        context->unseen = false;
    else
        context->references--;
    if (!context->references && !context->unseen)
        end_lives(record, number, ending);
}

void gm_fold_context_released(const struct gm_carried *ending, bool undone)
{
    struct context *context = &contexts[ending->other];
    context->releases--;
    if (ending->unseen)
        context->unseen |= undone;
    else
        context->references += undone;
}

void gm_fold_context_use(uint16_t number)
{
    struct context *context = number && number != GM_CONTEXT_UNTOLD ? context_at(number) : NULL;
    if (context && !context->references)
        context->unseen = true;
}

void gm_fold_context_apply(const struct gm_record *record, uint32_t ending)
{
    switch (record->type) {
    case GM_EVENT_CONTEXT:
        note_context(record);
        break;
    case GM_EVENT_CONTEXT_RETAIN:
        retained(record);
        break;
    case GM_EVENT_CONTEXT_RELEASE:
        released(record, ending);
        break;
    case GM_EVENT_CONTEXT_END:
        end_lives(record, context_meant(record, false), ending);
        break;
    default:
        break;
    }
}

/* Once before all else, so that it is known, and once behind it, if a release was replayed. */
void gm_fold_context_emit(bool again, gm_carry_taker *take, void *argument)
{
    for (uint32_t number = 1; number < context_end; number++) {
        const struct context *context = &contexts[number];
        struct gm_record record = context->record;
        record.type = GM_EVENT_CONTEXT;
        record.context = (uint16_t)number;
        record.size = context->references;
        record.extra = context->unseen;
        if (again ? context->releases : context->known || record.extra)
            take(argument, &record, 0);
    }
}

bool gm_fold_context_prepare(void)
{
    return GM_ROOM(&contexts, CONTEXTS);
}

void gm_fold_context_forget(void)
{
    if (contexts)
        memset(contexts, 0, context_end * sizeof(contexts[0]));
    memset(index_of, 0, sizeof(index_of));
    memset(primary, 0, sizeof(primary));
    context_end = 0;
}
