/*
 * What a flight trace carries over: replaying it, and then the records behind it, must lead to the
 * same as replaying all. Random programs are cut at random places; report/replay/rules/replay.c, which knows
 * nothing of the fold, is the judge.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* needs what stands above */

#include "preload/flight/alive.h"
#include "preload/flight/fold.h"
#include "report/judge/pool/blocks.h"
#include "report/replay/rules/replay.h"

enum { LANES = 4, EVENTS = 600, PLACES = 12, HANDLES = 6, CONTEXTS = 4, SEEDS = 1000 };

#define UNIT 0x1000u /* of address ranges */

struct event {
    struct gm_record record;
    struct gm_record detail;
    bool has_detail;
    uint32_t lane;
};

/* A replay, with the blocks beside it. */
struct world {
    struct gm_replay replay;
    struct gm_blocks blocks;
};

static void world_begin(struct world *world)
{
    gm_replay_begin(&world->replay);
    world->blocks = (struct gm_blocks){0};
}

static void world_end(struct world *world)
{
    gm_replay_end(&world->replay);
    gm_blocks_free(&world->blocks);
}

static void world_take(struct world *world, const struct gm_entry *entry)
{
    gm_replay_apply(&world->replay, entry);
    gm_blocks_note(&world->blocks, entry);
}

static void world_apply(struct world *world, const struct event *event)
{
    world_take(world, &(struct gm_entry){.record = &event->record,
                                         .detail = event->has_detail ? &event->detail : NULL,
                                         .lane = event->lane});
}

/* ---- random programs ------------------------------------------------------------------------- */

static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % below;
}

/* What a program is like: few places, handles and threads meet more often, and so do records of few
 * types. */
static struct shape {
    uint32_t lanes;
    uint32_t places;
    uint32_t handles;
    uint64_t types; /* a set */
} shape;

#define TYPES_FROM(first, last) ((2ull << (last)) - (1ull << (first)))
#define LIVES TYPES_FROM(GM_EVENT_ALLOC, GM_EVENT_CONTEXT_END)
#define VIRTUAL TYPES_FROM(GM_EVENT_VMM_CREATE, GM_EVENT_MULTICAST_UNBIND)
#define GRAPHS TYPES_FROM(GM_EVENT_GRAPH_ALLOC_NODE, GM_EVENT_GRAPH_CLONE)

static void draw_shape(void)
{
    static const uint64_t types[] = {UINT64_MAX, VIRTUAL | 1ull << GM_EVENT_UNDO, LIVES,
                                     LIVES | GRAPHS};
    shape.lanes = 2 + draw(LANES - 1);
    shape.places = 2 + draw(PLACES - 1);
    shape.handles = 2 + draw(HANDLES - 1);
    shape.types = types[draw(sizeof(types) / sizeof(types[0]))];
}

static uint64_t place(void)
{
    return UNIT * (uint64_t)(1 + draw(shape.places));
}

static uint64_t handle(void)
{
    return 0x77000 + draw(shape.handles);
}

/* The latest free-like record of each lane: what an UNDO may name. */
static struct gm_record latest[LANES];

static bool mapped(const struct world *world, uint64_t start, uint64_t end, struct gm_range *range)
{
    return gm_ranges_find(&world->replay.vmm.mappings, start, end, range);
}

/* Nothing is mapped over something else, as CUDA would refuse, but where an unmapping was not seen.
 */
static void draw_mapping(const struct world *world, struct event *event)
{
    struct gm_range range;
    uint64_t start = UNIT * (uint64_t)draw(16), size = UNIT * (uint64_t)(1 + draw(4));
    event->record.address = start;
    event->record.size = size;
    event->record.aux = handle();
    event->has_detail = true;
    if (mapped(world, start, start + size, &range) && draw(8))
        event->record.type = GM_EVENT_MARK;
}

/* Whole mappings, as CUDA wants it. */
static void draw_unmapping(const struct world *world, struct event *event)
{
    struct gm_range first, last;
    event->record.address = UNIT * (uint64_t)draw(16);
    event->record.size = UNIT * (uint64_t)(1 + draw(6));
    uint64_t end = event->record.address + event->record.size;
    if (!mapped(world, event->record.address, end, &first))
        return;
    last = first;
    while (last.end < end && mapped(world, last.end, end, &last))
        ;
    event->record.address = first.start;
    event->record.size = last.end - first.start;
}

static void draw_undo(struct event *event)
{
    const struct gm_record *failed = &latest[event->lane];
    event->record.kind = failed->type;
    event->record.address = failed->address;
    event->record.extra = draw(4) ? 1 : 4;
    if (draw(10) == 0)
        event->record.address++; /* of a record that is missing */
}

