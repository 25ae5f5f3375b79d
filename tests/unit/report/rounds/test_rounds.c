/* What grows from round to round, at the edges that whole traces do not reach. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* needs the headers above */

#include "judge/rounds/rounds.h"

#define MIB ((uint64_t)1 << 20)

static void a_trail_keeps_least_and_most_however_long_it_gets(void **state)
{
    struct gm_trail trail = {0};
    (void)state;
    for (uint64_t tick = 7; tick < 100000; tick++)
        gm_trail_add(&trail, tick, tick, tick % 1000 == 0 ? 1 : 1000 + tick);
    assert_in_range(trail.count, GM_TRAIL_BUCKETS / 2, GM_TRAIL_BUCKETS);
    assert_int_equal(trail.buckets[trail.first].least, 1);
    assert_int_equal(trail.buckets[trail.count - 1].most, 1000 + 99999);
    assert_int_equal(gm_trail_at(&trail, UINT64_MAX), trail.count - 1);
    for (size_t i = trail.first + 1; i < trail.count; i++)
        assert_true(trail.buckets[i].most > trail.buckets[i - 1].most);
}

static void a_trail_fills_a_pause_in_a_moment(void **state)
{
    struct gm_trail trail = {0};
    (void)state;
    gm_trail_add(&trail, 1, UINT64_MAX / 2, 5);
    gm_trail_add(&trail, UINT64_MAX / 2 + 1, UINT64_MAX / 2, 9); /* nothing */
    assert_in_range(trail.count, GM_TRAIL_BUCKETS / 2, GM_TRAIL_BUCKETS);
    assert_int_equal(trail.buckets[trail.count - 1].most, 5);
}

/* Site 0 keeps a MiB of each round, site 1 makes and frees two. */
static void rounds_of(struct gm_rounds *rounds, enum gm_round_sort sort, unsigned count)
{
    for (uint32_t site = 0; site < 2; site++)
        gm_rounds_add_site(rounds, site,
                           &(struct gm_round_birthplace){.sort = sort, .line = site + 1});
    for (unsigned i = 0; i < count; i++) {
        gm_rounds_alloc(rounds, 0, MIB, i);
        for (unsigned other = 0; other < 2; other++) {
            gm_rounds_alloc(rounds, 1, MIB, i);
            gm_rounds_free(rounds, 1, MIB, i);
        }
    }
}

/* What the end gives back had grown. */
static enum gm_round_weight weight_of_returned(enum gm_round_sort sort)
{
    struct gm_rounds rounds = {0};
    rounds_of(&rounds, sort, 5000);
    for (unsigned i = 0; i < 5000; i++)
        gm_rounds_free(&rounds, 0, MIB, i);
    gm_rounds_finish(&rounds);
    assert_int_equal(rounds.found_count, 1);
    const struct gm_round_growth *growth = &rounds.found[0];
    assert_int_equal(growth->site, 0);
    enum gm_round_weight weight = growth->weight;
    assert_int_equal(growth->bytes, 5000 * MIB);
    assert_int_equal(growth->blocks, 5000);
    assert_int_equal(growth->alive, 5000);
    assert_int_equal(growth->rose, growth->parts);
    assert_true(growth->parts >= GM_TRAIL_BUCKETS / 4);
    assert_true(growth->goes_on);
    assert_in_range(growth->bytes / growth->rounds, MIB, MIB + MIB / 4);
    gm_rounds_free_all(&rounds);
    return weight;
}

static void what_a_program_gives_back_itself_may_be_bounded(void **state)
{
    (void)state;
    assert_int_equal(weight_of_returned(GM_ROUND_OWN), GM_ROUND_NOTE);
    assert_int_equal(weight_of_returned(GM_ROUND_BLOCKS), GM_ROUND_WARNING);
}

/* A block of `unit` bytes is kept of each of 200 rounds, of which each has a backward pass. The first request that is
 * refused, if any, comes last. From the fiftieth round on a site may join `samples` of them. */
