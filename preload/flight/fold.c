/* See fold.h. What ends and is undone, and the plain families: lives of addresses, blocks, pools,
 * modules, and what is only ever replaced by a later record of its kind. */
#include "flight/fold.h"
#include "base/assert.h"
#include "flight/alive.h"
#include "flight/fold_context.h"
#include "flight/fold_graph.h"
#include "flight/fold_vmm.h"
#include <string.h>

#define FAILURES 8u /* refused allocations that are carried: the last ones */

static uint32_t failures[FAILURES];
static uint64_t failure_count;

static uint32_t ignoring_end; /* one past the last lane that ever ignored */
static uint64_t ignored_at;   /* time of the latest record of that */

/* ---- ends, and their undoing ----------------------------------------------------------------- */

/* Who lives at the address since then shows that the free did happen. Memory of another owner is
 * open as often as before, whoever closed it last; was it over, that is one more birth. */
static bool life_may_go_on(struct gm_carried *entry)
{
    uint32_t other = gm_carry_find(GM_CARRY_LIFE, entry->key);
    if (!other) {
        gm_fold_totals.allocs += entry->reference;
        *gm_fold_frees_of(entry) += entry->reference; /* which is taken back at once */
        entry->reference = false;
        return true;
    }
    bool goes_on = entry->record.kind == GM_KIND_EXTERNAL &&
                   gm_carry_at(other)->record.kind == GM_KIND_EXTERNAL;
    entry->reference = true;
    entry->record = gm_carry_at(other)->record;
    return goes_on;
}

static bool may_go_on(uint32_t number, uint32_t status)
{
    struct gm_carried *entry = gm_carry_at(number);
    switch (entry->role) {
    case GM_CARRY_LIFE:
        return life_may_go_on(entry);
    case GM_CARRY_RESERVATION:
        return !gm_carry_overlapping(GM_CARRY_RESERVATION, entry->record.address,
                                     entry->record.size);
    case GM_CARRY_MAPPING:
    case GM_CARRY_BINDING:
        return gm_fold_vmm_revive(number, status);
    case GM_CARRY_POOL:
    case GM_CARRY_MODULE:
    case GM_CARRY_GRAPH:
    case GM_CARRY_EXECUTABLE:
        return !gm_carry_find(entry->role, entry->key);
    default:
        return true;
    }
}

/* Its end is settled. */
static void be_over(uint32_t number)
{
    unsigned role = gm_carry_at(number)->role;
    if (role == GM_CARRY_MAPPING || role == GM_CARRY_BINDING)
        gm_fold_vmm_over(number);
    else if (role == GM_CARRY_GRAPH || role == GM_CARRY_EXECUTABLE)
        gm_fold_graph_over(number);
    else
        gm_carry_remove(number);
}

/* What ended others in the meantime did not end it, nor did what lived in its place: it is carried
 * behind them. */
static void go_on(uint32_t number, uint32_t status)
{
    struct gm_carried *entry = gm_carry_at(number);
    if (!may_go_on(number, status)) {
        be_over(number);
        return;
    }
    gm_carry_move_last(number);
    *gm_fold_frees_of(entry) -= gm_fold_is_birth(entry);
    entry->ended = false;
    gm_alive_enter(entry);
    if (gm_fold_is_birth(entry))
        gm_fold_mark_late(number, status);
    if (entry->role < GM_CARRY_BINDING)
        gm_carry_show(number);
}

/* The count that the record took down by one. */
static void released(const struct gm_carried *ending, bool undone, uint32_t status)
{
    if (ending->record.type == GM_EVENT_CONTEXT_RELEASE)
        gm_fold_context_released(ending, undone);
    if (ending->record.type == GM_EVENT_VMM_RELEASE)
        gm_fold_vmm_released(ending, undone, status);
}

