/* See replay.h. */
#include "replay/rules/replay.h"
#include "base/assert.h"
#include "base/each.h"
#include "base/limit.h"
#include "base/memory.h"
#include <stdlib.h>

/* Not made part of its caller, so that each kind of record pays for the registers alone that it takes itself. */
#define APART __attribute__((noinline))

/* What programs do often, and what books nothing. */
#define PASSED_OVER                                                                                \
    (1ull << GM_EVENT_COPY | 1ull << GM_EVENT_SET | 1ull << GM_EVENT_BLOCK_ALLOC |                 \
     1ull << GM_EVENT_BLOCK_FREE)

#define OUT_OF_MEMORY 2u /* CUDA_ERROR_OUT_OF_MEMORY, cudaErrorMemoryAllocation */

void gm_replay_begin(struct gm_replay *replay)
{
    *replay = (struct gm_replay){0};
    gm_ledger_begin(&replay->ledger);
    gm_contexts_begin(&replay->contexts, &replay->ledger, &replay->vmm);
    gm_vmm_begin(&replay->vmm, &replay->ledger);
    gm_graphs_begin(&replay->graphs, &replay->ledger);
}

void gm_replay_end(struct gm_replay *replay)
{
    free(replay->pools);
    gm_map_free(&replay->pool_by_address);
    gm_graphs_end(&replay->graphs);
    gm_vmm_end(&replay->vmm);
    gm_contexts_end(&replay->contexts);
    gm_ledger_end(&replay->ledger);
}

/* A free-like record: from here on it is this one that an UNDO of the lane means. */
static inline void begin_journal(struct gm_replay *replay, const struct gm_entry *entry,
                                 struct gm_journal *journal)
{
    gm_ledger_forget(&replay->ledger, journal);
    journal->type = entry->record->type;
    journal->address =
        entry->carried && entry->detail ? entry->detail->address : entry->record->address;
    journal->is_past = false;
}

/* What lived at an address was not freed, or not closed. Memory of another owner is open as often
 * as before, whoever closed it last; was it over, that is one more that came to life. */
static void object_goes_on(struct gm_replay *replay, const struct gm_undo *undo, bool late,
                           bool is_past)
{
    uint32_t there = gm_lives_find(&replay->ledger.lives, undo->life.address);
    if (there == GM_NONE)
        gm_ledger_revive(&replay->ledger, undo, late, is_past || undo->action == GM_UNDO_REFERENCE);
    else if (undo->life.kind == GM_KIND_EXTERNAL &&
             replay->ledger.lives.slots[there].kind == GM_KIND_EXTERNAL)
        replay->ledger.lives.slots[there].references += 1 + undo->life.references;
    /* else someone else lives there since: the free did happen */
}

static void pool_goes_on(struct gm_replay *replay, uint32_t number)
{
    uint64_t address = replay->pools[number].address;
    uint32_t latest = gm_map_get(&replay->pool_by_address, address);
    if (latest != GM_NONE && replay->pools[latest].alive)
        return; /* another one since: it was destroyed */
    replay->pools[number].alive = true;
    gm_map_set(&replay->pool_by_address, address, number);
}

/* The call behind the lane's latest free-like record failed: back, last step first. If that record
 * is missing, the one before it is not the one that is meant. */
static void undo_all(struct gm_replay *replay, const struct gm_record *record,
                     struct gm_journal *journal)
{
    bool late = record->extra == GM_SHUTTING_DOWN;
    if (record->kind != journal->type || record->address != journal->address)
        return;
    if (record->kind == GM_EVENT_GRAPH_DESTROY || record->kind == GM_EVENT_GRAPH_EXEC_DESTROY)
        gm_graph_undo(&replay->graphs, record, replay->ledger.now->lane);
    gm_limits_spend(GM_STEPS_UNDO * journal->count);
    for (size_t i = journal->count; i-- > 0 && !gm_limits_reached();) {
        const struct gm_undo *undo = &journal->entries[i];
        switch (undo->action) {
        case GM_UNDO_LIFE:
        case GM_UNDO_REFERENCE:
            object_goes_on(replay, undo, late, journal->is_past);
            break;
        case GM_UNDO_UNKNOWN_FREE:
            replay->ledger.unknown_frees -= replay->ledger.unknown_frees != 0;
            gm_unpaired_drop(&replay->ledger.unpaired, undo->range.start, replay->ledger.now->lane);
            break;
        case GM_UNDO_UNKNOWN_RELEASE:
            replay->ledger.unknown_frees -= replay->ledger.unknown_frees != 0;
            break;
        case GM_UNDO_CONTEXT:
            gm_context_undo(&replay->contexts, undo);
            break;
        case GM_UNDO_POOL:
            pool_goes_on(replay, undo->object);
            break;
        default:
            gm_vmm_undo(&replay->vmm, undo, late);
        }
    }
    gm_ledger_forget(&replay->ledger, journal);
}