static void draw_type(struct event *event)
{
    static const uint8_t types[] = {
        GM_EVENT_ALLOC,
        GM_EVENT_ALLOC,
        GM_EVENT_ALLOC,
        GM_EVENT_FREE,
        GM_EVENT_FREE,
        GM_EVENT_FREE,
        GM_EVENT_UNDO,
        GM_EVENT_UNDO,
        GM_EVENT_ALLOC_FAILED,
        GM_EVENT_COPY,
        GM_EVENT_CONTEXT,
        GM_EVENT_CONTEXT_RETAIN,
        GM_EVENT_CONTEXT_RELEASE,
        GM_EVENT_CONTEXT_END,
        GM_EVENT_VMM_CREATE,
        GM_EVENT_VMM_IMPORT,
        GM_EVENT_VMM_RETAIN,
        GM_EVENT_VMM_RELEASE,
        GM_EVENT_VMM_RELEASE,
        GM_EVENT_VMM_RESERVE,
        GM_EVENT_VMM_UNRESERVE,
        GM_EVENT_VMM_MAP,
        GM_EVENT_VMM_MAP,
        GM_EVENT_VMM_UNMAP,
        GM_EVENT_VMM_UNMAP,
        GM_EVENT_MULTICAST_BIND,
        GM_EVENT_MULTICAST_CREATE,
        GM_EVENT_MULTICAST_UNBIND,
        GM_EVENT_POOL_CREATE,
        GM_EVENT_POOL_DESTROY,
        GM_EVENT_GRAPH_ALLOC_NODE,
        GM_EVENT_GRAPH_FREE_NODE,
        GM_EVENT_GRAPH_CHILD,
        GM_EVENT_GRAPH_INSTANTIATE,
        GM_EVENT_GRAPH_LAUNCH,
        GM_EVENT_GRAPH_LAUNCH,
        GM_EVENT_GRAPH_EXEC_DESTROY,
        GM_EVENT_GRAPH_DESTROY,
        GM_EVENT_GRAPH_CLONE,
        GM_EVENT_MODULE_LOAD,
        GM_EVENT_MODULE_UNLOAD,
        GM_EVENT_BLOCK_ALLOC,
        GM_EVENT_BLOCK_FREE,
        GM_EVENT_BLOCK_OOM,
        GM_EVENT_RANGE_PUSH,
        GM_EVENT_RANGE_POP,
        GM_EVENT_THREAD,
        GM_EVENT_DEVICE_SAMPLE,
        GM_EVENT_IGNORE,
        GM_EVENT_IGNORE,
    };
    do
        event->record.type = types[draw(sizeof(types))];
    while (!gm_event_is_in(event->record.type, shape.types));
}

static bool is_free_like(unsigned type)
{
    return type == GM_EVENT_FREE || type == GM_EVENT_CONTEXT_RELEASE ||
           type == GM_EVENT_CONTEXT_END || type == GM_EVENT_VMM_RELEASE ||
           type == GM_EVENT_VMM_UNRESERVE || type == GM_EVENT_VMM_UNMAP ||
           type == GM_EVENT_MULTICAST_UNBIND || type == GM_EVENT_POOL_DESTROY ||
           type == GM_EVENT_MODULE_UNLOAD;
}