/* What the lane's latest free-like record did is settled, or back, last step first. */
static void settle_call(uint32_t lane, bool undone, uint32_t status)
{
    uint32_t number = gm_fold_lanes[lane].ending, next;
    if (!number)
        return;
    const struct gm_carried *ending = gm_carry_at(number);
    gm_fold_lanes[lane].ending = 0;
    for (uint32_t at = ending->same; at; at = next) {
        next = gm_carry_at(at)->same;
        gm_carry_at(at)->same = 0;
        if (undone)
            go_on(at, status);
        else
            be_over(at);
    }
    released(ending, undone, status);
    if (undone || !ending->kept)
        gm_carry_remove(number);
}

/* Notes a free-like record, before it is applied. */
static uint32_t begin_ending(const struct gm_record *record, uint32_t lane)
{
    settle_call(lane, false, 0);
    gm_fold_lanes[lane].unknown = false;
    return gm_fold_lanes[lane].ending = gm_fold_add(GM_CARRY_ENDING, 0, record, NULL, lane);
}

/* After it: what nothing came of need not be remembered. */
static void finish_ending(uint32_t lane)
{
    uint32_t number = gm_fold_lanes[lane].ending;
    if (!number)
        return;
    const struct gm_carried *ending = gm_carry_at(number);
    if (ending->same || ending->other || ending->kept || gm_fold_lanes[lane].unknown)
        return;
    gm_carry_remove(number);
    gm_fold_lanes[lane].ending = 0;
}

static void undo_call(const struct gm_record *record, uint32_t lane)
{
    uint32_t number = gm_fold_lanes[lane].ending;
    if (number && gm_carry_at(number)->record.type == record->kind &&
        gm_carry_at(number)->record.address == record->address) {
        if (gm_fold_lanes[lane].unknown) {
            gm_fold_unknown_frees--;
            if (record->kind == GM_EVENT_FREE)
                gm_fold_drop_note(record->address, lane);
        }
        gm_fold_lanes[lane].unknown = false;
        settle_call(lane, true, record->extra);
    }
}

/* ---- lives of addresses ---------------------------------------------------------------------- */

static void allocated(const struct gm_record *record, uint32_t lane)
{
    if (record->kind == GM_KIND_NONE || record->kind >= GM_KINDS)
        return;
    uint32_t there = gm_carry_find(GM_CARRY_LIFE, record->address);
    if (there && record->kind == GM_KIND_EXTERNAL &&
        gm_carry_at(there)->record.kind == GM_KIND_EXTERNAL) {
        struct gm_record first = gm_carry_at(there)->record; /* it may be all that is left of it */
        uint32_t again = gm_fold_add(GM_CARRY_LIFE, record->address, &first, NULL, lane);
        if (again)
            gm_carry_at(again)->reference = true; /* closed as often as it was opened */
        return;
    }
    gm_fold_context_use(record->context);
    gm_fold_begin_life(record, 0, lane);
}

static void freed(const struct gm_record *record, uint32_t lane, uint32_t ending)
{
    if (record->kind == GM_KIND_ARRAY)
        gm_fold_vmm_array_ended(record->address, ending);
    if (!record->address || gm_fold_pays(record->address, record->time, 0, lane))
        return;
    uint32_t number = gm_carry_find(GM_CARRY_LIFE, record->address);
    if (number) {
        gm_fold_end(number, ending, false);
        return;
    }
    gm_fold_unknown_free(lane, ending);
    gm_fold_note(GM_EVENT_FREE, record->address, record->time, lane);
}

static void refused(const struct gm_record *record, uint32_t lane)
{
    uint32_t *slot = &failures[failure_count++ % FAILURES];
    if (*slot)
        gm_carry_remove(*slot);
    *slot = gm_fold_add(GM_CARRY_FAILURE, 0, record, NULL, lane);
    gm_fold_totals.failed += record->kind != GM_KIND_NONE || !gm_status_is_fatal(record->extra);
}

/* ---- what has a key and is begun, ended or replaced ------------------------------------------ */

static void end_keyed(enum gm_carry_role role, uint64_t key, uint32_t ending)
{
    uint32_t number = gm_carry_find(role, key);
    if (number)
        gm_fold_end(number, ending, false);
}

