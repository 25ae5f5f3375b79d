/* See ledger.h. */
#include "replay/ledger/ledger.h"
#include "base/limit.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

void gm_ledger_begin(struct gm_ledger *ledger)
{
    *ledger = (struct gm_ledger){0};
    gm_lives_begin(&ledger->lives);
    for (int i = 0; i < GM_DEVICES; i++)
        ledger->mortals.first_unknown[i] = GM_NONE;
    ledger->mortals.first_untold = GM_NONE;
}

void gm_ledger_end(struct gm_ledger *ledger)
{
    for (size_t i = 0; i < ledger->journal_count; i++)
        free(ledger->journals[i].entries);
    free(ledger->journals);
    free(ledger->mortals.first);
    gm_lives_end(&ledger->lives);
}

/* ---- lists of what ends with a context -------------------------------------------------------- */

static void add_lists(struct gm_mortals *mortals, uint16_t context)
{
    GM_RESERVE(mortals->first, mortals->capacity, (size_t)context + 1);
    while (mortals->count <= context)
        mortals->first[mortals->count++] = GM_NONE;
}

/* Where the list begins that a life belongs to. */
static inline uint32_t *list_of(struct gm_mortals *mortals, const struct gm_life *life)
{
    uint16_t context = life->context;
    if (context == 0)
        return &mortals->first_unknown[life->slot];
    if (context < mortals->count) /* the highest number is none */
        return &mortals->first[context];
    if (context == GM_CONTEXT_UNTOLD)
        return &mortals->first_untold;
    add_lists(mortals, context);
    return &mortals->first[context];
}

static inline void link_mortal(struct gm_ledger *ledger, struct gm_life *life)
{
    if (life->flags & GM_LIFE_MORTAL)
        gm_lives_link(&ledger->lives, list_of(&ledger->mortals, life), life);
}

static inline void unlink_mortal(struct gm_ledger *ledger, const struct gm_life *life)
{
    if (!(life->flags & GM_LIFE_MORTAL))
        return;
    gm_lives_unlink(&ledger->lives, life);
    if (life->previous == GM_NONE)
        *list_of(&ledger->mortals, life) = life->next;
}

uint32_t gm_ledger_mortal(const struct gm_ledger *ledger, uint32_t context, int device)
{
    const struct gm_mortals *mortals = &ledger->mortals;
    if (context == 0)
        return mortals->first_unknown[gm_device_slot(device)];
    return context < mortals->count ? mortals->first[context] : GM_NONE;
}

/* ---- births and deaths ----------------------------------------------------------------------- */

/* What a birth and the undoing of a death share. A size that makes no sense is taken for 0. */
static inline uint32_t enter_life(struct gm_ledger *ledger, struct gm_life *life,
                                  struct gm_index_slot *slot)
{
    if (!gm_counters_has_room(&ledger->counters, life->size)) {
        ledger->malformed++;
        life->size = 0;
    }
    life->entered = ledger->step + 1;
    uint32_t number = gm_lives_enter(&ledger->lives, life, slot);
    ledger->addressed += (life->flags & GM_LIFE_ADDRESSED) != 0;
    link_mortal(ledger, life);
    return number;
}

static inline struct gm_tally *count_in(struct gm_ledger *ledger, const struct gm_life *life)
{
    return gm_counters_add(&ledger->counters, life->kind, life->slot, life->size, ledger->time,
                           ledger->step + 1);
}

/* What is carried over is in order. */
static void note_unpaired(struct gm_ledger *ledger, enum gm_unpaired_kind kind, uint64_t address)
{
    if (!ledger->now->carried)
        gm_unpaired_note(&ledger->unpaired, kind, ledger->now->record, address, ledger->now->lane);
}

