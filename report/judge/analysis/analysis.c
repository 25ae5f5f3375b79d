/* See analysis.h. */
#include "judge/analysis/analysis.h"
#include "base/each.h"
#include "base/limit.h"
#include "base/memory.h"
#include "judge/analysis/recorder_counters.h"
#include "judge/pool/libraries.h"
#include "names/stacks/owner.h"
#include <stdlib.h>
#include <string.h>

/* ---- first pass ------------------------------------------------------------------------------ */

/* Counted before the observer is called, in both directions. */
static inline void note_pinned(struct gm_analysis *analysis, const struct gm_life *life)
{
    const struct gm_tally *pinned = &analysis->replay.ledger.counters.host[GM_KIND_PINNED];
    if (life->kind == GM_KIND_PINNED)
        gm_curve_set(&analysis->pinned_curve, analysis->replay.ledger.events, pinned->live,
                     pinned->allocs);
}

/* What a device holds has changed: counted before, too. */
static inline void note_device_live(struct gm_analysis *analysis, unsigned kind, uint8_t slot,
                                    uint64_t more)
{
    const struct gm_ledger *ledger = &analysis->replay.ledger;
    struct gm_clocked_curve **curve = &analysis->device_curves[slot];
    if (gm_kind_is_host(kind) || kind == GM_KIND_EXTERNAL)
        return;
    if (!*curve)
        *curve = gm_allocate(1, sizeof(**curve));
    uint64_t live = ledger->counters.device[slot].live + more;
    if (analysis->trace->header.flags & GM_HEADER_SIMULATED)
        gm_curve_set(&(*curve)->curve, analysis->device_changes, live, 0);
    else
        gm_clocked_curve_set(*curve, &analysis->trace->clock, ledger->time, live);
    analysis->device_changes++;
}

/* Of a life that activity knows. */
static inline bool is_segment(const struct gm_analysis *analysis, const struct gm_life *life)
{
    return analysis->activity.sites[life->place].is_segment;
}

static inline void note_taken(struct gm_analysis *analysis, const struct gm_life *life)
{
    if (is_segment(analysis, life))
        gm_churn_take(
            &analysis->churn, gm_callers_line(analysis->callers, life->stack),
            &(struct gm_churn_place){.bytes = life->size, GM_SAME(life, stack, api, device)});
}

/* After a refusal an allocation tells that the program went on, and perhaps found what fits. */
static uint64_t device_live(const struct gm_analysis *analysis, int device)
{
    return analysis->replay.ledger.counters.device[gm_device_slot(device)].live;
}

static void note_served(struct gm_analysis *analysis, unsigned kind, int device, uint32_t stack,
                        uint64_t size)
{
    uint64_t line = 0; /* asked for when it matters */
    bool is_elsewhere = gm_kind_is_host(kind) || kind == GM_KIND_MANAGED;
    for (size_t i = 0; i < analysis->failure_count; i++) {
        struct gm_failure *failure = &analysis->failures[i];
        if (!failure->followed)
            failure->fell_back =
                is_elsewhere && kind != failure->kind && size == failure->size && size;
        failure->followed = true;
        failure->survived |=
            failure->fell_back || (failure->device == device && !gm_kind_is_host(kind));
        failure->survived |= failure->kind == GM_KIND_NONE && failure->device < 0;
        if (failure->served || failure->kind != kind || failure->device != device)
            continue;
        if (!line)
            line = gm_callers_line(analysis->callers, stack);
        if (failure->line == line) {
            failure->served = size ? size : 1;
            failure->was_served = true;
            failure->starts_over &= gm_gave_back_more(failure->live, device_live(analysis, device),
                                                      size, failure->size);
        }
    }
}

static unsigned class_of_implicit(const struct gm_life *life)
{
    return life->flags & GM_LIFE_IGNORED ? GM_LEAK_IGNORED : GM_LEAK_IMPLICIT;
}

