/* See replay.h. */
#include "replay/replay.h"
#include "base/limit.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

#define OUT_OF_MEMORY 2u /* CUDA_ERROR_OUT_OF_MEMORY, cudaErrorMemoryAllocation */
#define SHUTTING_DOWN 4u /* CUDA_ERROR_DEINITIALIZED, cudaErrorCudartUnloading */

void gm_replay_begin(struct gm_replay *replay)
{
    *replay = (struct gm_replay){0};
    gm_lives_begin(&replay->lives);
    gm_contexts_begin(&replay->contexts);
}

void gm_replay_end(struct gm_replay *replay)
{
    for (size_t i = 0; i < replay->journal_count; i++)
        free(replay->journals[i].entries);
    free(replay->journals);
    free(replay->pools);
    gm_map_free(&replay->pool_by_address);
    gm_graphs_end(&replay->graphs);
    gm_vmm_end(&replay->vmm);
    gm_contexts_end(&replay->contexts);
    gm_lives_end(&replay->lives);
}

static struct gm_journal *journal_of(struct gm_replay *replay, uint32_t lane);

/* ---- births and deaths ----------------------------------------------------------------------- */

struct gm_life gm_replay_life(const struct gm_record *record, unsigned kind)
{
    return (struct gm_life){
        .address = record->address,
        .size = record->size,
        .time = record->time,
        .stack = record->stack,
        .object = GM_NONE,
        .context = record->context,
        .api = record->api,
        .kind = (uint8_t)kind,
        .device = record->device,
    };
}

/* Ends with its context: all but what is stream-ordered, from a pool, VMM or of a graph. What is
 * opened or mapped of another owner's memory is a mapping of the context. */
static bool is_mortal(const struct gm_record *record)
{
    static const uint32_t kinds = 1u << GM_KIND_DEVICE | 1u << GM_KIND_MANAGED |
                                  1u << GM_KIND_ARRAY | 1u << GM_KIND_PINNED |
                                  1u << GM_KIND_REGISTERED | 1u << GM_KIND_EXTERNAL;
    return (kinds >> record->kind & 1) && !(record->flags & (GM_FLAG_POOL | GM_FLAG_ASYNC));
}

unsigned gm_replay_carried_flags(const struct gm_entry *entry)
{
    return entry->carried && entry->record->extra == SHUTTING_DOWN ? GM_LIFE_LATE : 0;
}

static void next_step(struct gm_replay *replay)
{
    if (++replay->step == replay->stop)
        replay->stopped(replay, replay->stop_argument);
}

/* What a birth and the undoing of a death share. A size that makes no sense is taken for 0. */
static uint32_t enter(struct gm_replay *replay, struct gm_life *life)
{
    if (!gm_counters_has_room(&replay->counters, life->size)) {
        replay->malformed++;
        life->size = 0;
    }
    uint32_t number = gm_lives_add(&replay->lives, life);
    if (life->flags & GM_LIFE_MORTAL)
        gm_lives_link(&replay->lives,
                      gm_context_lives(&replay->contexts, life->context, life->device), number);
    gm_counters_add(&replay->counters, life->kind, life->device, life->size, replay->time,
                    replay->step + 1);
    return number;
}

/* What is carried over is in order. */
static void note_unpaired(struct gm_replay *replay, enum gm_unpaired_kind kind, uint64_t address)
{
    if (!replay->now->carried)
        gm_unpaired_note(&replay->unpaired, kind, replay->now->record, address, replay->now->lane);
}

/* Ends the life at an address if there is one, as a new birth there needs. */
static void make_way(struct gm_replay *replay, uint64_t address)
{
    uint32_t number = gm_lives_find(&replay->lives, address);
    if (number == GM_NONE)
        return;
    replay->lost_frees++;
    note_unpaired(replay, GM_UNPAIRED_BIRTH, address);
    gm_replay_end_life(replay, number, false, NULL);
}

bool gm_replay_pays(struct gm_replay *replay, uint64_t address)
{
    uint32_t lane = replay->now->lane;
    if (!gm_unpaired_take(&replay->unpaired, GM_UNPAIRED_BIRTH, address,
                          gm_unpaired_since(replay->now->record), &lane))
        return false;
    replay->lost_frees -= replay->lost_frees != 0; /* a checkpoint may be hostile */
    return true;
}

/* A free of the address was stamped before its birth, on a lane which may still undo it. */
static void end_early(struct gm_replay *replay, uint32_t number, uint32_t lane)
{
    struct gm_journal *journal = journal_of(replay, lane);
    bool is_latest = journal->count == 1 && journal->entries[0].action == GM_UNDO_UNKNOWN_FREE &&
                     journal->entries[0].range.start == replay->lives.slots[number].address;
    if (is_latest)
        journal->count = 0;
    replay->unknown_frees -= replay->unknown_frees != 0;
    gm_replay_end_life(replay, number, false, is_latest ? journal : NULL);
}