static struct event draw_event(const struct world *world, uint64_t time)
{
    static const uint8_t kinds[] = {GM_KIND_DEVICE,   GM_KIND_DEVICE, GM_KIND_MANAGED,
                                    GM_KIND_EXTERNAL, GM_KIND_PINNED, GM_KIND_ARRAY};
    struct event event = {.lane = draw(shape.lanes),
                          .record = {.time = time,
                                     .address = place(),
                                     .size = 1 + draw(1000),
                                     .stack = draw(50),
                                     .api = (uint16_t)draw(9),
                                     .kind = kinds[draw(sizeof(kinds))],
                                     .device = (int8_t)draw(2)},
                          .detail = {.type = GM_EVENT_DETAIL, .time = time, .address = draw(9)}};
    struct gm_record *record = &event.record;
    draw_type(&event);
    record->context = (uint16_t)draw(CONTEXTS);
    switch (record->type) {
    case GM_EVENT_ALLOC:
        record->flags = (uint8_t)(draw(4) ? 0 : draw(2) ? GM_FLAG_ASYNC : GM_FLAG_CAPTURED);
        record->aux = handle();
        break;
    case GM_EVENT_FREE:
        record->flags = draw(12) ? 0 : GM_FLAG_CAPTURED;
        record->aux = handle();
        break;
    case GM_EVENT_UNDO:
        draw_undo(&event);
        break;
    case GM_EVENT_CONTEXT: /* a number belongs to one context, and every other device has a primary
                            */
        record->address = 0xc0 + record->context;
        record->flags = record->context & 1 ? GM_FLAG_PRIMARY : 0;
        record->device = (int8_t)(record->context / 2);
        break;
    case GM_EVENT_CONTEXT_RETAIN:
    case GM_EVENT_CONTEXT_RELEASE:
        record->context = (uint16_t)(1 + 2 * draw(2));
        record->address = 0xc0 + record->context;
        record->device = (int8_t)(record->context / 2);
        record->flags = GM_FLAG_PRIMARY;
        break;
    case GM_EVENT_CONTEXT_END:
        record->context = (uint16_t)(1 + draw(CONTEXTS - 1));
        record->address = 0xc0 + record->context;
        record->flags = record->context & 1 ? GM_FLAG_PRIMARY : 0;
        break;
    case GM_EVENT_VMM_CREATE:
        record->kind = draw(4) ? GM_KIND_VMM : GM_KIND_HOST_VMM;
        record->address = handle();
        break;
    case GM_EVENT_VMM_IMPORT:
        record->address = handle();
        record->aux = draw(2) ? handle() : 0;
        break;
    case GM_EVENT_VMM_RETAIN:
    case GM_EVENT_VMM_RELEASE:
    case GM_EVENT_MULTICAST_CREATE:
        record->address = handle();
        break;
    case GM_EVENT_VMM_RESERVE:
    case GM_EVENT_VMM_UNRESERVE:
        record->address = 0x100000u * (uint64_t)draw(4);
        record->size = 0x100000u;
        break;
    case GM_EVENT_VMM_MAP:
        draw_mapping(world, &event);
        break;
    case GM_EVENT_VMM_UNMAP:
        draw_unmapping(world, &event);
        break;
    case GM_EVENT_MULTICAST_BIND:
        event.has_detail = true;
        record->address = handle();
        record->aux = draw(2) ? handle() : UNIT * (uint64_t)draw(20) + 7;
        record->size = UNIT * (uint64_t)(1 + draw(3));
        break;
    case GM_EVENT_MULTICAST_UNBIND:
        record->address = handle();
        record->size = UNIT * (uint64_t)(1 + draw(3));
        record->aux = draw(9);
        break;
    case GM_EVENT_BLOCK_ALLOC:
    case GM_EVENT_BLOCK_FREE:
    case GM_EVENT_BLOCK_OOM:
        event.has_detail = true;
        break;
    case GM_EVENT_IGNORE:
        record->aux = draw(2);
        break;
    case GM_EVENT_GRAPH_ALLOC_NODE:
    case GM_EVENT_GRAPH_FREE_NODE:
        record->aux = handle();
        break;
    case GM_EVENT_GRAPH_CHILD:
    case GM_EVENT_GRAPH_CLONE:
        record->address = handle();
        record->aux = draw(3) ? handle() : record->address;
        if (record->type == GM_EVENT_GRAPH_CHILD && draw(6))
            record->type = GM_EVENT_GRAPH_DESTROY; /* else graphs grow without bound */
        break;
    case GM_EVENT_GRAPH_INSTANTIATE:
        record->extra = draw(2);
        record->aux = handle();
        record->address = handle();
        break;
    case GM_EVENT_GRAPH_LAUNCH:
    case GM_EVENT_GRAPH_EXEC_DESTROY:
    case GM_EVENT_GRAPH_DESTROY:
        record->address = handle();
        break;
    default:
        break;
    }
    if (is_free_like(record->type))
        latest[event.lane] = *record;
    return event;
}

/* ---- the comparison -------------------------------------------------------------------------- */

static int by_content(const void *left, const void *right)
{
    return memcmp(left, right, sizeof(struct gm_life));
}

/* What can be told of a life from outside, in an order of its own. */
static struct gm_life *lives_of(const struct gm_replay *replay)
{
    const struct gm_lives *lives = &replay->ledger.lives;
    struct gm_life *list = calloc((size_t)lives->count + 1, sizeof(*list));
    uint32_t count = 0;
    assert_non_null(list);
    for (uint32_t i = 0; i < lives->used; i++) {
        const struct gm_life *life = &lives->slots[i];
        if (life->kind == GM_KIND_NONE)
            continue;
        struct gm_life *to = &list[count++];
        to->address = life->address;
        to->size = life->size;
        to->time = life->time;
        to->stack = life->stack;
        to->references = life->references;
        to->context = life->context;
        to->api = life->api;
        to->kind = life->kind;
        to->device = life->device;
        to->flags = life->flags;
    }
    qsort(list, count, sizeof(*list), by_content);
    return list;
}

static unsigned pools_alive(const struct gm_replay *replay, uint64_t address)
{
    uint32_t number = gm_map_get(&replay->pool_by_address, address);
    return number != GM_NONE && replay->pools[number].alive;
}