static void life_begins(void *argument, struct gm_life *life)
{
    struct gm_analysis *analysis = argument;
    if (analysis->failure_count)
        note_served(analysis, life->kind, life->device, life->stack, life->size);
    if (analysis->trace->failed.status && !analysis->replay.ledger.carrying)
        analysis->trace->failed = (struct gm_device_failure){0}; /* it serves: not for good */
    life->place = gm_activity_place(&analysis->activity, life, false);
    analysis->code.progress += !gm_kind_is_host(life->kind);
    note_taken(analysis, life);
    gm_activity_begins(&analysis->activity, life->place, life->size, analysis->replay.ledger.time);
    note_pinned(analysis, life);
    note_device_live(analysis, life->kind, life->slot, 0);
    gm_transfers_life_begins(&analysis->transfers, life, true);
    gm_phases_life_begins(&analysis->phases, life);
}

static void life_ends(void *argument, const struct gm_life *life, bool implicit)
{
    struct gm_analysis *analysis = argument;
    if (implicit) {
        struct gm_site site = gm_site_of_life(life, class_of_implicit(life));
        gm_sites_add(&analysis->leaks, &site);
    }
    note_pinned(analysis, life);
    note_device_live(analysis, life->kind, life->slot, 0);
    analysis->ended_since_use++;
    gm_peak_lives_ends(&analysis->peak_lives, &analysis->replay.ledger, life);
    gm_transfers_life_ends(&analysis->transfers, life);
    gm_phases_life_ends(&analysis->phases, life);
    if (is_segment(analysis, life))
        gm_churn_give(&analysis->churn, life->device, life->size);
    gm_activity_ends(&analysis->activity, life->place, life->size, life->time,
                     analysis->replay.ledger.time);
}

static void life_goes_on(void *argument, const struct gm_life *life, bool implicit)
{
    struct gm_analysis *analysis = argument;
    struct gm_site site = gm_site_of_life(life, class_of_implicit(life));
    if (implicit)
        gm_sites_subtract(&analysis->leaks, &site);
    note_pinned(analysis, life);
    note_device_live(analysis, life->kind, life->slot, 0);
    gm_transfers_life_begins(&analysis->transfers, life, false);
    gm_phases_life_goes_on(&analysis->phases, life);
    gm_activity_life_goes_on(&analysis->activity, life, analysis->replay.ledger.time);
}

/* Of memory of another owner, which is no part of what a device has. */
static void life_grows(void *argument, const struct gm_life *life, uint64_t before)
{
    struct gm_analysis *analysis = argument;
    gm_activity_grows(&analysis->activity, life, before);
}

/* Of a graph's memory: none of it is pinned, and the device has had all its addresses before. */
static void turned(void *argument, const struct gm_turn *turn)
{
    struct gm_analysis *analysis = argument;
    for (size_t i = 0; i < turn->site_count; i++)
        note_served(analysis, turn->kind, turn->device, turn->sites[i].stack, turn->sites[i].first);
    analysis->ended_since_use += turn->births;
    note_device_live(analysis, turn->kind, gm_device_slot(turn->device), turn->most);
    note_device_live(analysis, turn->kind, gm_device_slot(turn->device), 0);
    analysis->device_changes += 2 * (turn->births - 1);
    gm_phases_turned(&analysis->phases, turn);
    gm_activity_turned(&analysis->activity, turn);
}

/* What of the tracked memory takes room on a device: not managed memory, which can lie on the host. */
static uint64_t resident_on(const struct gm_analysis *analysis, uint8_t slot)
{
    const struct gm_device_totals *totals = &analysis->replay.ledger.counters.device[slot];
    return totals->live - totals->kind[GM_KIND_MANAGED].live;
}

/* All that is known to be in use on a device: what is allocated, what the driver held beside it and
 * what other processes held, both as last sampled. */
static uint64_t used_on(const struct gm_analysis *analysis, int device)
{
    uint8_t slot = gm_device_slot(device);
    const struct gm_device_facts *facts = &analysis->facts[slot];
    uint64_t used = resident_on(analysis, slot);
    return gm_add_saturated(gm_add_saturated(used, facts->last.bytes), facts->elsewhere);
}