static struct gm_round_growth growth_beside_passes(enum gm_category category, unsigned samples,
                                                   bool is_refused)
{
    struct gm_rounds rounds = {0};
    const enum gm_category of[3] = {category, GM_CATEGORY_GRADIENT, GM_CATEGORY_OTHER};
    for (uint32_t site = 0; site < 3; site++)
        gm_rounds_add_site(&rounds, site,
                           &(struct gm_round_birthplace){
                               .sort = GM_ROUND_BLOCKS, .line = site + 1, .category = of[site]});
    for (unsigned i = 0; i < 200; i++) {
        gm_rounds_alloc(&rounds, 0, MIB, i);
        gm_rounds_alloc(&rounds, 1, MIB, i);
        gm_rounds_free(&rounds, 1, MIB, i);
        if (samples && i >= 50) {
            gm_rounds_alloc(&rounds, 2, samples * MIB, i);
            gm_rounds_free(&rounds, 2, samples * MIB, i);
        }
    }
    if (is_refused)
        gm_rounds_refuse(&rounds, 0, GM_ROUND_BLOCKS);
    gm_rounds_finish(&rounds);
    assert_int_equal(rounds.found_count, 1);
    struct gm_round_growth growth = rounds.found[0];
    gm_rounds_free_all(&rounds);
    return growth;
}

static void evidence_tells_how_sure_it_is(void **state)
{
    (void)state;
    struct gm_round_growth growth = growth_beside_passes(GM_CATEGORY_ACTIVATION, 0, false);
    assert_true(growth.evidence & GM_ROUND_BACKWARD);
    assert_int_equal(growth.weight, GM_ROUND_CERTAIN);
    assert_int_equal(growth_beside_passes(GM_CATEGORY_OTHER, 0, false).weight, GM_ROUND_WARNING);
    growth = growth_beside_passes(GM_CATEGORY_ACTIVATION, 32, false);
    assert_true(growth.evidence & GM_ROUND_READ);
    assert_int_equal(growth.weight, GM_ROUND_NOTE);
    growth = growth_beside_passes(GM_CATEGORY_OTHER, 32, true);
    assert_true(growth.evidence & GM_ROUND_REFUSED);
    assert_int_equal(growth.weight, GM_ROUND_CERTAIN);
    growth = growth_beside_passes(GM_CATEGORY_PARAMETER, 0, true);
    assert_int_equal(growth.weight, GM_ROUND_NOTE); /* a load */
}

/* Half of what a load takes is given back: a cast of each tensor. Copies as loops make them, if any,
 * prove rounds. */
static enum gm_round_weight weight_of_casts(bool copies)
{
    struct gm_rounds rounds = {0};
    for (uint32_t site = 0; site < 2; site++)
        gm_rounds_add_site(&rounds, site,
                           &(struct gm_round_birthplace){.sort = GM_ROUND_OWN, .line = site + 1});
    for (unsigned i = 0; i < 100; i++) {
        gm_rounds_alloc(&rounds, 1, MIB, i);
        gm_rounds_alloc(&rounds, 0, MIB, i);
        gm_rounds_free(&rounds, 1, MIB, i);
        if (copies && i % 10 == 0)
            gm_rounds_copy(&rounds);
    }
    gm_rounds_finish(&rounds);
    assert_int_equal(rounds.found_count, 1);
    enum gm_round_weight weight = rounds.found[0].weight;
    gm_rounds_free_all(&rounds);
    return weight;
}

/* A line keeps a MiB by each of ten stacks in each of a few rounds, beside much that comes and goes. */
static void few_rounds_of_many_stacks_are_a_note(void **state)
{
    (void)state;
    for (unsigned count = 3; count <= 6; count++) {
        struct gm_rounds rounds = {0};
        for (uint32_t site = 0; site < 11; site++)
            gm_rounds_add_site(
                &rounds, site,
                &(struct gm_round_birthplace){.sort = GM_ROUND_BLOCKS, .line = 1 + site / 10});
        for (unsigned i = 0; i < count * 10; i++) {
            gm_rounds_alloc(&rounds, i % 10, MIB, i);
            for (unsigned other = 0; other < 3; other++) {
                gm_rounds_alloc(&rounds, 10, MIB, i);
                gm_rounds_free(&rounds, 10, MIB, i);
            }
        }
        gm_rounds_finish(&rounds);
        assert_int_equal(rounds.found_count, 1);
        assert_int_equal(rounds.found[0].weight, count < 5 ? GM_ROUND_NOTE : GM_ROUND_WARNING);
        gm_rounds_free_all(&rounds);
    }
}