static bool same_contexts(const struct gm_contexts *a, const struct gm_contexts *b)
{
    bool same = true;
    for (size_t i = 1; i < CONTEXTS; i++) {
        const struct gm_context none = {0};
        const struct gm_context *one = i < a->count ? &a->entries[i] : &none;
        const struct gm_context *other = i < b->count ? &b->entries[i] : &none;
        same &= one->known == other->known && one->references == other->references &&
                one->unseen_reference == other->unseen_reference;
        if (one->known)
            same &= one->primary == other->primary && one->device == other->device &&
                    one->address == other->address && one->stack == other->stack &&
                    one->time == other->time;
    }
    return same;
}

/* Returns what differs, or NULL. */
static const char *difference(const struct world *all, const struct world *cut)
{
    const struct gm_replay *a = &all->replay, *b = &cut->replay;
    if (a->ledger.lives.count != b->ledger.lives.count)
        return "number of lives";
    struct gm_life *ours = lives_of(a), *theirs = lives_of(b);
    bool same = memcmp(ours, theirs, a->ledger.lives.count * sizeof(*ours)) == 0;
    free(ours);
    free(theirs);
    if (!same)
        return "lives";
    for (int device = 0; device < 3; device++) {
        if (a->ledger.counters.device[device].live != b->ledger.counters.device[device].live)
            return "live bytes";
        const struct gm_block_totals *x = &all->blocks.device[device];
        const struct gm_block_totals *y = &cut->blocks.device[device];
        if (x->live != y->live || x->count != y->count || x->reserved != y->reserved)
            return "blocks";
    }
    if (a->ledger.lost_frees != b->ledger.lost_frees ||
        a->ledger.unknown_frees != b->ledger.unknown_frees)
        return "frees that were not seen";
    if (a->vmm.reserved != b->vmm.reserved)
        return "reserved addresses";
    for (uint64_t address = 0; address <= PLACES * UNIT; address += UNIT)
        if (pools_alive(a, address) != pools_alive(b, address))
            return "pools";
    return same_contexts(&a->contexts, &b->contexts) ? NULL : "contexts";
}

struct taking {
    struct world *world;
    struct gm_record record; /* waits for its detail */
    uint32_t lane;
    bool waits;
    unsigned count;
};

static void deliver(struct taking *taking, const struct gm_record *detail)
{
    if (taking->waits)
        world_take(taking->world, &(struct gm_entry){.record = &taking->record,
                                                     .detail = detail,
                                                     .lane = taking->lane,
                                                     .carried = true});
    taking->waits = false;
}

static void take(void *argument, const struct gm_record *record, uint32_t lane)
{
    struct taking *taking = argument;
    taking->count++;
    if (record->type == GM_EVENT_DETAIL) {
        deliver(taking, record);
        return;
    }
    deliver(taking, NULL);
    taking->record = *record;
    taking->lane = lane;
    taking->waits = true;
}

static unsigned carry_over(struct world *world)
{
    struct taking taking = {.world = world};
    struct gm_checkpoint checkpoint = {.lost_frees = gm_fold_lost_frees,
                                       .unknown_frees = gm_fold_unknown_frees};
    world->replay.checkpoint = &checkpoint;
    gm_fold_emit(take, &taking);
    deliver(&taking, NULL);
    gm_replay_finish(&world->replay);
    world->replay.checkpoint = NULL;
    return taking.count;
}

/* The fold's totals of all calls are the replay's. */
static void assert_totals(const struct gm_replay *replay)
{
    uint64_t allocs = 0, frees = 0, implicit = 0;
    for (unsigned at = 0; at < 4 * GM_KINDS; at++) { /* on the host, on an unknown device, on two */
        unsigned kind = at % GM_KINDS, device = at / GM_KINDS;
        const struct gm_tally none = {0}, *tally = &none;
        if (gm_kind_is_host(kind) && device == 3)
            tally = &replay->ledger.counters.host[kind];
        else if (!gm_kind_is_host(kind) && device < 3)
            tally = &replay->ledger.counters.device[device].kind[kind];
        allocs += tally->allocs;
        frees += tally->frees;
        implicit += tally->implicit_frees;
    }
    assert_int_equal(gm_fold_totals.allocs, allocs);
    assert_int_equal(gm_fold_totals.frees, frees);
    assert_int_equal(gm_fold_totals.implicit_frees, implicit);
}