/* A call was answered with `status`: from the first that is fatal on the device takes none any more.
 * Of a carried life it is known that its free was answered so before the history begins. */
static void note_fatal(struct gm_analysis *analysis, const struct gm_entry *entry, bool is_free)
{
    struct gm_device_failure *failed = &analysis->trace->failed;
    const struct gm_checkpoint *checkpoint = analysis->trace->checkpoint;
    uint64_t time = entry->record->time;
    if (!gm_status_is_fatal(entry->record->extra))
        return;
    if (entry->carried && is_free && checkpoint)
        time = checkpoint->time;
    if (!failed->status || time < failed->time) {
        failed->status = entry->record->extra;
        failed->time = time;
    }
    failed->frees += is_free;
}

/* What was asked for without a size. */
static unsigned purpose_of(const struct gm_record *record)
{
    if (record->kind == GM_KIND_NONE)
        return record->aux < GM_PURPOSES ? (unsigned)record->aux : GM_PURPOSE_NONE;
    if (record->size)
        return GM_PURPOSE_NONE;
    return record->kind == GM_KIND_GRAPH      ? GM_PURPOSE_GRAPH
           : record->kind == GM_KIND_EXTERNAL ? GM_PURPOSE_SHARE
                                              : GM_PURPOSE_NONE;
}

/* Keeps the refused calls that came last, those of one place as one. */
static void note_failure(struct gm_analysis *analysis, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    bool out_of_memory = record->extra == 2;
    note_fatal(analysis, entry, false);
    if (record->kind == GM_KIND_NONE && gm_status_is_fatal(record->extra))
        return; /* that was all it tells */
    if (out_of_memory && !gm_kind_is_host(record->kind)) {
        gm_activity_refuse(&analysis->activity, record, false);
        if (gm_owners_cache(analysis->owners, record->kind, record->stack))
            gm_churn_refuse(&analysis->churn, record->device);
    }
    struct gm_failure failure = {
        .first = record->size, .never_more = true, .never_same = true, .starts_over = true};
    size_t at = 0;
    while (at < analysis->failure_count && !(analysis->failures[at].stack == record->stack &&
                                             analysis->failures[at].api == record->api &&
                                             analysis->failures[at].kind == record->kind &&
                                             analysis->failures[at].purpose == purpose_of(record) &&
                                             analysis->failures[at].device == record->device &&
                                             analysis->failures[at].out_of_memory == out_of_memory))
        at++;
    if (at < analysis->failure_count) {
        failure = analysis->failures[at];
        failure.never_more &= record->size <= failure.size;
        failure.never_same &= record->size < failure.size;
    } else if (analysis->failure_count == GM_FAILURES_KEPT) {
        at = 0;
    }
    if (at < analysis->failure_count) {
        analysis->failure_count--;
        memmove(analysis->failures + at, analysis->failures + at + 1,
                (analysis->failure_count - at) * sizeof(*analysis->failures));
    }
    failure.time = record->time;
    failure.size = record->size;
    failure.count++;
    failure.stack = record->stack;
    failure.line = gm_callers_line(analysis->callers, record->stack);
    failure.status = record->extra;
    failure.api = record->api;
    failure.kind = record->kind;
    failure.purpose = (uint8_t)purpose_of(record);
    failure.device = record->device;
    failure.out_of_memory = out_of_memory;
    failure.used = used_on(analysis, record->device);
    failure.followed = failure.fell_back = failure.survived = false;
    failure.served = 0;
    failure.event = analysis->replay.ledger.events;
    failure.live = device_live(analysis, record->device);
    failure.snapshot = (struct gm_snapshot){
        .step = out_of_memory && !entry->carried ? analysis->replay.ledger.step : 0,
        .time = record->time,
        .device = record->device};
    GM_APPEND(analysis->failures, analysis->failure_capacity, analysis->failure_count, failure);
}