static void a_load_with_casts_is_a_note(void **state)
{
    (void)state;
    assert_int_equal(weight_of_casts(false), GM_ROUND_NOTE);
    assert_int_equal(weight_of_casts(true), GM_ROUND_WARNING);
}

/* A model of `model` MiB is there from the beginning; 20 MiB are lost meanwhile. */
static size_t growths_beside(uint64_t model)
{
    struct gm_rounds rounds = {0};
    gm_rounds_add_site(&rounds, 0, &(struct gm_round_birthplace){.sort = GM_ROUND_OWN, .line = 9});
    gm_rounds_alloc(&rounds, 0, model * MIB, 0);
    for (uint32_t site = 1; site < 3; site++)
        gm_rounds_add_site(&rounds, site,
                           &(struct gm_round_birthplace){.sort = GM_ROUND_OWN, .line = site});
    for (unsigned i = 0; i < 400; i++) {
        if (i % 20 == 0)
            gm_rounds_alloc(&rounds, 1, MIB, i);
        gm_rounds_alloc(&rounds, 2, MIB, i);
        gm_rounds_free(&rounds, 2, MIB, i);
    }
    gm_rounds_finish(&rounds);
    size_t count = rounds.found_count;
    gm_rounds_free_all(&rounds);
    return count;
}

static void a_small_leak_beside_a_large_model_is_found(void **state)
{
    (void)state;
    assert_int_equal(growths_beside(900), 1);
    assert_int_equal(growths_beside(3100), 1);
    assert_int_equal(growths_beside(30000), 0); /* less than a thousandth of the peak */
}

/* All memory comes from one line: 300 MiB at first, and a MiB for a moment in each round. Then another user of it
 * makes, and may keep, an eighth of a MiB in each of 200 rounds. */
static struct gm_rounds users_of_a_helper(bool keeps)
{
    struct gm_rounds rounds = {0};
    for (uint32_t site = 0; site < 3; site++)
        gm_rounds_add_site(
            &rounds, site,
            &(struct gm_round_birthplace){.sort = GM_ROUND_OWN, .line = 1, .way = site + 1});
    for (unsigned i = 0; i < 300; i++)
        gm_rounds_alloc(&rounds, 0, MIB, i);
    for (unsigned i = 0; i < 200; i++) {
        for (unsigned turn = 0; turn < 4; turn++) {
            gm_rounds_alloc(&rounds, 1, MIB, 300 + i);
            gm_rounds_free(&rounds, 1, MIB, 300 + i);
        }
        gm_rounds_alloc(&rounds, 2, MIB / 8, 300 + i);
        if (!keeps)
            gm_rounds_free(&rounds, 2, MIB / 8, 300 + i);
    }
    gm_rounds_finish(&rounds);
    return rounds;
}

static void one_user_of_a_line_grows_beside_the_others(void **state)
{
    (void)state;
    struct gm_rounds rounds = users_of_a_helper(true);
    assert_int_equal(rounds.found_count, 1);
    assert_int_equal(rounds.found[0].site, 2);
    assert_int_equal(rounds.found[0].bytes, 200 * (MIB / 8));
    assert_true(rounds.found[0].differs);
    assert_int_equal(rounds.found[0].weight, GM_ROUND_WARNING);
    gm_rounds_free_all(&rounds);
    rounds = users_of_a_helper(false);
    assert_int_equal(rounds.found_count, 0);
    gm_rounds_free_all(&rounds);
}

/* A large part of what eleven epochs made comes at the end of each: six of them are more than half of it, and that is no
 * sign that less and less comes. */