/* What the fold says to be alive is what lives in the replay. */
static void assert_alive(const struct world *world)
{
    uint64_t host[GM_KINDS] = {0};
    for (int device = 0; device < 3; device++) {
        const struct gm_device_totals *totals = &world->replay.ledger.counters.device[device];
        for (unsigned kind = GM_KIND_DEVICE; kind <= GM_KIND_EXTERNAL; kind++)
            assert_int_equal(gm_alive_on[device].live[kind], totals->kind[kind].live);
        assert_int_equal(gm_alive_bytes(&gm_alive_on[device]), totals->live);
        assert_int_equal(gm_alive_on[device].blocks, world->blocks.device[device].live);
        assert_true(gm_alive_in_use(&gm_alive_on[device]) <= gm_alive_peak(&gm_alive_on[device]));
        for (unsigned kind = 0; kind < GM_KINDS; kind++)
            host[kind] += gm_alive_on[device].live[kind];
    }
    for (unsigned kind = 0; kind < GM_KINDS; kind++)
        if (gm_kind_is_host(kind))
            assert_int_equal(host[kind], world->replay.ledger.counters.host[kind].live);
}

static void compare_cuts(uint64_t seed)
{
    static struct event events[EVENTS];
    struct world all;
    state = seed * 2 + 1;
    draw_shape();
    memset(latest, 0, sizeof(latest));
    world_begin(&all);
    uint64_t time = 0;
    for (unsigned i = 0; i < EVENTS; i++) {
        time += i * 7919 % 31 % 3 ? 5 * GM_CLOCK_SKEW
                                  : GM_CLOCK_SKEW / 4; /* apart, and near enough to meet */
        events[i] = draw_event(&all, time);
        world_apply(&all, &events[i]);
    }
    world_end(&all);
    for (unsigned round = 0; round < 3; round++) {
        unsigned cut_at = draw(EVENTS);
        struct world cut;
        const char *what = NULL;
        unsigned i = 0;
        world_begin(&all);
        world_begin(&cut);
        for (; i < cut_at; i++) {
            const struct event *event = &events[i];
            world_apply(&all, event);
            gm_fold(&event->record, event->has_detail ? &event->detail : NULL, event->lane);
        }
        assert_int_equal(gm_fold_missed, 0);
        assert_int_equal(gm_fold_totals.events, i);
        assert_int_equal(gm_fold_lost_frees, all.replay.ledger.lost_frees);
        assert_int_equal(gm_fold_unknown_frees, all.replay.ledger.unknown_frees);
        assert_totals(&all.replay);
        assert_alive(&all);
        carry_over(&cut);
        what = difference(&all, &cut);
        /* A pair that meets across the cut is counted by the recorder: the trace is not complete.
         */
        for (; i < EVENTS && !what; i++) {
            gm_fold(&events[i].record, events[i].has_detail ? &events[i].detail : NULL,
                    events[i].lane);
            if (gm_fold_late)
                break;
            world_apply(&all, &events[i]);
            world_apply(&cut, &events[i]);
            what = difference(&all, &cut);
        }
        gm_fold_forget();
        world_end(&all);
        world_end(&cut);
        if (what)
            fail_msg("seed %lu, cut at %u: after event %u (type %u) %s differ", seed, cut_at, i,
                     i ? events[i - 1].record.type : 0, what);
    }
}

static uint64_t seeds = SEEDS;

static void any_cut_of_any_program_leads_to_the_same(void **unused)
{
    (void)unused;
    for (uint64_t seed = 0; seed < seeds; seed++)
        compare_cuts(seed);
}

/* ---- by hand --------------------------------------------------------------------------------- */

/* Folds `before`, compares, and goes on with `after`. Returns how many records were carried. */
static unsigned compare(const struct gm_record *before, size_t count, const struct gm_record *after,
                        size_t after_count)
{
    struct world all, cut;
    world_begin(&all);
    world_begin(&cut);
    for (size_t i = 0; i < count; i++) {
        world_apply(&all, &(struct event){.record = before[i]});
        gm_fold(&before[i], NULL, 0);
    }
    unsigned carried = carry_over(&cut);
    const char *what = difference(&all, &cut);
    for (size_t i = 0; i < after_count && !what; i++) {
        world_apply(&all, &(struct event){.record = after[i]});
        world_apply(&cut, &(struct event){.record = after[i]});
        what = difference(&all, &cut);
    }
    gm_fold_forget();
    world_end(&all);
    world_end(&cut);
    if (what)
        fail_msg("%s differ", what);
    return carried;
}
#define COMPARE(before, after)                                                                     \
    compare((before), sizeof(before) / sizeof((before)[0]), (after),                               \
            sizeof(after) / sizeof((after)[0]))