/* ---- the plain families ---------------------------------------------------------------------- */

/* Ends with its context: all but what is stream-ordered, from a pool, VMM or of a graph. What is
 * opened or mapped of another owner's memory is a mapping of the context. */
static bool is_mortal(const struct gm_record *record)
{
    static const uint32_t kinds = 1u << GM_KIND_DEVICE | 1u << GM_KIND_MANAGED |
                                  1u << GM_KIND_ARRAY | 1u << GM_KIND_PINNED |
                                  1u << GM_KIND_REGISTERED | 1u << GM_KIND_EXTERNAL;
    return (kinds >> record->kind & 1) && !(record->flags & (GM_FLAG_POOL | GM_FLAG_ASYNC));
}

static APART void allocated(struct gm_replay *replay, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    if (!gm_kind_is_valid(record->kind)) {
        replay->ledger.malformed++;
        return;
    }
    uint32_t there = record->kind == GM_KIND_EXTERNAL
                         ? gm_lives_find(&replay->ledger.lives, record->address)
                         : GM_NONE;
    if (there != GM_NONE && replay->ledger.lives.slots[there].kind == GM_KIND_EXTERNAL) {
        /* Opening the same memory again gives the same address: one allocation, closed as often. */
        replay->ledger.lives.slots[there].references++;
        return;
    }
    struct gm_life *life = gm_ledger_draft(&replay->ledger, record, record->kind);
    if (is_mortal(record))
        life->flags |= GM_LIFE_MORTAL;
    if (entry->carried) /* its context says how it is used */
        life->flags |= (uint8_t)gm_life_carried_flags(entry);
    else
        gm_context_used(&replay->contexts, record->context);
    gm_ledger_begin_life(&replay->ledger, life);
}

/* External memory is closed once of several times. */
static APART void closed(struct gm_replay *replay, struct gm_life *life, struct gm_journal *journal)
{
    life->references--;
    struct gm_undo undo = {.action = GM_UNDO_REFERENCE, .life = *life};
    undo.life.references = 0;
    gm_ledger_note(&replay->ledger, journal, &undo);
}

static APART void freed(struct gm_replay *replay, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    struct gm_journal *journal = gm_ledger_journal(&replay->ledger, entry->lane);
    begin_journal(replay, entry, journal);
    if (record->kind == GM_KIND_ARRAY)
        gm_vmm_array_ended(&replay->vmm, record->address, journal);
    if (record->address == 0 || gm_ledger_pays(&replay->ledger, record->address))
        return;
    struct gm_index_slot *slot = gm_lives_slot(&replay->ledger.lives, record->address);
    if (!slot) {
        gm_ledger_note_unknown_free(&replay->ledger, record->address, journal);
        return;
    }
    struct gm_life *life = &replay->ledger.lives.slots[slot->number];
    if (life->references)
        closed(replay, life, journal);
    else
        gm_ledger_end_life(&replay->ledger, slot->number, slot, false, journal);
}

static void refused(struct gm_replay *replay, const struct gm_record *record)
{
    if (record->extra == OUT_OF_MEMORY)
        replay->ledger.counters.failed++;
    else if (record->kind == GM_KIND_NONE && gm_status_is_fatal(record->extra))
        return; /* the device failed: analysis.c */
    else if (record->flags & GM_FLAG_RUNTIME)
        replay->ledger.counters.refused_by_runtime++;
    else
        replay->ledger.counters.rejected++;
    gm_ledger_next_step(&replay->ledger);
}