static void note_residual(struct gm_analysis *analysis, struct gm_device_facts *facts,
                          const struct gm_record *record)
{
    uint64_t tracked = analysis->replay.ledger.counters.device[facts - analysis->facts].live;
    facts->last = (struct gm_residual){
        .time = record->time,
        .used = record->size,
        .tracked = tracked,
        .bytes = record->size > tracked ? record->size - tracked : 0,
        .estimated = (record->flags & GM_FLAG_ESTIMATED) != 0,
    };
    if (facts->residuals++ == 0 || facts->last.bytes > facts->largest.bytes)
        facts->largest = facts->last;
}

static void note_device(struct gm_analysis *analysis, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    struct gm_device_facts *facts = &analysis->facts[gm_device_slot(record->device)];
    if (record->type == GM_EVENT_DEVICE_SAMPLE) {
        facts->samples++;
        if (record->size > facts->used_by_process)
            facts->used_by_process = record->size;
        if (record->aux > facts->fullest.bytes)
            facts->fullest = (struct gm_device_use){record->time, record->aux, record->size};
        if (record->size && record->aux >= record->size)
            facts->elsewhere = record->aux - record->size;
        if (record->size && !entry->carried) /* what was tracked then is not carried */
            note_residual(analysis, facts, record);
        return;
    }
    if (record->size)
        facts->total = record->size;
    if (record->aux)
        facts->name = gm_trace_string(analysis->trace, record->aux);
}

static void note_block(struct gm_analysis *analysis, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    struct gm_pool_failures *failures = &analysis->pool_failures;
    struct gm_block_change change = gm_blocks_note_block(&analysis->blocks, entry);
    if (change.ended)
        gm_activity_block_ends(&analysis->activity, change.ended, record->time);
    if (change.begun) {
        analysis->code.progress++;
        gm_activity_block_begins(&analysis->activity, change.begun,
                                 gm_ledger_is_ignoring(&analysis->replay.ledger, entry->lane));
    }
    if (record->type == GM_EVENT_BLOCK_OOM || failures->open)
        gm_pool_failures_note(failures, analysis->callers, &analysis->blocks, entry);
    if (record->type != GM_EVENT_BLOCK_FREE)
        analysis->ended_since_use = 0;
    if (record->type == GM_EVENT_BLOCK_ALLOC)
        analysis->active_until = analysis->replay.ledger.events;
    if (record->type != GM_EVENT_BLOCK_OOM) {
        gm_phases_note_block(&analysis->phases, record, &analysis->blocks);
    } else {
        uint8_t slot = gm_device_slot(record->device);
        struct gm_pool_failure *failure = &failures->entries[failures->count - 1];
        failure->elsewhere = analysis->facts[slot].elsewhere;
        failure->residual = analysis->facts[slot].last.bytes;
        failure->total = analysis->facts[slot].total;
        failure->tracked = resident_on(analysis, slot);
        failure->event = analysis->replay.ledger.events;
        gm_activity_refuse(&analysis->activity, record, true);
    }
}

static void note_entry(struct gm_analysis *analysis, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    switch (record->type) {
    case GM_EVENT_ALLOC_FAILED:
        note_failure(analysis, entry);
        break;
    case GM_EVENT_UNDO:
        note_fatal(analysis, entry,
                   record->kind == GM_EVENT_FREE || record->kind == GM_EVENT_VMM_RELEASE);
        break;
    case GM_EVENT_VMM_CREATE:
    case GM_EVENT_VMM_IMPORT:
        if (entry->carried)
            note_fatal(analysis, entry, true);
        break;
    case GM_EVENT_DEVICE:
    case GM_EVENT_DEVICE_SAMPLE:
        note_device(analysis, entry);
        break;
    case GM_EVENT_MARK:
        analysis->marks++;
        break;
    case GM_EVENT_GRAPH_INSTANTIATE:
        gm_rounds_graph(&analysis->activity.rounds);
        break;
    case GM_EVENT_MODULE_LOAD:
        if (!entry->carried)
            gm_code_load(
                &analysis->code, record->address,
                &(struct gm_code_load){.line = gm_callers_line(analysis->callers, record->stack),
                                       .stack = record->stack,
                                       .api = record->api});
        break;
    case GM_EVENT_MODULE_UNLOAD:
        gm_code_unload(&analysis->code, record->address);
        break;
    default:
        if (gm_transfers_note(&analysis->transfers, record,
                              analysis->blocks.records ? analysis->blocks.live
                                                       : analysis->replay.ledger.counters.live))
            gm_rounds_copy(&analysis->activity.rounds);
    }
    if (record->type == GM_EVENT_COPY) {
        analysis->active_until = analysis->called_until = analysis->replay.ledger.events;
        analysis->code.progress += !analysis->blocks.records;
    }
    gm_activity_mark(&analysis->activity, gm_phases_note(&analysis->phases, entry));
}