/* CUDA refuses it; what is told all the same is kept word for word. */
static void less_than_a_mapping_is_unmapped(void **unused)
{
    (void)unused;
    const struct gm_record before[] = {
        {.type = GM_EVENT_VMM_CREATE, .address = 7, .size = 4096, .kind = GM_KIND_VMM, .time = 1},
        {.type = GM_EVENT_VMM_MAP, .address = 0x10000, .size = 4096, .aux = 7, .time = 2},
        {.type = GM_EVENT_VMM_RELEASE, .address = 7, .time = 3},
        {.type = GM_EVENT_VMM_UNMAP, .address = 0x10000, .size = 1024, .time = 4},
        {.type = GM_EVENT_VMM_UNMAP, .address = 0x10800, .size = 1024, .time = 5},
        {.type = GM_EVENT_FREE, .address = 1, .time = 6},
    };
    const struct gm_record after[] = {
        {.type = GM_EVENT_VMM_UNMAP, .address = 0x10c00, .size = 1024, .time = 7},
        {.type = GM_EVENT_VMM_UNMAP, .address = 0x10400, .size = 1024, .time = 8},
    };
    COMPARE(before, after);
}

/* The context is destroyed and another gets its handle, while the end could still be undone. */
static void a_handle_may_be_of_another_context_since(void **unused)
{
    (void)unused;
    const struct gm_record before[] = {
        {.type = GM_EVENT_CONTEXT, .address = 0xc0, .context = 1, .time = 1},
        {.type = GM_EVENT_ALLOC, .address = 1, .size = 10, .kind = GM_KIND_DEVICE, .context = 1},
        {.type = GM_EVENT_CONTEXT_END, .address = 0xc0, .context = 1, .time = 3},
        {.type = GM_EVENT_CONTEXT, .address = 0xc0, .context = 2, .time = 4},
        {.type = GM_EVENT_ALLOC, .address = 2, .size = 20, .kind = GM_KIND_DEVICE, .context = 2},
    };
    const struct gm_record after[] = {
        {.type = GM_EVENT_CONTEXT_END, .address = 0xc0, .context = 2, .time = 6},
    };
    COMPARE(before, after);
}

/* Cuts it before each event and behind the last. Returns how many lives are left. */
static unsigned compare_all_cuts(const struct event *events, size_t count)
{
    unsigned left = 0;
    for (size_t cut_at = 0; cut_at <= count; cut_at++) {
        struct world all, cut;
        const char *what = NULL;
        world_begin(&all);
        world_begin(&cut);
        for (size_t i = 0; i <= count && !what; i++) {
            if (i == cut_at)
                carry_over(&cut);
            if (i >= cut_at)
                what = difference(&all, &cut);
            if (i == count)
                break;
            world_apply(&all, &events[i]);
            if (i < cut_at)
                gm_fold(&events[i].record, NULL, events[i].lane);
            else
                world_apply(&cut, &events[i]);
        }
        left = all.replay.ledger.lives.count;
        gm_fold_forget();
        world_end(&all);
        world_end(&cut);
        if (what)
            fail_msg("cut at %zu: %s differ", cut_at, what);
    }
    return left;
}
#define ON(its_lane, ...)                                                                          \
    {                                                                                              \
        .lane = (its_lane), .record = { __VA_ARGS__ }                                              \
    }
#define COMPARE_ALL(events) compare_all_cuts((events), sizeof(events) / sizeof((events)[0]))

/* One thread's release and another's unmapping end it; the release took place, the unmapping did
 * not. */
static void memory_lives_on_whatever_ended_it(void **unused)
{
    (void)unused;
    static const struct event release_last[] = {
        ON(0, .type = GM_EVENT_VMM_CREATE, .address = 7, .size = 4, .kind = GM_KIND_VMM),
        ON(0, .type = GM_EVENT_VMM_MAP, .address = 0x1000, .size = 4, .aux = 7),
        ON(1, .type = GM_EVENT_VMM_UNMAP, .address = 0x1000, .size = 4),
        ON(0, .type = GM_EVENT_VMM_RELEASE, .address = 7),
        ON(0, .type = GM_EVENT_FREE),
        ON(1, .type = GM_EVENT_UNDO, .kind = GM_EVENT_VMM_UNMAP, .address = 0x1000, .extra = 1),
    };
    static const struct event unmapping_last[] = {
        ON(0, .type = GM_EVENT_VMM_CREATE, .address = 7, .size = 4, .kind = GM_KIND_VMM),
        ON(0, .type = GM_EVENT_VMM_MAP, .address = 0x1000, .size = 4, .aux = 7),
        ON(0, .type = GM_EVENT_VMM_RELEASE, .address = 7),
        ON(1, .type = GM_EVENT_VMM_UNMAP, .address = 0x1000, .size = 4),
        ON(1, .type = GM_EVENT_FREE),
        ON(0, .type = GM_EVENT_UNDO, .kind = GM_EVENT_VMM_RELEASE, .address = 7, .extra = 1),
        ON(2, .type = GM_EVENT_VMM_IMPORT, .address = 7), /* it is the same */
    };
    static const struct event bound[] = {
        ON(0, .type = GM_EVENT_VMM_CREATE, .address = 7, .size = 4, .kind = GM_KIND_VMM),
        ON(0, .type = GM_EVENT_MULTICAST_CREATE, .address = 8, .size = 4),
        ON(0, .type = GM_EVENT_MULTICAST_BIND, .address = 8, .size = 4, .aux = 7),
        ON(0, .type = GM_EVENT_VMM_RELEASE, .address = 8),
        ON(1, .type = GM_EVENT_VMM_RELEASE, .address = 7),
        ON(1, .type = GM_EVENT_FREE),
        ON(0, .type = GM_EVENT_UNDO, .kind = GM_EVENT_VMM_RELEASE, .address = 8, .extra = 1),
    };
    assert_int_equal(COMPARE_ALL(release_last), 1);
    assert_int_equal(COMPARE_ALL(unmapping_last), 1);
    assert_int_equal(COMPARE_ALL(bound), 1);
}