static void pool_created(struct gm_replay *replay, const struct gm_record *record)
{
    GM_RESERVE(replay->pools, replay->pool_capacity, replay->pool_count + 1);
    replay->pools[replay->pool_count] = (struct gm_pool){
        GM_SAME(record, address, time, stack, api, device),
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
    gm_ledger_note(&replay->ledger, journal,
                   &(struct gm_undo){.action = GM_UNDO_POOL, .object = number});
}

/* ---- all records ----------------------------------------------------------------------------- */

static void look_ahead(void *argument, const struct gm_record *records, size_t count)
{
    gm_lives_prefetch(argument, records, count);
}

void gm_replay_prefetch(struct gm_replay *replay, struct gm_stream *stream)
{
    gm_stream_show_ahead(stream, look_ahead, &replay->ledger.lives);
}

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
    if (!replay->ledger.carrying && !replay->checkpoint)
        return; /* the history is whole */
    struct gm_counters *counters = &replay->ledger.counters;
    const struct gm_checkpoint *checkpoint = replay->checkpoint;
    uint64_t time = checkpoint ? checkpoint->time : 0;
    replay->ledger.carrying = false;
    gm_vmm_begin_history(&replay->vmm);
    if (time > replay->ledger.time)
        replay->ledger.time = time;
    for (int device = 0; device < GM_DEVICES; device++) {
        struct gm_device_totals *totals = &counters->device[device];
        uint64_t step = totals->live ? replay->ledger.step + 1 : 0;
        totals->peak = (struct gm_peak){totals->live, time, step};
        for (int kind = 0; kind <= GM_KIND_EXTERNAL; kind++)
            restart(&totals->kind[kind], time, replay->ledger.step + 1);
    }
    for (int kind = 0; kind < GM_KINDS; kind++)
        restart(&counters->host[kind], time, replay->ledger.step + 1);
    for (size_t lane = 0; lane < replay->ledger.journal_count; lane++)
        replay->ledger.journals[lane].is_past = true;
    replay->ledger.events = 0;
    replay->ledger.unknown_frees = checkpoint ? checkpoint->unknown_frees : 0;
    replay->ledger.lost_frees = checkpoint ? checkpoint->lost_frees : 0;
    gm_ledger_next_step(&replay->ledger);
}

void gm_replay_finish(struct gm_replay *replay)
{
    if (!replay->has_history)
        begin_history(replay);
    GM_ASSERT(gm_ledger_is_valid(&replay->ledger));
}

/* All but plain allocations and frees. */
static APART void apply_other(struct gm_replay *replay, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    struct gm_journal *journal = NULL; /* of the lane, where the record is like a free */
    if (gm_event_is_in(record->type, GM_EVENTS_FREE_LIKE)) {
        journal = gm_ledger_journal(&replay->ledger, entry->lane);
        begin_journal(replay, entry, journal);
    }
    switch (record->type) {
    case GM_EVENT_ALLOC:
    case GM_EVENT_FREE: /* captured */
        gm_graph_apply(&replay->graphs, record);
        break;
    case GM_EVENT_UNDO:
        undo_all(replay, record, gm_ledger_journal(&replay->ledger, entry->lane));
        break;
    case GM_EVENT_ALLOC_FAILED:
        refused(replay, record);
        break;
    case GM_EVENT_IGNORE:
        gm_ledger_set_ignoring(&replay->ledger, entry->lane, record->aux != 0);
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
        gm_context_released(&replay->contexts, entry, journal);
        break;
    case GM_EVENT_CONTEXT_END:
        gm_context_ended(&replay->contexts, entry, journal);
        break;
    case GM_EVENT_GRAPH_DESTROY:
    case GM_EVENT_GRAPH_EXEC_DESTROY:
        gm_graph_destroyed(&replay->graphs, record, entry->lane);
        break;
    case GM_EVENT_POOL_CREATE:
        pool_created(replay, record);
        break;
    case GM_EVENT_POOL_DESTROY:
        pool_destroyed(replay, record, journal);
        break;
    default:
        if (record->type >= GM_EVENT_VMM_CREATE && record->type <= GM_EVENT_MULTICAST_UNBIND)
            gm_vmm_apply(&replay->vmm, entry, journal);
        else if (record->type >= GM_EVENT_GRAPH_ALLOC_NODE && record->type <= GM_EVENT_GRAPH_TRIM)
            gm_graph_apply(&replay->graphs, record);
        else if (record->type >= GM_EVENTS)
            replay->not_understood++;
    }
}

static APART void apply_first(struct gm_replay *replay, const struct gm_entry *entry)
{
    replay->ledger.now = entry;
    begin_history(replay);
    gm_replay_apply(replay, entry);
}

void gm_replay_apply(struct gm_replay *replay, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    bool is_captured = (record->flags & GM_FLAG_CAPTURED) != 0;
    if (!replay->has_history) {
        if (!entry->carried) {
            apply_first(replay, entry);
            return;
        }
        replay->ledger.carrying = true;
    }
    replay->ledger.now = entry;
    replay->ledger.events++;
    if (record->time > replay->ledger.time)
        replay->ledger.time = record->time;
    if (record->type == GM_EVENT_ALLOC && !is_captured)
        allocated(replay, entry);
    else if (record->type == GM_EVENT_FREE && !is_captured)
        freed(replay, entry);
    else if (!gm_event_is_in(record->type, PASSED_OVER))
        apply_other(replay, entry);
    GM_ASSERT_SOMETIMES(gm_ledger_is_valid(&replay->ledger));
}