uint32_t gm_replay_begin_life(struct gm_replay *replay, const struct gm_life *life)
{
    struct gm_life entered = *life;
    entered.birth = replay->events;
    if (entered.object == GM_NONE) {
        make_way(replay, entered.address);
        entered.flags |= GM_LIFE_ADDRESSED;
    }
    uint32_t number = enter(replay, &entered);
    gm_counters_kind(&replay->counters, entered.kind, entered.device)->allocs++;
    if (replay->observer.begins)
        replay->observer.begins(replay->observer.argument, &entered);
    next_step(replay);
    uint32_t lane = replay->now->lane;
    if (entered.object == GM_NONE &&
        gm_unpaired_take(&replay->unpaired, GM_UNPAIRED_FREE, entered.address,
                         gm_unpaired_since(replay->now->record), &lane))
        end_early(replay, number, lane);
    return number;
}

void gm_replay_end_life(struct gm_replay *replay, uint32_t number, bool implicit,
                        struct gm_journal *journal)
{
    const struct gm_life life = replay->lives.slots[number];
    if (implicit)
        gm_limits_spend(GM_STEPS_IMPLICIT);
    struct gm_tally *counter = gm_counters_kind(&replay->counters, life.kind, life.device);
    if (implicit)
        counter->implicit_frees++;
    else
        counter->frees++;
    gm_counters_subtract(&replay->counters, life.kind, life.device, life.size);
    if (life.flags & GM_LIFE_MORTAL)
        gm_lives_unlink(&replay->lives,
                        gm_context_lives(&replay->contexts, life.context, life.device), number);
    gm_replay_note(replay, journal,
                   &(struct gm_undo){.action = GM_UNDO_LIFE, .implicit = implicit, .life = life});
    if (replay->observer.ends)
        replay->observer.ends(replay->observer.argument, &life, implicit);
    gm_lives_remove(&replay->lives, number);
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

uint32_t gm_replay_revive(struct gm_replay *replay, const struct gm_undo *undo, bool late,
                          bool is_past)
{
    struct gm_life life = undo->life;
    if (late)
        life.flags |= GM_LIFE_LATE;
    uint32_t number = enter(replay, &life);
    uncount(gm_counters_kind(&replay->counters, life.kind, life.device), undo, is_past);
    if (replay->observer.undone)
        replay->observer.undone(replay->observer.argument, &life, undo->implicit);
    next_step(replay);
    return number;
}

/* ---- journals -------------------------------------------------------------------------------- */

void gm_replay_note(struct gm_replay *replay, struct gm_journal *journal,
                    const struct gm_undo *undo)
{
    if (!journal)
        return;
    gm_vmm_hold(&replay->vmm, undo);
    gm_journal_note(journal, undo);
}

static struct gm_journal *journal_of(struct gm_replay *replay, uint32_t lane)
{
    if (lane >= replay->journal_count) {
        replay->journals = gm_resize(replay->journals, (size_t)lane + 1, sizeof(*replay->journals));
        memset(replay->journals + replay->journal_count, 0,
               (lane + 1 - replay->journal_count) * sizeof(*replay->journals));
        replay->journal_count = (size_t)lane + 1;
    }
    return &replay->journals[lane];
}

static void forget(struct gm_replay *replay, struct gm_journal *journal)
{
    journal->type = GM_EVENT_NONE;
    for (size_t i = 0; i < journal->count; i++)
        gm_vmm_forget(&replay->vmm, &journal->entries[i]);
    journal->count = 0;
}

/* A free-like record: from here on it is this one that an UNDO of the lane means. */
static void begin_journal(struct gm_replay *replay, const struct gm_entry *entry,
                          struct gm_journal *journal)
{
    forget(replay, journal);
    journal->type = entry->record->type;
    journal->address =
        entry->carried && entry->detail ? entry->detail->address : entry->record->address;
    journal->is_past = false;
}

/* What lived at an address was not freed, or not closed. Memory of another owner is open as often
 * as before, whoever closed it last; was it over, that is one more that came to life. */
static void goes_on(struct gm_replay *replay, const struct gm_undo *undo, bool late, bool is_past)
{
    uint32_t there = gm_lives_find(&replay->lives, undo->life.address);
    if (there == GM_NONE)
        gm_replay_revive(replay, undo, late, is_past || undo->action == GM_UNDO_REFERENCE);
    else if (undo->life.kind == GM_KIND_EXTERNAL &&
             replay->lives.slots[there].kind == GM_KIND_EXTERNAL)
        replay->lives.slots[there].references += 1 + undo->life.references;
    /* else someone else lives there since: the free did happen */
}

static void pool_goes_on(struct gm_replay *replay, uint32_t number)
{
    uint64_t address = replay->pools[number].address;
    if (replay->pools[gm_map_get(&replay->pool_by_address, address)].alive)
        return; /* another one since: it was destroyed */
    replay->pools[number].alive = true;
    gm_map_set(&replay->pool_by_address, address, number);
}

/* The call behind the lane's latest free-like record failed: back, last step first. If that record
 * is missing, the one before it is not the one that is meant. */
static void undo_all(struct gm_replay *replay, const struct gm_record *record,
                     struct gm_journal *journal)
{
    bool late = record->extra == SHUTTING_DOWN;
    if (record->kind != journal->type || record->address != journal->address)
        return;
    gm_limits_spend(GM_STEPS_UNDO * journal->count);
    for (size_t i = journal->count; i-- > 0 && !gm_limits_reached();) {
        const struct gm_undo *undo = &journal->entries[i];
        switch (undo->action) {
        case GM_UNDO_LIFE:
        case GM_UNDO_REFERENCE:
            goes_on(replay, undo, late, journal->is_past);
            break;
        case GM_UNDO_UNKNOWN_FREE:
            replay->unknown_frees -= replay->unknown_frees != 0;
            gm_unpaired_drop(&replay->unpaired, undo->range.start, replay->now->lane);
            break;
        case GM_UNDO_UNKNOWN_RELEASE:
            replay->unknown_frees -= replay->unknown_frees != 0;
            break;
        case GM_UNDO_CONTEXT:
            gm_context_undo(&replay->contexts, undo);
            break;
        case GM_UNDO_POOL:
            pool_goes_on(replay, undo->object);
            break;
        default:
            gm_vmm_undo(replay, undo, late);
        }
    }
    forget(replay, journal);
}

/* ---- the plain families ---------------------------------------------------------------------- */

static void allocated(struct gm_replay *replay, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    if (!gm_kind_is_valid(record->kind)) {
        replay->malformed++;
        return;
    }
    uint32_t there =
        record->kind == GM_KIND_EXTERNAL ? gm_lives_find(&replay->lives, record->address) : GM_NONE;
    if (there != GM_NONE && replay->lives.slots[there].kind == GM_KIND_EXTERNAL) {
        /* Opening the same memory again gives the same address: one allocation, closed as often. */
        replay->lives.slots[there].references++;
        return;
    }
    struct gm_life life = gm_replay_life(record, record->kind);
    life.flags = (uint8_t)gm_replay_carried_flags(entry);
    if (is_mortal(record))
        life.flags |= GM_LIFE_MORTAL;
    if (!entry->carried) /* else its context says how it is used */
        gm_context_used(&replay->contexts, record->context);
    gm_replay_begin_life(replay, &life);
}

static void freed(struct gm_replay *replay, const struct gm_record *record,
                  struct gm_journal *journal)
{
    if (record->address == 0 || gm_replay_pays(replay, record->address))
        return;
    uint32_t number = gm_lives_find(&replay->lives, record->address);
    if (number == GM_NONE) {
        replay->unknown_frees++;
        note_unpaired(replay, GM_UNPAIRED_FREE, record->address);
        gm_replay_note(
            replay, journal,
            &(struct gm_undo){.action = GM_UNDO_UNKNOWN_FREE, .range = {.start = record->address}});
        return;
    }
    struct gm_life *life = &replay->lives.slots[number];
    if (life->references) {
        life->references--;
        struct gm_undo undo = {.action = GM_UNDO_REFERENCE, .life = *life};
        undo.life.references = 0;
        gm_replay_note(replay, journal, &undo);
        return;
    }
    gm_replay_end_life(replay, number, false, journal);
}

static void refused(struct gm_replay *replay, const struct gm_record *record)
{
    if (record->extra == OUT_OF_MEMORY)
        replay->counters.failed++;
    else if (record->flags & GM_FLAG_RUNTIME)
        replay->counters.refused_by_runtime++;
    else
        replay->counters.rejected++;
    next_step(replay);
}

static void pool_created(struct gm_replay *replay, const struct gm_record *record)
{
    GM_RESERVE(replay->pools, replay->pool_capacity, replay->pool_count + 1);
    replay->pools[replay->pool_count] = (struct gm_pool){
        .address = record->address,
        .time = record->time,
        .stack = record->stack,
        .api = record->api,
        .device = record->device,
        .alive = true,
    };
    gm_map_set(&replay->pool_by_address, record->address, (uint32_t)replay->pool_count++);
}

static void pool_destroyed(struct gm_replay *replay, const struct gm_record *record,
                           struct gm_journal *journal)
{
    uint32_t number = gm_map_get(&replay->pool_by_address, record->address);
    if (number == GM_NONE || !replay->pools[number].alive)
        return;
    replay->pools[number].alive = false;
    gm_replay_note(replay, journal, &(struct gm_undo){.action = GM_UNDO_POOL, .object = number});
}

/* ---- all records ----------------------------------------------------------------------------- */

static void restart(struct gm_tally *tally, uint64_t time, uint64_t step)
{
    tally->peak = (struct gm_peak){tally->live, time, tally->live ? step : 0};
    tally->allocs -= tally->frees + tally->implicit_frees;
    tally->frees = tally->implicit_frees = 0;
}

/* All carried records are applied, and the history begins. Peaks count from now on, and of the
 * calls so far only those that began what is alive. */
static void begin_history(struct gm_replay *replay)
{
    replay->has_history = true;
    if (!replay->carrying && !replay->checkpoint)
        return; /* the history is whole */
    struct gm_counters *counters = &replay->counters;
    const struct gm_checkpoint *checkpoint = replay->checkpoint;
    uint64_t time = checkpoint ? checkpoint->time : 0;
    replay->carrying = false;
    gm_vmm_begin_history(replay);
    if (time > replay->time)
        replay->time = time;
    for (int device = 0; device < GM_DEVICES; device++) {
        struct gm_device_totals *totals = &counters->device[device];
        uint64_t step = totals->live ? replay->step + 1 : 0;
        totals->peak = (struct gm_peak){totals->live, time, step};
        for (int kind = 0; kind <= GM_KIND_EXTERNAL; kind++)
            restart(&totals->kind[kind], time, replay->step + 1);
    }
    for (int kind = 0; kind < GM_KINDS; kind++)
        restart(&counters->host[kind], time, replay->step + 1);
    for (size_t lane = 0; lane < replay->journal_count; lane++)
        replay->journals[lane].is_past = true;
    replay->events = 0;
    replay->unknown_frees = checkpoint ? checkpoint->unknown_frees : 0;
    replay->lost_frees = checkpoint ? checkpoint->lost_frees : 0;
    next_step(replay);
}

void gm_replay_finish(struct gm_replay *replay)
{
    if (!replay->has_history)
        begin_history(replay);
}

void gm_replay_apply(struct gm_replay *replay, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    struct gm_journal *journal = journal_of(replay, entry->lane);
    replay->now = entry;
    if (!entry->carried && !replay->has_history)
        begin_history(replay);
    replay->carrying = entry->carried;
    replay->events++;
    if (record->time > replay->time)
        replay->time = record->time;
    if (gm_event_is_in(record->type, GM_EVENTS_FREE_LIKE))
        begin_journal(replay, entry, journal);
    switch (record->type) {
    case GM_EVENT_ALLOC:
        if (record->flags & GM_FLAG_CAPTURED)
            gm_graph_apply(replay, record);
        else
            allocated(replay, entry);
        break;
    case GM_EVENT_FREE:
        if (record->flags & GM_FLAG_CAPTURED)
            gm_graph_apply(replay, record);
        else
            freed(replay, record, journal);
        break;
    case GM_EVENT_UNDO:
        undo_all(replay, record, journal);
        break;
    case GM_EVENT_ALLOC_FAILED:
        refused(replay, record);
        break;
    case GM_EVENT_CONTEXT:
        if (entry->carried)
            gm_context_carried(&replay->contexts, record);
        else
            gm_context_seen(&replay->contexts, record);
        break;
    case GM_EVENT_CONTEXT_RETAIN:
        gm_context_retained(&replay->contexts, record);
        break;
    case GM_EVENT_CONTEXT_RELEASE:
        gm_context_released(replay, entry, journal);
        break;
    case GM_EVENT_CONTEXT_END:
        gm_context_ended(replay, entry, journal);
        break;
    case GM_EVENT_POOL_CREATE:
        pool_created(replay, record);
        break;
    case GM_EVENT_POOL_DESTROY:
        pool_destroyed(replay, record, journal);
        break;
    default:
        if (record->type >= GM_EVENT_VMM_CREATE && record->type <= GM_EVENT_MULTICAST_UNBIND)
            gm_vmm_apply(replay, entry, journal);
        else if (record->type >= GM_EVENT_GRAPH_ALLOC_NODE && record->type <= GM_EVENT_GRAPH_TRIM)
            gm_graph_apply(replay, record);
        else if (record->type >= GM_EVENTS)
            replay->not_understood++;
    }
}