static void replace(enum gm_carry_role role, uint64_t key, const struct gm_record *record,
                    const struct gm_record *detail, uint32_t lane)
{
    end_keyed(role, key, 0);
    gm_fold_add(role, key, record, detail, lane);
}

/* A device's name and size may come from different calls. */
static void device(const struct gm_record *record, uint32_t lane)
{
    struct gm_record both = *record;
    uint32_t before = gm_carry_find(GM_CARRY_DEVICE, (uint8_t)record->device);
    if (before && !both.size)
        both.size = gm_carry_at(before)->record.size;
    if (before && !both.aux)
        both.aux = gm_carry_at(before)->record.aux;
    replace(GM_CARRY_DEVICE, (uint8_t)record->device, &both, NULL, lane);
}

/* What a block lies in is a pool's. Memory that has an address is taken for a block, which then
 * begins where it does; into what is mapped a block is put anywhere. */
static void note_pool(uint64_t address, uint64_t size)
{
    uint32_t number = gm_carry_find(GM_CARRY_LIFE, address);
    if (number) {
        gm_alive_pool(gm_carry_at(number));
        return;
    }
    uint64_t last = size ? gm_carry_last(address, size) : address;
    while (address <= last &&
           (number = gm_carry_overlapping(GM_CARRY_MAPPING, address, last - address + 1))) {
        const struct gm_carried *mapping = gm_carry_at(number);
        gm_alive_pool(gm_carry_at(mapping->other));
        uint64_t end = gm_carry_last(mapping->record.address, mapping->record.size);
        if (end == UINT64_MAX)
            return;
        address = end + 1;
    }
}

static void begin_fold_block(const struct gm_record *record, const struct gm_record *detail,
                             uint32_t lane)
{
    end_keyed(GM_CARRY_BLOCK, record->address, 0);
    uint32_t number = gm_fold_add(GM_CARRY_BLOCK, record->address, record, detail, lane);
    if (!number)
        return;
    note_pool(record->address, record->size);
    gm_alive_enter(gm_carry_at(number));
}

/* What a device's pool holds was said last by a record that may outlive the block it tells of, or
 * not: it is kept apart from the block, as a free of nothing. */
static void block(const struct gm_record *record, const struct gm_record *detail, uint32_t lane)
{
    struct gm_record last = *record;
    if (record->type == GM_EVENT_BLOCK_ALLOC) {
        begin_fold_block(record, detail, lane);
        last.type = GM_EVENT_BLOCK_FREE;
        last.address = UINT64_MAX;
    } else if (record->type == GM_EVENT_BLOCK_FREE) {
        end_keyed(GM_CARRY_BLOCK, record->address, 0);
    }
    replace(GM_CARRY_BLOCK_LAST, (uint8_t)record->device, &last, detail, lane);
}

static void push_range(const struct gm_record *record, uint32_t lane)
{
    uint32_t number = gm_fold_add(GM_CARRY_RANGE, 0, record, NULL, lane);
    if (!number)
        return;
    gm_carry_at(number)->other = gm_fold_lanes[lane].range;
    gm_fold_lanes[lane].range = number;
}

static void pop_range(uint32_t lane)
{
    uint32_t number = gm_fold_lanes[lane].range;
    if (!number)
        return;
    gm_fold_lanes[lane].range = gm_carry_at(number)->other;
    gm_carry_remove(number);
}

/* ---- all records ----------------------------------------------------------------------------- */

static void ignore(const struct gm_record *record, uint32_t lane)
{
    gm_fold_lanes[lane].ignoring = record->aux != 0;
    ignored_at = record->time;
    if (lane >= ignoring_end)
        ignoring_end = lane + 1;
}

