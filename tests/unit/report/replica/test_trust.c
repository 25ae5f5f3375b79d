/* Whether the replica is trusted is often known early: the answer must be that of the whole replay. Histories are made at
 * random: what an allocator did, with places that it would not have chosen, refusals, and caches that were emptied. */
#include "base/memory.h"
#include "replay/replica/allocator.h"
#include "replay/replica/replay.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "assert_between.h"

#define MIB ((uint64_t)1 << 20)
#define HISTORIES 800u
#define BLOCKS 400u

struct maker {
    struct gm_history history;
    struct gm_allocator allocator;
    uint64_t random, next_address;
    uint32_t live[BLOCKS]; /* of the allocator, by number of the history */
    bool tells_requests;   /* that segments went for one */
    bool is_refusing;
    bool descends; /* each segment lies below the one before */
};

static uint64_t draw(struct maker *maker, uint64_t below)
{
    maker->random ^= maker->random << 13;
    maker->random ^= maker->random >> 7;
    maker->random ^= maker->random << 17;
    return maker->random % below;
}

static struct gm_step *add(struct maker *maker, unsigned kind, uint64_t address, uint64_t size)
{
    struct gm_history *history = &maker->history;
    GM_RESERVE(history->steps, history->step_capacity, history->step_count + 1);
    struct gm_step *step = &history->steps[history->step_count++];
    *step = (struct gm_step){.kind = (uint8_t)kind,
                             .address = address,
                             .size = size,
                             .asked = size,
                             .block = GM_NONE,
                             .entries = 1};
    return step;
}

static uint64_t reserve(void *argument, uint64_t size, bool expandable)
{
    struct maker *maker = argument;
    uint64_t step = size + 2 * MIB * draw(maker, 3);
    (void)expandable;
    maker->next_address += maker->descends ? 0 - step : step;
    return maker->next_address;
}

static void moved(void *argument, uint64_t address, uint64_t size, bool arrived)
{
    struct maker *maker = argument;
    add(maker, arrived ? GM_STEP_ARRIVE : GM_STEP_DEPART, address, size)->by_request =
        !arrived && maker->is_refusing && maker->tells_requests;
}

static void request(struct maker *maker, uint32_t number, uint64_t noise)
{
    uint64_t size = draw(maker, 3) ? (1 + draw(maker, 4)) * 128 * 1024 : (1 + draw(maker, 9)) * MIB;
    uint64_t stream = draw(maker, 8) ? 0 : 1;
    maker->is_refusing = draw(maker, 40) == 0;
    maker->allocator.refusals = maker->is_refusing ? (uint32_t)(1 + draw(maker, 2)) : 0;
    uint32_t block = gm_allocator_malloc(&maker->allocator, size, stream, 0);
    maker->allocator.refusals = 0;
    maker->is_refusing = false;
    uint64_t address = block ? maker->allocator.blocks[block].address : 0;
    struct gm_step *step = add(maker, block ? GM_STEP_ALLOC : GM_STEP_FAIL, address, size);
    step->stream = stream;
    step->is_untold = !block;
    step->stack = (uint32_t)draw(maker, 5);
    if (!block)
        return;
    step->block = number;
    maker->live[number] = block;
    if (noise && draw(maker, 1000) < noise)
        step->address += 512 * (1 + draw(maker, 64));
}

static void give_back(struct maker *maker, uint32_t number)
{
    if (!maker->live[number])
        return;
    add(maker, GM_STEP_FREE, 0, 0)->block = number;
    gm_allocator_free(&maker->allocator, maker->live[number]);
    maker->live[number] = 0;
}

/* Of most histories a part is as recorded, and the rest is not. */
static uint64_t noise_at(uint64_t kind, uint32_t number)
{
    static const uint64_t levels[] = {0, 3, 30, 300, 1000};
    uint64_t level = levels[kind % 5];
    switch (kind / 5 % 3) {
    case 0:
        return number < BLOCKS / 8 ? level : 0;
    case 1:
        return number > BLOCKS / 2 ? level : 0;
    default:
        return level;
    }
}

static void make(struct maker *maker, uint64_t seed)
{
    struct gm_allocator_settings settings;
    *maker =
        (struct maker){.random = seed * 0x9e3779b97f4a7c15u + 1, .next_address = 1024 * 1024 * MIB};
    maker->descends = draw(maker, 2);
    gm_allocator_settings_default(&maker->history.settings);
    if (draw(maker, 2)) /* so that requests give back a part of the cache */
        maker->history.settings.max_split_size = 4 * MIB;
    settings = maker->history.settings;
    settings.oldest_first = draw(maker, 2);
    gm_allocator_begin(&maker->allocator, &settings,
                       &(struct gm_allocator_device){reserve, moved, maker});
    maker->tells_requests = draw(maker, 2);
    maker->history.has_streams = maker->history.has_pools = draw(maker, 2);
    maker->history.numbers = BLOCKS;
    uint64_t kind = draw(maker, 15);
    for (uint32_t number = 0; number < BLOCKS; number++) {
        request(maker, number, noise_at(kind, number));
        if (draw(maker, 10) < 8)
            give_back(maker, (uint32_t)draw(maker, number + 1));
        if (draw(maker, 100) == 0)
            gm_allocator_empty_cache(&maker->allocator);
    }
    gm_allocator_end(&maker->allocator);
}

static bool is_trusted_after_all(struct gm_history *history, uint64_t share)
{
    gm_history_guess(history);
    struct gm_as_recorded as = gm_replay_as_recorded(history);
    return as.equal_events >= as.events - as.events / share;
}

static void trust_is_that_of_the_whole_replay(void **state)
{
    static const uint64_t shares[] = {100, 20, 3};
    size_t trusted = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= HISTORIES; seed++) {
        struct maker whole, early;
        uint64_t share = shares[seed % 3];
        make(&whole, seed);
        make(&early, seed);
        bool expected = is_trusted_after_all(&whole.history, share);
        if (gm_replay_is_trusted(&early.history, share) != expected)
            fail_msg("history %u: trusted is %d", (unsigned)seed, !expected);
        assert_int_equal(early.history.settings.oldest_first && expected,
                         whole.history.settings.oldest_first && expected);
        trusted += expected;
        gm_history_free(&whole.history);
        gm_history_free(&early.history);
    }
    assert_between(trusted, HISTORIES / 5, HISTORIES * 4 / 5); /* else it is no test */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trust_is_that_of_the_whole_replay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