/* The place of an address in the index, for a new birth there: what lives at it ends. */
static inline struct gm_index_slot *make_way(struct gm_ledger *ledger, uint64_t address)
{
    struct gm_index_slot *slot = gm_lives_place(&ledger->lives, address);
    if (!slot || slot->number == GM_NONE)
        return slot;
    ledger->lost_frees++;
    note_unpaired(ledger, GM_UNPAIRED_BIRTH, address);
    gm_ledger_end_life(ledger, slot->number, slot, false, NULL);
    return gm_lives_place(&ledger->lives, address);
}

bool gm_ledger_pays_one(struct gm_ledger *ledger, uint64_t address)
{
    uint32_t lane = ledger->now->lane;
    if (!gm_unpaired_take(&ledger->unpaired, GM_UNPAIRED_BIRTH, address,
                          gm_unpaired_since(ledger->now->record), &lane))
        return false;
    ledger->lost_frees -= ledger->lost_frees != 0; /* a checkpoint may be hostile */
    return true;
}

/* A life has begun: perhaps a free of the address was stamped before, on a lane which may still undo it. */
static void end_early(struct gm_ledger *ledger, uint32_t number)
{
    const struct gm_life *life = &ledger->lives.slots[number];
    uint32_t lane = ledger->now->lane;
    if (life->object != GM_NONE ||
        !gm_unpaired_take(&ledger->unpaired, GM_UNPAIRED_FREE, life->address,
                          gm_unpaired_since(ledger->now->record), &lane))
        return;
    struct gm_journal *journal = gm_ledger_journal(ledger, lane);
    bool is_latest = journal->count == 1 && journal->entries[0].action == GM_UNDO_UNKNOWN_FREE &&
                     journal->entries[0].range.start == life->address;
    if (is_latest)
        journal->count = 0;
    ledger->unknown_frees -= ledger->unknown_frees != 0;
    gm_ledger_end_life(ledger, number, NULL, false, is_latest ? journal : NULL);
}

uint32_t gm_ledger_begin_life(struct gm_ledger *ledger, struct gm_life *life)
{
    if (gm_ledger_is_ignoring(ledger, ledger->now->lane))
        life->flags |= GM_LIFE_IGNORED;
    struct gm_index_slot *slot = NULL;
    if (life->object == GM_NONE) {
        slot = make_way(ledger, life->address);
        life->flags |= GM_LIFE_ADDRESSED;
    }
    uint32_t number = enter_life(ledger, life, slot);
    count_in(ledger, life)->allocs++;
    if (ledger->observer.begins)
        ledger->observer.begins(ledger->observer.argument, life);
    gm_ledger_next_step(ledger);
    if (ledger->unpaired.count)
        end_early(ledger, number);
    return number;
}

void gm_ledger_end_life(struct gm_ledger *ledger, uint32_t number, struct gm_index_slot *slot,
                        bool implicit, struct gm_journal *journal)
{
    const struct gm_life *life = &ledger->lives.slots[number];
    struct gm_tally *counter =
        gm_counters_subtract(&ledger->counters, life->kind, life->slot, life->size);
    if (implicit) {
        gm_limits_spend(GM_STEPS_LIFE);
        counter->implicit_frees++;
    } else {
        counter->frees++;
    }
    unlink_mortal(ledger, life);
    if (journal) {
        struct gm_undo *undo = gm_journal_add(journal);
        undo->action = GM_UNDO_LIFE;
        undo->implicit = implicit;
        undo->life = *life;
    }
    if (ledger->observer.ends)
        ledger->observer.ends(ledger->observer.argument, life, implicit);
    gm_lives_remove(&ledger->lives, number, slot);
}

void gm_ledger_grow(struct gm_ledger *ledger, uint32_t number, uint64_t size)
{
    struct gm_life *life = &ledger->lives.slots[number];
    const uint64_t before = life->size;
    if (!gm_counters_has_room(&ledger->counters, size - before)) {
        ledger->malformed++;
        return;
    }
    life->size = size;
    gm_counters_add(&ledger->counters, life->kind, life->slot, size - before, ledger->time,
                    ledger->step + 1);
    if (ledger->observer.grew)
        ledger->observer.grew(ledger->observer.argument, life, before);
    gm_ledger_next_step(ledger);
}