static void apply(const struct gm_record *record, const struct gm_record *detail, uint32_t lane,
                  uint32_t ending)
{
    bool captured = record->flags & GM_FLAG_CAPTURED;
    switch ((enum gm_event)record->type) { /* no default: a new event wants a decision */
    case GM_EVENT_ALLOC:
        captured ? gm_fold_graph_apply(record, lane, 0) : allocated(record, lane);
        break;
    case GM_EVENT_FREE:
        captured ? gm_fold_graph_apply(record, lane, 0) : freed(record, lane, ending);
        break;
    case GM_EVENT_UNDO:
        undo_call(record, lane);
        break;
    case GM_EVENT_ALLOC_FAILED:
        refused(record, lane);
        break;
    case GM_EVENT_COPY:
        gm_fold_totals.copies++;
        gm_fold_totals.copied += record->size;
        break;
    case GM_EVENT_CONTEXT:
    case GM_EVENT_CONTEXT_RETAIN:
    case GM_EVENT_CONTEXT_RELEASE:
    case GM_EVENT_CONTEXT_END:
        gm_fold_context_apply(record, ending);
        break;
    case GM_EVENT_VMM_CREATE:
    case GM_EVENT_VMM_IMPORT:
    case GM_EVENT_VMM_RETAIN:
    case GM_EVENT_VMM_RELEASE:
    case GM_EVENT_VMM_RESERVE:
    case GM_EVENT_VMM_UNRESERVE:
    case GM_EVENT_VMM_MAP:
    case GM_EVENT_VMM_UNMAP:
    case GM_EVENT_MULTICAST_CREATE:
    case GM_EVENT_MULTICAST_BIND:
    case GM_EVENT_MULTICAST_UNBIND:
        gm_fold_vmm_apply(record, detail, lane, ending);
        break;
    case GM_EVENT_POOL_CREATE:
        replace(GM_CARRY_POOL, record->address, record, NULL, lane);
        break;
    case GM_EVENT_POOL_DESTROY:
        end_keyed(GM_CARRY_POOL, record->address, ending);
        break;
    case GM_EVENT_GRAPH_ALLOC_NODE:
    case GM_EVENT_GRAPH_FREE_NODE:
    case GM_EVENT_GRAPH_CHILD:
    case GM_EVENT_GRAPH_INSTANTIATE:
    case GM_EVENT_GRAPH_LAUNCH:
    case GM_EVENT_GRAPH_EXEC_DESTROY:
    case GM_EVENT_GRAPH_DESTROY:
    case GM_EVENT_GRAPH_CLONE:
        gm_fold_graph_apply(record, lane, ending);
        break;
    case GM_EVENT_MODULE_LOAD:
        replace(GM_CARRY_MODULE, record->address, record, NULL, lane);
        break;
    case GM_EVENT_MODULE_UNLOAD:
        end_keyed(GM_CARRY_MODULE, record->address, ending);
        break;
    case GM_EVENT_GLOBAL:
        replace(GM_CARRY_GLOBAL, record->address, record, NULL, lane);
        break;
    case GM_EVENT_DEVICE:
        device(record, lane);
        break;
    case GM_EVENT_DEVICE_SAMPLE:
        replace(GM_CARRY_SAMPLE, (uint8_t)record->device, record, NULL, lane);
        break;
    case GM_EVENT_THREAD:
        replace(GM_CARRY_THREAD, lane, record, NULL, lane);
        break;
    case GM_EVENT_RANGE_PUSH:
        push_range(record, lane);
        break;
    case GM_EVENT_RANGE_POP:
        pop_range(lane);
        break;
    case GM_EVENT_RANGE_START:
        replace(GM_CARRY_SPAN, record->address, record, NULL, lane);
        break;
    case GM_EVENT_RANGE_END:
        end_keyed(GM_CARRY_SPAN, record->address, 0);
        break;
    case GM_EVENT_MARK:
        replace(GM_CARRY_MARK, record->extra != 0, record, NULL, lane);
        break;
    case GM_EVENT_BLOCK_ALLOC:
    case GM_EVENT_BLOCK_FREE:
    case GM_EVENT_BLOCK_OOM:
        block(record, detail, lane);
        break;
    case GM_EVENT_IGNORE:
        ignore(record, lane);
        break;
    case GM_EVENT_NONE: /* history, and nothing else */
    case GM_EVENT_SET:
    case GM_EVENT_POOL_TRIM:
    case GM_EVENT_POOL_SET:
    case GM_EVENT_GRAPH_TRIM:
    case GM_EVENT_HINT:
    case GM_EVENT_HOST_CALL:
    case GM_EVENT_DETAIL: /* given with its record */
    case GM_EVENTS:
        break;
    }
}