static void first_pass(struct gm_analysis *analysis)
{
    struct gm_replay *replay = &analysis->replay;
    struct gm_stream *stream = gm_stream_open(analysis->trace);
    struct gm_entry entry;
    replay->ledger.observer = (struct gm_life_observer){life_begins, life_ends,  life_goes_on,
                                                        turned,      life_grows, analysis};
    gm_replay_prefetch(replay, stream);
    while (gm_stream_next(stream, &entry)) {
        gm_limits_spend(GM_STEPS_NOTES);
        gm_replay_apply(replay, &entry);
        switch (entry.record->type) {
        case GM_EVENT_ALLOC: /* all that they mean was told by births and deaths */
            analysis->active_until = analysis->called_until = replay->ledger.events;
            if (entry.carried)
                note_fatal(analysis, &entry, true);
            break;
        case GM_EVENT_FREE:
            analysis->called_until = replay->ledger.events;
            break;
        case GM_EVENT_BLOCK_ALLOC:
        case GM_EVENT_BLOCK_FREE:
        case GM_EVENT_BLOCK_OOM:
            note_block(analysis, &entry);
            break;
        default:
            note_entry(analysis, &entry);
        }
    }
    gm_replay_finish(replay);
    analysis->lost = gm_stream_lost(stream) + gm_counted_loss(analysis->trace);
    gm_stream_close(stream);
}

/* Which lives hold blocks of a framework's pool, by number: at their address, or where their memory
 * is mapped. */
static bool *find_segments(const struct gm_analysis *analysis)
{
    const struct gm_lives *lives = &analysis->replay.ledger.lives;
    const struct gm_vmm *vmm = &analysis->replay.vmm;
    struct gm_block_order order = gm_block_order_of(&analysis->blocks);
    bool *segments = gm_allocate((size_t)lives->used + 1, sizeof(*segments));
    struct gm_range range = {0};
    for (uint32_t i = 0; order.count && i < lives->used; i++) {
        const struct gm_life *life = &lives->slots[i];
        if (life->kind != GM_KIND_NONE && life->flags & GM_LIFE_ADDRESSED)
            segments[i] = gm_block_order_within(&order, life->address,
                                                gm_range_end(life->address, life->size));
    }
    while (order.count && gm_ranges_find(&vmm->mappings, range.end, UINT64_MAX, &range)) {
        uint32_t life = vmm->objects[range.value].life;
        if (life != GM_NONE && gm_block_order_within(&order, range.start, range.end))
            segments[life] = true;
    }
    gm_block_order_free(&order);
    return segments;
}

static unsigned leak_class(const struct gm_analysis *analysis, const struct gm_life *life,
                           bool is_segment)
{
    if (life->flags & GM_LIFE_IGNORED)
        return GM_LEAK_IGNORED;
    if (life->kind == GM_KIND_EXTERNAL ||
        gm_owners_get(analysis->owners, life->stack) & GM_OWNER_VENDOR)
        return GM_LEAK_EXTERNAL;
    if (life->flags & GM_LIFE_LATE)
        return GM_LEAK_LATE;
    bool is_over = analysis->trace->ending == GM_ENDING_NORMAL ||
                   analysis->trace->header.flags & GM_HEADER_SNAPSHOT;
    if (is_over && (is_segment || gm_owners_cache(analysis->owners, life->kind, life->stack)))
        return GM_LEAK_CACHED; /* a snapshot tells of nothing but segments */
    if (life->context == GM_CONTEXT_UNTOLD && life->flags & GM_LIFE_MORTAL)
        return GM_LEAK_UNTOLD;
    return is_over ? GM_LEAK : GM_LEAK_LIVE;
}

