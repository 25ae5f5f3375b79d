/* See replay.h. */
#include "base/memory.h"
#include "replay/replica/replay.h"
#include <stdlib.h>

#define OWN_ADDRESSES ((uint64_t)1 << 45) /* where segments of our own begin */
#define GAP ((uint64_t)2 << 20)
#define LOOKS_MAX ((uint64_t)50 << 20) /* at blocks, to put right what the replica did otherwise */

/* ---- the device ------------------------------------------------------------------------------ */

static uint64_t reserve_segment(void *argument, uint64_t size, bool expandable)
{
    struct gm_replica_run *run = argument;
    while (run->arrival < run->arrival_end) {
        const struct gm_step *step = &run->history->steps[run->arrival++];
        if (step->kind == GM_STEP_ARRIVE && (expandable || step->size == size))
            return step->address;
    }
    uint64_t address = run->next_address;
    run->next_address += (size + GAP - 1) / GAP * GAP + GAP;
    return address;
}

static void moved(void *argument, uint64_t address, uint64_t size, bool arrived)
{
    struct gm_replica_run *run = argument;
    if (!run->keeps_moves)
        return;
    GM_APPEND(run->moves, run->move_capacity, run->move_count,
              (struct gm_replica_move){address, size, arrived});
}

/* ---- the beginning --------------------------------------------------------------------------- */

/* Segments and blocks lie where they lay. */
static void keep_beginning(struct gm_replica_run *run)
{
    const struct gm_history *history = run->history;
    struct gm_allocator *allocator = &run->allocator;
    size_t at = 0;
    for (size_t s = 0; s < history->segment_count; s++) {
        const struct gm_there *segment = &history->segments[s];
        uint64_t end = segment->address + segment->size;
        uint32_t rest =
            gm_allocator_add_segment(allocator, segment->address, segment->size, segment->stream,
                                     segment->pool, segment->small, segment->expandable);
        while (at < history->block_count && history->blocks[at].address < segment->address)
            at++;
        for (; at < history->block_count && history->blocks[at].address < end; at++) {
            const struct gm_there *block = &history->blocks[at];
            uint32_t number =
                rest ? gm_allocator_place(allocator, rest, block->address, block->size) : 0;
            run->blocks[block->block] = number;
            rest = number ? allocator->blocks[number].behind : rest;
        }
    }
    for (size_t i = 0; i < history->block_count; i++)
        if (history->blocks[i].waiting)
            gm_allocator_wait(allocator, run->blocks[history->blocks[i].block]);
}

/* What was in use is asked for anew, by address. */
static void redo_beginning(struct gm_replica_run *run)
{
    const struct gm_history *history = run->history;
    for (size_t i = 0; i < history->block_count; i++) {
        const struct gm_there *block = &history->blocks[i];
        run->blocks[block->block] =
            gm_allocator_malloc(&run->allocator, block->requested, block->stream, block->pool);
        if (block->waiting)
            gm_allocator_wait(&run->allocator, run->blocks[block->block]);
    }
}

/* CUDA's own pool, as far as it is known: one heap for all sizes and streams, which keeps what it has (PyTorch sets its
 * release threshold to the largest value, and allows every reuse between streams), in pages of 2 MiB that can be mapped
 * anywhere. A limit that the program sets itself holds for it, too. */
static void make_heap(struct gm_allocator_settings *settings)
{
    double fraction = settings->memory_fraction;
    gm_allocator_settings_default(settings);
    settings->memory_fraction = fraction;
    settings->async = settings->expandable = true;
    settings->large_segment = GAP;
}

void gm_replica_run_begin(struct gm_replica_run *run, const struct gm_history *history,
                          const struct gm_allocator_settings *wanted, uint64_t capacity,
                          uint64_t total)
{
    struct gm_allocator_device device = {reserve_segment, moved, run};
    struct gm_allocator_settings settings = *wanted;
    if (settings.async)
        make_heap(&settings);
    *run = (struct gm_replica_run){.history = history, .next_address = OWN_ADDRESSES};
    gm_allocator_begin(&run->allocator, &settings, &device);
    run->allocator.total = total;
    run->blocks = gm_allocate((size_t)history->numbers + 1, sizeof(*run->blocks));
    if (settings.expandable == history->settings.expandable &&
        settings.async == history->settings.async)
        keep_beginning(run);
    else
        redo_beginning(run);
    run->allocator.capacity = capacity;
    run->allocator.device_allocations = run->allocator.device_frees = 0;
}