/* Two threads close what was opened twice; the first call failed, so that it is open. */
static void memory_of_another_owner_is_open_whoever_closed_it_last(void **unused)
{
    (void)unused;
    static const struct event events[] = {
        ON(0, .type = GM_EVENT_ALLOC, .address = 1, .size = 4, .kind = GM_KIND_EXTERNAL),
        ON(1, .type = GM_EVENT_ALLOC, .address = 1, .size = 4, .kind = GM_KIND_EXTERNAL),
        ON(0, .type = GM_EVENT_FREE, .address = 1),
        ON(1, .type = GM_EVENT_FREE, .address = 1),
        ON(1, .type = GM_EVENT_MODULE_UNLOAD),
        ON(0, .type = GM_EVENT_UNDO, .kind = GM_EVENT_FREE, .address = 1, .extra = 1),
    };
    assert_int_equal(COMPARE_ALL(events), 1);
}

/* Its own context was over for it when the other release was recorded. */
static void what_goes_on_is_carried_behind_what_did_not_end_it(void **unused)
{
    (void)unused;
    static const struct event events[] = {
        ON(0, .type = GM_EVENT_CONTEXT, .address = 0xc1, .context = 1, .flags = GM_FLAG_PRIMARY),
        ON(0, .type = GM_EVENT_ALLOC, .address = 1, .kind = GM_KIND_DEVICE, .context = 1),
        ON(1, .type = GM_EVENT_CONTEXT_END, .address = 0xc1, .context = 1),
        ON(0, .type = GM_EVENT_CONTEXT_RELEASE, .address = 0xc1, .context = 1),
        ON(1, .type = GM_EVENT_UNDO, .kind = GM_EVENT_CONTEXT_END, .address = 0xc1, .extra = 1),
    };
    assert_int_equal(COMPARE_ALL(events), 1);
}

/* Frees that were lost or unknown are carried, also where nothing else is. */
static void losses_of_handles_and_mappings_are_carried(void **unused)
{
    (void)unused;
    static const struct event events[] = {
        ON(0, .type = GM_EVENT_VMM_RELEASE, .address = 9), /* unknown, and stays so */
        ON(1, .type = GM_EVENT_VMM_RELEASE, .address = 9), /* unknown, and failed */
        ON(0, .type = GM_EVENT_FREE, .address = 1),
        ON(0, .type = GM_EVENT_VMM_UNMAP, .address = 1, .size = 1),
        ON(1, .type = GM_EVENT_UNDO, .kind = GM_EVENT_VMM_RELEASE, .address = 9, .extra = 1),
        ON(0, .type = GM_EVENT_VMM_CREATE, .address = 7, .size = 4, .kind = GM_KIND_VMM),
        ON(0, .type = GM_EVENT_VMM_CREATE, .address = 7, .size = 4, .kind = GM_KIND_VMM),
        ON(0, .type = GM_EVENT_VMM_MAP, .address = 0x1000, .size = 0x2000, .aux = 7),
        ON(0, .type = GM_EVENT_VMM_MAP, .address = 0x4000, .size = 0x1000, .aux = 7),
        ON(0, .type = GM_EVENT_VMM_MAP, .address = 0x2000, .size = 0x3000, .aux = 7),
        ON(0, .type = GM_EVENT_VMM_UNMAP, .address = 0x2000, .size = 0x3000),
        ON(0, .type = GM_EVENT_VMM_RELEASE, .address = 7),
        ON(0, .type = GM_EVENT_FREE),
    };
    assert_int_equal(COMPARE_ALL(events), 0);
    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
        gm_fold(&events[i].record, NULL, events[i].lane);
    assert_int_equal(gm_fold_unknown_frees, 2);
    assert_int_equal(gm_fold_lost_frees, 2); /* a handle, and places: once for what took them */
    gm_fold_forget();
}