/* What is left. */
static void judge_lives(struct gm_analysis *analysis)
{
    const struct gm_lives *lives = &analysis->replay.ledger.lives;
    bool *segments = find_segments(analysis);
    for (uint32_t i = 0; i < lives->used; i++) {
        const struct gm_life *life = &lives->slots[i];
        if (life->kind == GM_KIND_NONE)
            continue;
        struct gm_site site = gm_site_of_life(life, leak_class(analysis, life, segments[i]));
        gm_sites_add(&analysis->leaks, &site);
    }
    free(segments);
    gm_sites_finish(&analysis->leaks);
    for (size_t i = 0; i < analysis->leaks.count; i++) {
        const struct gm_site *site = &analysis->leaks.entries[i];
        analysis->leaked[site->class] += site->bytes;
        analysis->leaked_count[site->class] += site->count;
    }
}

/* ---- second pass ----------------------------------------------------------------------------- */

static void collect_peaks(struct gm_analysis *analysis)
{
    const struct gm_counters *counters = &analysis->replay.ledger.counters;
    analysis->device_peaks = gm_allocate(GM_DEVICES, sizeof(*analysis->device_peaks));
    for (int i = 0; i < GM_DEVICES; i++) {
        const struct gm_peak *peak = &counters->device[i].peak;
        if (!peak->step)
            continue;
        struct gm_snapshot *snapshot = &analysis->device_peaks[analysis->device_peak_count++];
        *snapshot = (struct gm_snapshot){.step = peak->step, .time = peak->time, .device = i - 1};
        gm_snapshot_of_peak(snapshot, &analysis->peak_lives, &analysis->replay.ledger);
    }
    const struct gm_peak *pinned = &counters->host[GM_KIND_PINNED].peak;
    analysis->pinned_peak = (struct gm_snapshot){
        .step = pinned->step, .time = pinned->time, .device = -1, .kind = GM_KIND_PINNED};
    if (pinned->step)
        gm_snapshot_of_peak(&analysis->pinned_peak, &analysis->peak_lives,
                            &analysis->replay.ledger);
    gm_peak_lives_free(&analysis->peak_lives);
    analysis->peak_lives = (struct gm_peak_lives){0};
}

static void collect_pools(struct gm_analysis *analysis)
{
    const struct gm_blocks *blocks = &analysis->blocks;
    analysis->pool_peaks = gm_allocate(GM_DEVICES, sizeof(*analysis->pool_peaks));
    analysis->pool_lasts = gm_allocate(GM_DEVICES, sizeof(*analysis->pool_lasts));
    for (int i = 0; i < GM_DEVICES; i++) {
        const struct gm_block_totals *totals = &blocks->device[i];
        if (!totals->peak.bytes)
            continue;
        size_t at = analysis->pool_count++;
        analysis->pool_peaks[at] = (struct gm_pool_snapshot){.record = totals->peak.step,
                                                             .time = totals->peak.time,
                                                             .device = i - 1,
                                                             .allocated = totals->peak.bytes,
                                                             .is_peak = true};
        analysis->pool_lasts[at] = (struct gm_pool_snapshot){
            .record = blocks->last_use_record, .time = blocks->last_use_time, .device = i - 1};
    }
}

/* What the pools held just after the last use, if no segment has gone since: PyTorch returns
 * none when a program ends. Saves a second replay to the very end. */
static void take_lasts(struct gm_analysis *analysis)
{
    struct gm_libraries *libraries = gm_libraries_new(analysis->trace);
    for (size_t i = 0; i < analysis->pool_count; i++) {
        struct gm_pool_snapshot *last = &analysis->pool_lasts[i];
        last->reserved = analysis->blocks.device[last->device + 1].reserved;
        last->in_use = analysis->blocks.device[last->device + 1].in_use;
        gm_pool_snapshot_take(last, &analysis->replay, &analysis->last_blocks, libraries);
    }
    gm_libraries_free(libraries);
}