void gm_replica_run_end(struct gm_replica_run *run)
{
    gm_allocator_end(&run->allocator);
    free(run->blocks);
    free(run->moves);
}

/* ---- one step -------------------------------------------------------------------------------- */

/* A block that is given back. */
void gm_replica_give_back(struct gm_replica_run *run, const struct gm_step *step)
{
    if (step->block >= run->history->numbers || !run->blocks[step->block])
        return;
    uint32_t number = run->blocks[step->block];
    if (step->kind == GM_STEP_WAIT) {
        gm_allocator_wait(&run->allocator, number);
        return;
    }
    run->blocks[step->block] = 0;
    gm_allocator_free(&run->allocator, number);
}

size_t gm_replica_empty_cache(struct gm_replica_run *run, size_t at, bool drops)
{
    const struct gm_history *history = run->history;
    uint64_t dropped = 0;
    size_t end = at;
    bool is_common = false; /* a pool that is dropped takes its own segments alone */
    while (end < history->step_count && history->steps[end].kind == GM_STEP_DEPART &&
           !history->steps[end].by_request)
        is_common |= history->steps[end++].pool == 0;
    if (is_common)
        gm_allocator_empty_cache(&run->allocator);
    for (; at < end; at++) {
        uint64_t pool = history->steps[at].pool;
        if (drops && pool && pool != dropped)
            gm_allocator_drop_pool(&run->allocator, dropped = pool);
    }
    return at;
}

void gm_replica_note_drops(struct gm_replica_run *run, size_t from, size_t request)
{
    const struct gm_step *steps = run->history->steps;
    for (size_t i = from; i < request; i++)
        if (steps[i].kind == GM_STEP_DEPART && steps[i].pool &&
            steps[i].pool != steps[request].pool)
            gm_allocator_may_drop_pool(&run->allocator, steps[i].pool);
}

/* ---- as it was recorded ---------------------------------------------------------------------- */

static bool is_small(uint64_t size)
{
    return size <= (uint64_t)2 << 20;
}

/* Each time all blocks are looked at. False: that was too often, and the rest is not put right. */
static bool may_put_right(struct gm_replica_run *run)
{
    run->looks += run->allocator.block_count;
    return run->looks <= LOOKS_MAX;
}

/* Does what was recorded and the replica left out. */
static bool make_up_for(struct gm_replica_run *run, const struct gm_step *step)
{
    if (!may_put_right(run))
        return false;
    if (step->kind == GM_STEP_DEPART)
        return gm_allocator_release(&run->allocator, step->address, step->size);
    gm_allocator_add_segment(&run->allocator, step->address, step->size, step->stream, step->pool,
                             is_small(step->size), step->expandable);
    return true;
}

static bool is_same_step(const struct gm_replica_move *move, const struct gm_step *step)
{
    return move->arrived == (step->kind == GM_STEP_ARRIVE) && move->size == step->size &&
           move->address == step->address;
}

/* Compares what the replica did with the steps [from, to) that were recorded. */
static void compare_moves(struct gm_follower *follower, size_t from, size_t to)
{
    struct gm_replica_run *run = &follower->run;
    const struct gm_step *steps = run->history->steps;
    size_t made = 0;
    for (size_t i = from; i < to; i++)
        follower->result.events += steps[i].entries;
    for (size_t i = from; i < to && !follower->own_addresses; i++) {
        if (made < run->move_count && is_same_step(&run->moves[made], &steps[i])) {
            follower->result.equal_events += steps[i].entries;
            made++;
            continue;
        }
        /* A private pool goes when the program drops it, of which nothing is told. */
        bool is_done = make_up_for(run, &steps[i]);
        if (is_done && steps[i].kind == GM_STEP_DEPART && steps[i].pool)
            follower->result.equal_events += steps[i].entries;
    }
    /* What was not recorded is taken back. */
    for (; made < run->move_count && !follower->own_addresses && may_put_right(run); made++)
        if (run->moves[made].arrived)
            gm_allocator_release(&run->allocator, run->moves[made].address, run->moves[made].size);
    run->move_count = 0;
}