/* A program that does the same for ever leaves nothing to carry but what it holds. */
static void what_is_over_is_not_carried(void **unused)
{
    (void)unused;
    static const struct gm_record round[] = {
        {.type = GM_EVENT_ALLOC, .address = 1, .size = 10, .kind = GM_KIND_DEVICE, .context = 1},
        {.type = GM_EVENT_COPY, .address = 1, .size = 10},
        {.type = GM_EVENT_ALLOC_FAILED, .size = 1u << 30, .extra = 2},
        {.type = GM_EVENT_RANGE_PUSH},
        {.type = GM_EVENT_FREE, .address = 1},
        {.type = GM_EVENT_RANGE_POP},
        {.type = GM_EVENT_VMM_RESERVE, .address = 0x100000, .size = 0x10000},
        {.type = GM_EVENT_VMM_CREATE, .address = 7, .size = 4096, .kind = GM_KIND_VMM},
        {.type = GM_EVENT_VMM_RETAIN, .address = 7},
        {.type = GM_EVENT_VMM_MAP, .address = 0x100000, .size = 4096, .aux = 7},
        {.type = GM_EVENT_VMM_RELEASE, .address = 7},
        {.type = GM_EVENT_VMM_RELEASE, .address = 7},
        {.type = GM_EVENT_VMM_UNMAP, .address = 0x100000, .size = 4096},
        {.type = GM_EVENT_VMM_UNRESERVE, .address = 0x100000, .size = 0x10000},
        {.type = GM_EVENT_CONTEXT, .address = 0xc0, .context = 1, .flags = GM_FLAG_PRIMARY},
        {.type = GM_EVENT_CONTEXT_RETAIN, .address = 0xc0, .context = 1},
        {.type = GM_EVENT_CONTEXT_RELEASE, .address = 0xc0, .context = 1},
        {.type = GM_EVENT_ALLOC, .address = 2, .size = 10, .kind = GM_KIND_ARRAY, .context = 1},
        {.type = GM_EVENT_CONTEXT_END, .address = 0xc0, .context = 1},
        {.type = GM_EVENT_POOL_CREATE, .address = 8},
        {.type = GM_EVENT_POOL_DESTROY, .address = 8},
        {.type = GM_EVENT_GRAPH_ALLOC_NODE, .address = 3, .size = 5, .aux = 9},
        {.type = GM_EVENT_GRAPH_FREE_NODE, .address = 3, .aux = 9},
        {.type = GM_EVENT_GRAPH_INSTANTIATE, .address = 10, .aux = 9},
        {.type = GM_EVENT_GRAPH_DESTROY, .address = 9},
        {.type = GM_EVENT_GRAPH_LAUNCH, .address = 10},
        {.type = GM_EVENT_GRAPH_LAUNCH, .address = 10},
        {.type = GM_EVENT_GRAPH_EXEC_DESTROY, .address = 10},
        {.type = GM_EVENT_BLOCK_ALLOC, .address = 5, .size = 5},
        {.type = GM_EVENT_BLOCK_FREE, .address = 5, .size = 5},
        {.type = GM_EVENT_MODULE_LOAD, .address = 6},
        {.type = GM_EVENT_MODULE_UNLOAD, .address = 6},
        {.type = GM_EVENT_DEVICE_SAMPLE, .size = 5},
        {.type = GM_EVENT_THREAD, .address = 4242},
        {.type = GM_EVENT_MARK},
    };
    static struct gm_record many[1000 * sizeof(round) / sizeof(round[0])];
    for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
        many[i] = round[i % (sizeof(round) / sizeof(round[0]))];
        many[i].time = i + 1;
    }
    /* a context, 8 refused calls, what a pool holds (with a detail, had it one), a sample, a
     * thread, a mark, and an unload that may yet be undone, with the module */
    assert_int_equal(COMPARE(many, many), 1 + 8 + 1 + 1 + 1 + 1 + 2);
}

/* More seeds than the suite takes: test_fold 20000 */
int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_cut_of_any_program_leads_to_the_same),
        cmocka_unit_test(less_than_a_mapping_is_unmapped),
        cmocka_unit_test(a_handle_may_be_of_another_context_since),
        cmocka_unit_test(memory_lives_on_whatever_ended_it),
        cmocka_unit_test(memory_of_another_owner_is_open_whoever_closed_it_last),
        cmocka_unit_test(what_goes_on_is_carried_behind_what_did_not_end_it),
        cmocka_unit_test(losses_of_handles_and_mappings_are_carried),
        cmocka_unit_test(what_is_over_is_not_carried),
    };
    if (!gm_fold_prepare())
        return 1;
    if (argc > 1)
        seeds = strtoull(argv[1], NULL, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