static void second_pass(struct gm_analysis *analysis)
{
    struct gm_pool_failures *refused = &analysis->pool_failures;
    struct gm_moments moments = {0};
    collect_peaks(analysis);
    collect_pools(analysis);
    moments.devices = gm_allocate(analysis->failure_count + 1, sizeof(struct gm_snapshot *));
    moments.pools = gm_allocate(2 * analysis->pool_count + refused->count + 1,
                                sizeof(struct gm_pool_snapshot *));
    for (size_t i = 0; i < analysis->failure_count; i++)
        if (analysis->failures[i].snapshot.step)
            moments.devices[moments.device_count++] = &analysis->failures[i].snapshot;
    for (size_t i = 0; i < analysis->pool_count; i++)
        moments.pools[moments.pool_count++] = &analysis->pool_peaks[i];
    for (size_t i = 0; i < analysis->pool_count && analysis->ended_since_use; i++)
        moments.pools[moments.pool_count++] = &analysis->pool_lasts[i];
    for (size_t i = 0; i < refused->count; i++)
        if (refused->entries[i].snapshot.record)
            moments.pools[moments.pool_count++] = &refused->entries[i].snapshot;
    gm_snapshots_take(analysis->trace, &moments);
    free(moments.devices);
    free(moments.pools);
}

/* A program survives a refusal if it allocates on the device afterwards, takes as much elsewhere instead, or
 * calls CUDA again and ends with exit code 0. */