/* A refusal for which nothing was given back: there was nothing to give, or the recording does not tell. So the replica
 * gives nothing back either. */
static void follow_bare_refusal(struct gm_follower *follower, const struct gm_step *step)
{
    bool is_found =
        gm_allocator_would_find(&follower->run.allocator, step->size, step->stream, step->pool);
    follower->result.events += step->entries;
    follower->result.equal_events += is_found ? 0 : step->entries;
}

static void follow_request(struct gm_follower *follower, size_t from, size_t at)
{
    struct gm_replica_run *run = &follower->run;
    struct gm_allocator *allocator = &run->allocator;
    const struct gm_step *step = &run->history->steps[at];
    bool fails = step->kind == GM_STEP_FAIL;
    run->arrival = follower->own_addresses ? 0 : from;
    run->arrival_end = follower->own_addresses ? 0 : at;
    for (size_t i = from; i < at; i++)
        allocator->refusals |=
            run->history->steps[i].kind == GM_STEP_DEPART &&
            !(run->history->steps[i].by_limit && gm_allocator_has_limit(allocator));
    allocator->refusals = fails ? UINT32_MAX : allocator->refusals;
    gm_replica_note_drops(run, from, at);
    uint32_t number = gm_allocator_malloc(allocator, step->size, step->stream, step->pool);
    allocator->refusals = 0;
    run->arrival_end = 0;
    follower->chosen = number ? allocator->blocks[number].address : 0;
    bool is_equal = fails ? !number
                          : number && (follower->own_addresses ||
                                       allocator->blocks[number].address == step->address);
    follower->result.events += step->entries;
    follower->result.equal_events += is_equal ? step->entries : 0;
    uint64_t size = number ? allocator->blocks[number].size
                           : gm_allocator_round(&allocator->settings, step->size);
    if (!is_equal || fails) {
        gm_allocator_free(allocator, number);
        number = 0;
    }
    compare_moves(follower, from, at);
    if (!is_equal && !fails && may_put_right(run))
        number = gm_allocator_place(allocator, 0, step->address, size);
    if (step->block < run->history->numbers)
        run->blocks[step->block] = number;
}

/* A block was given back: that is equal if the replica had it. */
static void follow_free(struct gm_follower *follower, const struct gm_step *step)
{
    struct gm_replica_run *run = &follower->run;
    bool is_known = step->block < run->history->numbers && run->blocks[step->block];
    follower->result.events += step->entries;
    follower->result.equal_events += is_known ? step->entries : 0;
    gm_replica_give_back(run, step);
}

static bool is_request(const struct gm_step *step)
{
    return step->kind == GM_STEP_ALLOC || step->kind == GM_STEP_FAIL;
}

size_t gm_follow_group_end(const struct gm_history *history, size_t at)
{
    size_t to = at;
    if (gm_history_empties_cache(history, at)) {
        while (to < history->step_count && history->steps[to].kind == GM_STEP_DEPART &&
               !history->steps[to].by_request)
            to++;
        return to;
    }
    while (to < history->step_count && gm_step_is_of_segment(&history->steps[to]) &&
           !gm_history_empties_cache(history, to))
        to++;
    return to < history->step_count && (to == at || is_request(&history->steps[to])) ? to + 1 : to;
}

size_t gm_follow(struct gm_follower *follower, size_t at)
{
    const struct gm_history *history = follower->run.history;
    size_t end = gm_follow_group_end(history, at);
    const struct gm_step *last = &history->steps[end - 1];
    if (gm_history_empties_cache(history, at)) {
        gm_replica_empty_cache(&follower->run, at, follower->own_addresses);
        compare_moves(follower, at, end);
    } else if (last->kind == GM_STEP_FAIL && end - 1 == at) {
        follow_bare_refusal(follower, last);
    } else if (is_request(last)) {
        follow_request(follower, at, end - 1);
    } else if (gm_step_is_of_segment(last)) {
        compare_moves(follower, at, end);
    } else {
        follow_free(follower, last);
    }
    return end;
}