void gm_fold(const struct gm_record *record, const struct gm_record *detail, uint32_t lane)
{
    bool free_like = gm_event_is_in(record->type, GM_EVENTS_FREE_LIKE);
    gm_fold_totals.events++;
    uint32_t ending = free_like ? begin_ending(record, lane) : 0;
    apply(record, detail, lane, ending);
    if (free_like)
        finish_ending(lane);
    GM_ASSERT_SOMETIMES(gm_carry_is_valid() && gm_alive_is_valid());
}

/* ---- what is carried over -------------------------------------------------------------------- */

static void tell_ignoring(uint32_t lane, bool ignoring, uint64_t time, gm_carry_taker *take,
                          void *argument)
{
    if (gm_fold_lanes[lane].told == ignoring)
        return;
    gm_fold_lanes[lane].told = ignoring;
    take(argument,
         &(struct gm_record){.type = GM_EVENT_IGNORE, .time = time, .aux = ignoring, .device = -1},
         lane);
}

static void emit_carried(uint32_t number, gm_carry_taker *take, void *argument)
{
    const struct gm_carried *entry = gm_carry_at(number);
    struct gm_record record = entry->record;
    if (gm_carried_is_memory(entry))
        tell_ignoring(entry->lane, entry->ignored, record.time, take, argument);
    bool has_other_handle = gm_fold_vmm_prepare(number, &record);
    uint64_t detail = has_other_handle ? entry->record.address : entry->detail;
    take(argument, &record, entry->lane);
    if (entry->has_detail || has_other_handle)
        take(argument,
             &(struct gm_record){.type = GM_EVENT_DETAIL, .time = record.time, .address = detail},
             entry->lane);
}

/* Whether a free of what did not live then, and may since. Such come before all lives. */
static bool is_unknown_free(uint32_t number)
{
    const struct gm_carried *entry = gm_carry_at(number);
    return entry->role == GM_CARRY_ENDING && gm_fold_lanes[entry->lane].ending == number &&
           gm_fold_lanes[entry->lane].unknown;
}

void gm_fold_emit(gm_carry_taker *take, void *argument)
{
    GM_ASSERT(gm_carry_is_valid() && gm_alive_is_valid());
    gm_fold_context_emit(false, take, argument);
    for (uint32_t at = gm_carry_first(); at; at = gm_carry_at(at)->next)
        if (is_unknown_free(at))
            emit_carried(at, take, argument);
    for (uint32_t at = gm_carry_first(); at; at = gm_carry_at(at)->next) {
        const struct gm_carried *entry = gm_carry_at(at);
        if (entry->role == GM_CARRY_GRAPH || entry->role == GM_CARRY_EXECUTABLE)
            gm_fold_graph_emit(entry, take, argument);
        else if (!is_unknown_free(at))
            emit_carried(at, take, argument);
    }
    gm_fold_context_emit(true, take, argument);
    for (uint32_t lane = 0; lane < ignoring_end; lane++)
        tell_ignoring(lane, gm_fold_lanes[lane].ignoring, ignored_at, take, argument);
    for (uint32_t lane = 0; lane < ignoring_end; lane++)
        gm_fold_lanes[lane].told = false;
    gm_fold_notes_are_carried();
}

bool gm_fold_prepare(void)
{
    return gm_fold_lives_prepare() && gm_fold_context_prepare();
}

void gm_fold_forget(void)
{
    gm_carry_forget();
    gm_fold_context_forget();
    gm_fold_vmm_forget();
    gm_fold_lives_forget();
    memset(failures, 0, sizeof(failures));
    failure_count = 0;
    ignoring_end = 0;
    ignored_at = 0;
    gm_alive_forget();
}