static void judge_survival(struct gm_analysis *analysis)
{
    struct gm_pool_failures *pools = &analysis->pool_failures;
    bool ended_well = gm_ended_of(&analysis->trace->header).exit_code == 0;
    for (size_t i = 0; ended_well && i < analysis->failure_count; i++)
        analysis->failures[i].survived |= analysis->called_until > analysis->failures[i].event;
    for (size_t i = 0; i < pools->count; i++) {
        struct gm_pool_failure *failure = &pools->entries[i];
        failure->survived = gm_pool_failure_is_followed(failure, &analysis->blocks) ||
                            (ended_well && analysis->called_until > failure->event);
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

struct gm_analysis *gm_analyse_briefly(struct gm_trace *trace)
{
    struct gm_analysis *analysis = gm_allocate(1, sizeof(*analysis));
    analysis->trace = trace;
    trace->failed = (struct gm_device_failure){0};
    analysis->callers = gm_callers_new(trace);
    analysis->owners = gm_owners_new(trace);
    analysis->categories = gm_categories_new(trace);
    gm_replay_begin(&analysis->replay);
    analysis->replay.checkpoint = trace->checkpoint;
    gm_phases_begin(&analysis->phases, trace->clock.origin);
    gm_activity_begin(
        &analysis->activity, trace,
        &(struct gm_round_tellers){analysis->categories, analysis->callers, analysis->owners});
    first_pass(analysis);
    judge_survival(analysis);
    uint64_t end = analysis->replay.ledger.time;
    if (trace->header.end != GM_END_NONE && trace->header.end_time > end)
        end = trace->header.end_time;
    if (trace->failed.status && trace->ending == GM_ENDING_NORMAL)
        trace->ending = GM_ENDING_FAILED;
    if (trace->as_of_ns && trace->until > end)
        end = trace->until; /* it lasts */
    analysis->duration = gm_clock_elapsed(&trace->clock, end);
    gm_phases_finish(&analysis->phases, end);
    gm_activity_finish(&analysis->activity);
    gm_blocks_finish(&analysis->blocks);
    gm_curve_finish(&analysis->pinned_curve, analysis->active_until);
    bool is_simulated = (trace->header.flags & GM_HEADER_SIMULATED) != 0;
    for (int i = 0; i < GM_DEVICES; i++)
        if (analysis->device_curves[i])
            gm_curve_finish(&analysis->device_curves[i]->curve,
                            is_simulated ? analysis->device_changes : analysis->duration);
    return analysis;
}

struct gm_analysis *gm_analyse(struct gm_trace *trace)
{
    struct gm_analysis *analysis = gm_analyse_briefly(trace);
    judge_lives(analysis);
    analysis->last_blocks = gm_block_order_at_last(&analysis->blocks);
    second_pass(analysis);
    if (!analysis->ended_since_use)
        take_lasts(analysis);
    gm_transfers_finish(&analysis->transfers);
    return analysis;
}

void gm_analysis_free(struct gm_analysis *analysis)
{
    if (!analysis)
        return;
    gm_replay_end(&analysis->replay);
    gm_peak_lives_free(&analysis->peak_lives);
    for (size_t i = 0; i < analysis->device_peak_count; i++)
        gm_sites_free(&analysis->device_peaks[i].owners);
    free(analysis->device_peaks);
    for (int i = 0; i < GM_DEVICES; i++)
        free(analysis->device_curves[i]);
    gm_sites_free(&analysis->pinned_peak.owners);
    gm_sites_free(&analysis->leaks);
    for (size_t i = 0; i < analysis->failure_count; i++)
        gm_sites_free(&analysis->failures[i].snapshot.owners);
    free(analysis->failures);
    gm_transfers_free(&analysis->transfers);
    gm_blocks_free(&analysis->blocks);
    gm_callers_free(analysis->callers);
    gm_owners_free(analysis->owners);
    gm_categories_free(analysis->categories);
    gm_pool_failures_free(&analysis->pool_failures);
    for (size_t i = 0; i < analysis->pool_count; i++) {
        gm_sites_free(&analysis->pool_peaks[i].owners);
        gm_sites_free(&analysis->pool_lasts[i].owners);
        gm_shapes_free(&analysis->pool_peaks[i].shapes);
    }
    free(analysis->pool_peaks);
    free(analysis->pool_lasts);
    gm_block_order_free(&analysis->last_blocks);
    gm_phases_free(&analysis->phases);
    gm_activity_free(&analysis->activity);
    gm_churn_free(&analysis->churn);
    gm_code_loads_free(&analysis->code);
    free(analysis);
}

enum gm_fragmentation gm_analysis_fragmentation(const struct gm_analysis *analysis,
                                                const struct gm_failure *failure)
{
    uint64_t total = analysis->facts[gm_device_slot(failure->device)].total;
    if (!failure->snapshot.step || !gm_holes_refuse(&failure->snapshot.holes, failure->size))
        return GM_FRAGMENTATION_NONE;
    if (!total)
        return GM_FRAGMENTATION_UNTOLD;
    bool had_room = failure->used <= total && total - failure->used >= failure->size;
    return had_room ? GM_FRAGMENTATION_CERTAIN : GM_FRAGMENTATION_NONE;
}

const struct gm_snapshot *gm_analysis_peak(const struct gm_analysis *analysis, int device)
{
    for (size_t i = 0; i < analysis->device_peak_count; i++)
        if (analysis->device_peaks[i].device == device)
            return &analysis->device_peaks[i];
    return NULL;
}

const struct gm_pool_snapshot *gm_analysis_pool_peak(const struct gm_analysis *analysis, int device)
{
    for (size_t i = 0; i < analysis->pool_count; i++)
        if (analysis->pool_peaks[i].device == device)
            return &analysis->pool_peaks[i];
    return NULL;
}

const struct gm_pool_failure *gm_analysis_pool_failure(const struct gm_analysis *analysis,
                                                       const struct gm_failure *failure)
{
    const struct gm_pool_failures *pools = &analysis->pool_failures;
    uint64_t line = gm_callers_line(analysis->callers, failure->stack);
    for (size_t i = 0; i < pools->count; i++)
        if (pools->entries[i].line == line && pools->entries[i].device == failure->device)
            return &pools->entries[i];
    return NULL;
}