static void what_comes_in_bursts_does_not_slow(void **state)
{
    enum { EPOCHS = 11, KEPT = 40, TEMPORARY = 400 };
    struct gm_rounds rounds = {0};
    (void)state;
    gm_rounds_add_site(&rounds, 0, &(struct gm_round_birthplace){.sort = GM_ROUND_OWN, .line = 1});
    for (unsigned epoch = 0; epoch < EPOCHS; epoch++) {
        for (unsigned i = 0; i < KEPT; i++)
            gm_rounds_alloc(&rounds, 0, MIB, epoch);
        for (unsigned i = 0; i < TEMPORARY; i++) {
            gm_rounds_alloc(&rounds, 0, MIB, epoch);
            gm_rounds_free(&rounds, 0, MIB, epoch);
        }
    }
    gm_rounds_finish(&rounds);
    assert_int_equal(rounds.found_count, 1);
    assert_int_equal(rounds.found[0].evidence & GM_ROUND_SLOWS, 0);
    assert_int_equal(rounds.found[0].weight, GM_ROUND_WARNING);
    gm_rounds_free_all(&rounds);
}

/* Two users that both grow are one cause: their line. */
static void a_line_is_told_where_all_its_users_grow(void **state)
{
    struct gm_rounds rounds = {0};
    (void)state;
    for (uint32_t site = 0; site < 2; site++)
        gm_rounds_add_site(
            &rounds, site,
            &(struct gm_round_birthplace){.sort = GM_ROUND_OWN, .line = 1, .way = site + 1});
    for (unsigned i = 0; i < 200; i++)
        gm_rounds_alloc(&rounds, i % 2, MIB, i);
    gm_rounds_finish(&rounds);
    assert_int_equal(rounds.found_count, 1);
    assert_int_equal(rounds.found[0].bytes, 200 * MIB);
    assert_false(rounds.found[0].differs);
    gm_rounds_free_all(&rounds);
}

static void a_free_that_is_undone_was_none(void **state)
{
    struct gm_rounds rounds = {0};
    (void)state;
    rounds_of(&rounds, GM_ROUND_OWN, 100);
    for (unsigned i = 0; i < 100; i++)
        gm_rounds_free(&rounds, 0, MIB, i);
    for (unsigned i = 0; i < 100; i++)
        gm_rounds_unfree(&rounds, 0, MIB);
    gm_rounds_alloc(&rounds, 1, MIB, 100);
    gm_rounds_finish(&rounds);
    assert_int_equal(rounds.found_count, 1);
    assert_int_equal(rounds.found[0].bytes, 100 * MIB);
    gm_rounds_free_all(&rounds);
}

static void sites_beyond_the_limit_are_not_watched(void **state)
{
    struct gm_rounds rounds = {0};
    (void)state;
    for (uint32_t site = 0; site < GM_ROUND_SITES + 10; site++)
        gm_rounds_add_site(&rounds, site,
                           &(struct gm_round_birthplace){.sort = GM_ROUND_OWN, .line = site + 1});
    assert_int_equal(rounds.site_count, GM_ROUND_SITES);
    assert_int_equal(rounds.place_count, GM_ROUND_PLACES);
    gm_rounds_alloc(&rounds, GM_ROUND_SITES + 5, MIB, 1);
    gm_rounds_free(&rounds, GM_ROUND_SITES + 5, MIB, 1);
    gm_rounds_alloc(&rounds, GM_ROUND_PLACES + 5, MIB, 1); /* counts, and is no place */
    assert_int_equal(rounds.streams[0]->clock, 1);
    gm_rounds_finish(&rounds);
    assert_int_equal(rounds.found_count, 0);
    gm_rounds_free_all(&rounds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trail_keeps_least_and_most_however_long_it_gets),
        cmocka_unit_test(a_trail_fills_a_pause_in_a_moment),
        cmocka_unit_test(what_a_program_gives_back_itself_may_be_bounded),
        cmocka_unit_test(evidence_tells_how_sure_it_is),
        cmocka_unit_test(few_rounds_of_many_stacks_are_a_note),
        cmocka_unit_test(a_load_with_casts_is_a_note),
        cmocka_unit_test(a_small_leak_beside_a_large_model_is_found),
        cmocka_unit_test(one_user_of_a_line_grows_beside_the_others),
        cmocka_unit_test(what_comes_in_bursts_does_not_slow),
        cmocka_unit_test(a_line_is_told_where_all_its_users_grow),
        cmocka_unit_test(a_free_that_is_undone_was_none),
        cmocka_unit_test(sites_beyond_the_limit_are_not_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