bool gm_ledger_turn(struct gm_ledger *ledger, const struct gm_turn *turn)
{
    bool stops = ledger->stop > ledger->step && ledger->stop - ledger->step <= turn->births;
    bool is_told_of_each = ledger->observer.begins && !ledger->observer.turned;
    if (stops || is_told_of_each ||
        !gm_counters_had_more(&ledger->counters, turn->kind, turn->device, turn->most) ||
        gm_unpaired_is_in(&ledger->unpaired, turn->low, turn->high))
        return false;
    struct gm_tally *counter = gm_counters_kind(&ledger->counters, turn->kind, turn->device);
    counter->allocs += turn->births;
    counter->frees += turn->births;
    if (ledger->observer.turned)
        ledger->observer.turned(ledger->observer.argument, turn);
    ledger->step += turn->births;
    return true;
}

/* Undoing a death before the history leaves one more of those that were alive when it began. */
static void uncount(struct gm_tally *counter, const struct gm_undo *undo, bool is_past)
{
    if (is_past)
        counter->allocs++;
    else if (undo->implicit)
        counter->implicit_frees--;
    else
        counter->frees--;
}

uint32_t gm_ledger_revive(struct gm_ledger *ledger, const struct gm_undo *undo, bool late,
                          bool is_past)
{
    struct gm_life *life = gm_lives_draft(&ledger->lives);
    *life = undo->life;
    if (late)
        life->flags |= GM_LIFE_LATE;
    uint32_t number = enter_life(
        ledger, life,
        life->flags & GM_LIFE_ADDRESSED ? gm_lives_place(&ledger->lives, life->address) : NULL);
    uncount(count_in(ledger, life), undo, is_past);
    if (ledger->observer.undone)
        ledger->observer.undone(ledger->observer.argument, life, undo->implicit);
    gm_ledger_next_step(ledger);
    return number;
}

void gm_ledger_note_unknown_free(struct gm_ledger *ledger, uint64_t address,
                                 struct gm_journal *journal)
{
    ledger->unknown_frees++;
    note_unpaired(ledger, GM_UNPAIRED_FREE, address);
    gm_ledger_note(ledger, journal,
                   &(struct gm_undo){.action = GM_UNDO_UNKNOWN_FREE, .range = {.start = address}});
}

/* ---- journals -------------------------------------------------------------------------------- */

void gm_ledger_note(struct gm_ledger *ledger, struct gm_journal *journal,
                    const struct gm_undo *undo)
{
    if (!journal)
        return;
    journal->holding += gm_undo_holds(undo);
    if (gm_undo_holds(undo) && ledger->keeper.hold)
        ledger->keeper.hold(ledger->keeper.argument, undo);
    *gm_journal_add(journal) = *undo;
}

void gm_ledger_add_journals(struct gm_ledger *ledger, uint32_t lane)
{
    ledger->journals = gm_resize(ledger->journals, (size_t)lane + 1, sizeof(*ledger->journals));
    memset(ledger->journals + ledger->journal_count, 0,
           (lane + 1 - ledger->journal_count) * sizeof(*ledger->journals));
    ledger->journal_count = (size_t)lane + 1;
}

void gm_ledger_set_ignoring(struct gm_ledger *ledger, uint32_t lane, bool is_ignoring)
{
    struct gm_journal *journal = gm_ledger_journal(ledger, lane);
    ledger->ignoring -= journal->is_ignoring;
    ledger->ignoring += is_ignoring;
    journal->is_ignoring = is_ignoring;
}

void gm_ledger_release(struct gm_ledger *ledger, struct gm_journal *journal)
{
    for (size_t i = 0; i < journal->count; i++)
        if (gm_undo_holds(&journal->entries[i]) && ledger->keeper.release)
            ledger->keeper.release(ledger->keeper.argument, &journal->entries[i]);
    journal->holding = 0;
}
