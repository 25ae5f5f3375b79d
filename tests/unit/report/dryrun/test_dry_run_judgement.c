/* The answer of a dry run, by what was counted: which part is what, and when nothing can be told. */
#include "tools/dryrun/device.h"
#include "tools/dryrun/judgement.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define GIB (UINT64_C(1) << 30)

static struct gm_dry_device device = {.name = "Test", .context = GIB};

static struct gm_dry_outcome outcome_of(uint64_t blocks, uint64_t reserved, uint64_t peak)
{
    struct gm_dry_outcome outcome = {.processes = 1};
    outcome.devices[0] = (struct gm_dry_use){.is_used = true,
                                             .peak = peak,
                                             .blocks = blocks,
                                             .reserved = reserved,
                                             .least_reserved = reserved,
                                             .most_reserved = reserved};
    return outcome;
}

static struct gm_dry_judgement judge(const struct gm_dry_outcome *outcome,
                                     const struct gm_dry_outcome *with_cudnn, int command_exit)
{
    struct gm_dry_judgement judgement;
    const struct gm_dry_facts facts = {.device = &device,
                                       .capacity = 10 * GIB,
                                       .command_exit = command_exit,
                                       .outcome = outcome,
                                       .with_cudnn = with_cudnn};
    gm_dry_judge(&judgement, &facts);
    return judgement;
}

static void parts_add_up_to_the_peak(void **state)
{
    (void)state;
    struct gm_dry_outcome outcome = outcome_of(4 * GIB, 5 * GIB, 6 * GIB);
    struct gm_dry_judgement judgement = judge(&outcome, NULL, 0);
    assert_int_equal(judgement.verdict, GM_DRY_FITS);
    assert_int_equal(judgement.peak, 7 * GIB);
    assert_int_equal(judgement.part_count, 4);
    assert_int_equal(judgement.parts[0].bytes, 4 * GIB);
    assert_int_equal(judgement.parts[1].kind, GM_DRY_BOUNDED);
    assert_int_equal(judgement.parts[3].kind, GM_DRY_ASSUMED);
}

static void the_last_byte_decides(void **state)
{
    (void)state;
    struct gm_dry_outcome outcome = outcome_of(0, 0, 9 * GIB);
    assert_int_equal(judge(&outcome, NULL, 0).verdict, GM_DRY_FITS);
    outcome.devices[0].peak++;
    assert_int_equal(judge(&outcome, NULL, 0).verdict, GM_DRY_DOES_NOT_FIT);
}

static void a_loop_that_grows_decides_nothing(void **state)
{
    (void)state;
    struct gm_dry_outcome outcome = outcome_of(GIB, GIB, GIB), unused = {.processes = 1};
    struct gm_dry_judgement judgement;
    struct gm_dry_facts facts = {
        .device = &device, .capacity = 10 * GIB, .outcome = &outcome, .grows = true};
    gm_dry_judge(&judgement, &facts);
    assert_int_equal(judgement.verdict, GM_DRY_UNDECIDED);
    outcome.devices[0].peak = 10 * GIB; /* with the context more than there is */
    gm_dry_judge(&judgement, &facts);
    assert_int_equal(judgement.verdict, GM_DRY_DOES_NOT_FIT);
    facts.outcome = &unused;
    gm_dry_judge(&judgement, &facts);
    assert_int_equal(judgement.verdict, GM_DRY_UNDECIDED);
}

static void cudnn_decides_where_its_range_is_wide(void **state)
{
    (void)state;
    struct gm_dry_outcome without = outcome_of(4 * GIB, 4 * GIB, 4 * GIB);
    struct gm_dry_outcome narrow = outcome_of(5 * GIB, 5 * GIB, 5 * GIB);
    struct gm_dry_outcome wide = outcome_of(6 * GIB, 6 * GIB, 6 * GIB);
    struct gm_dry_outcome wider = outcome_of(7 * GIB, 7 * GIB, 7 * GIB);
    struct gm_dry_judgement judgement = judge(&without, &narrow, 0);
    assert_int_equal(judgement.verdict, GM_DRY_FITS);
    assert_int_equal(judgement.peak, 5 * GIB);
    assert_int_equal(judgement.most, 6 * GIB);
    assert_int_equal(judge(&without, &wide, 0).verdict, GM_DRY_FITS); /* so would twice as much */
    assert_int_equal(judge(&without, &wider, 0).verdict, GM_DRY_UNDECIDED);
}

static void cudnn_decides_where_its_range_crosses_the_capacity(void **state)
{
    (void)state;
    struct gm_dry_outcome without = outcome_of(0, 0, 9 * GIB - 1),
                          with = outcome_of(0, 0, 9 * GIB + 1);
    assert_int_equal(judge(&without, &with, 0).verdict, GM_DRY_UNDECIDED);
}

static void the_cache_is_bounded_by_the_other_runs(void **state)
{
    (void)state;
    struct gm_dry_outcome outcome = outcome_of(4 * GIB, 5 * GIB, 5 * GIB);
    struct gm_dry_outcome less = outcome_of(4 * GIB, 4 * GIB, 4 * GIB);
    struct gm_dry_outcome more = outcome_of(4 * GIB, 8 * GIB, 8 * GIB);
    const struct gm_dry_outcome *const bounds[] = {&less, &more};
    struct gm_dry_judgement judgement;
    struct gm_dry_facts facts = {.device = &device,
                                 .capacity = 10 * GIB,
                                 .outcome = &outcome,
                                 .bounds = bounds,
                                 .bound_count = 2};
    gm_dry_judge(&judgement, &facts);
    assert_int_equal(judgement.verdict, GM_DRY_FITS); /* wide, but the bound is one */
    assert_int_equal(judgement.peak, 6 * GIB);
    assert_int_equal(judgement.most, 9 * GIB);
    assert_int_equal(judgement.parts[1].most, 4 * GIB);
    facts.capacity = 8 * GIB;
    gm_dry_judge(&judgement, &facts);
    assert_int_equal(judgement.verdict, GM_DRY_UNDECIDED);
}

static void the_cache_is_bounded_by_other_addresses(void **state)
{
    (void)state;
    struct gm_dry_outcome outcome = outcome_of(4 * GIB, 6 * GIB, 6 * GIB);
    outcome.devices[0].least_reserved = 5 * GIB;
    outcome.devices[0].most_reserved = 7 * GIB;
    struct gm_dry_judgement judgement = judge(&outcome, NULL, 0);
    assert_int_equal(judgement.peak, 7 * GIB);
    assert_int_equal(judgement.most, 8 * GIB);
    assert_int_equal(judgement.parts[1].bytes, 2 * GIB);
    assert_int_equal(judgement.parts[1].least, GIB);
    assert_int_equal(judgement.parts[1].most, 3 * GIB);
    assert_int_equal(judgement.parts[0].least, judgement.parts[0].bytes);
}

/* ---- a history at other addresses ------------------------------------------------------------ */

#define MIB (UINT64_C(1) << 20)
#define FIRST (64 * MIB)
#define SECOND (128 * MIB)
#define THIRD (256 * MIB)

static struct gm_step step(enum gm_step_kind kind, uint64_t address, uint64_t size, uint32_t block)
{
    return (struct gm_step){.address = address,
                            .size = size,
                            .asked = size,
                            .block = block,
                            .entries = 1,
                            .kind = (uint8_t)kind};
}

/* Two segments, each with a free piece of 9 MiB; beside that in the first, 5 MiB come free later. A request of 9 MiB
 * takes the piece at the lower address: where that is the first segment's, 14 MiB find no room and a segment comes. */
static void addresses_decide_what_is_reserved(void **state)
{
    (void)state;
    struct gm_step steps[] = {
        step(GM_STEP_ARRIVE, FIRST, 20 * MIB, GM_NONE),
        step(GM_STEP_ALLOC, FIRST, 5 * MIB, 0),
        step(GM_STEP_ALLOC, FIRST + 5 * MIB, 9 * MIB, 1),
        step(GM_STEP_ALLOC, FIRST + 14 * MIB, 6 * MIB, 2),
        step(GM_STEP_ARRIVE, SECOND, 20 * MIB, GM_NONE),
        step(GM_STEP_ALLOC, SECOND, 5 * MIB, 3),
        step(GM_STEP_ALLOC, SECOND + 5 * MIB, 9 * MIB, 4),
        step(GM_STEP_ALLOC, SECOND + 14 * MIB, 6 * MIB, 5),
        step(GM_STEP_FREE, FIRST + 5 * MIB, 9 * MIB, 1),
        step(GM_STEP_FREE, SECOND + 5 * MIB, 9 * MIB, 4),
        step(GM_STEP_ALLOC, FIRST + 5 * MIB, 9 * MIB, 6),
        step(GM_STEP_FREE, FIRST, 5 * MIB, 0),
        step(GM_STEP_ARRIVE, THIRD, 14 * MIB, GM_NONE),
        step(GM_STEP_ALLOC, THIRD, 14 * MIB, 7),
    };
    struct gm_history history = {
        .steps = steps, .step_count = sizeof(steps) / sizeof(steps[0]), .numbers = 8};
    gm_allocator_settings_default(&history.settings);
    struct gm_placements placements = gm_replay_placements(&history);
    assert_true(placements.is_known);
    assert_int_equal(placements.recorded, 54 * MIB);
    assert_int_equal(placements.least, 40 * MIB);
    assert_int_equal(placements.most, 54 * MIB);

    /* Of a device where as much was reserved; not of one whose trace says otherwise. */
    struct gm_dry_outcome outcome = outcome_of(34 * MIB, 54 * MIB, 54 * MIB),
                          other = outcome_of(34 * MIB, 52 * MIB, 52 * MIB);
    gm_dry_outcome_place(&outcome, &history);
    gm_dry_outcome_place(&other, &history);
    assert_int_equal(outcome.devices[0].least_reserved, 40 * MIB);
    assert_int_equal(other.devices[0].least_reserved, 52 * MIB);

    /* Blocks of one size by the age of their segment: addresses decide nothing. */
    history.settings.oldest_first = true;
    placements = gm_replay_placements(&history);
    assert_int_equal(placements.least, placements.most);

    /* What the replica does not come to is not placed elsewhere. */
    history.settings.oldest_first = false;
    steps[12].size = 16 * MIB;
    assert_false(gm_replay_placements(&history).is_known);
}

static void a_refused_request_does_not_fit(void **state)
{
    (void)state;
    struct gm_dry_outcome outcome = outcome_of(0, 0, 5 * GIB);
    outcome.devices[0].has_failed = true;
    outcome.devices[0].held = 5 * GIB;
    outcome.devices[0].wanted = 5 * GIB;
    struct gm_dry_judgement judgement = judge(&outcome, NULL, 1);
    assert_int_equal(judgement.verdict, GM_DRY_DOES_NOT_FIT);
    assert_int_equal(judgement.peak, 11 * GIB);
}

static void a_command_that_fails_tells_nothing(void **state)
{
    (void)state;
    struct gm_dry_outcome outcome = outcome_of(0, 0, GIB), none = {0};
    assert_int_equal(judge(&outcome, NULL, 1).verdict, GM_DRY_UNDECIDED);
    assert_int_equal(judge(&none, NULL, 1).verdict, GM_DRY_UNDECIDED);
    assert_int_equal(judge(&none, NULL, 0).verdict, GM_DRY_FITS);
}

static void processes_add_up(void **state)
{
    (void)state;
    struct gm_dry_outcome all = {0}, one = outcome_of(GIB, 2 * GIB, 3 * GIB);
    snprintf(one.uncertain[0].file, GM_DRY_FILE, "train.py");
    one.uncertain[0].line = 7;
    one.uncertain[0].count = 2;
    one.uncertain_count = 1;
    gm_dry_outcome_unite(&all, &one);
    gm_dry_outcome_unite(&all, &one);
    assert_int_equal(all.processes, 2);
    assert_int_equal(all.devices[0].peak, 6 * GIB);
    assert_int_equal(all.devices[0].most_reserved, 4 * GIB);
    assert_int_equal(all.uncertain_count, 1);
    assert_int_equal(all.uncertain[0].count, 4);
    assert_int_equal(all.uncertain_reads, 4);
}

static bool read_device(const char *text, struct gm_dry_device *found)
{
    char path[] = "/tmp/gpumem-device.XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    dprintf(file, "%s", text);
    close(file);
    bool good = gm_dry_device_read(found, path);
    unlink(path);
    return good;
}

static void a_device_file_says_all_or_nothing(void **state)
{
    (void)state;
    struct gm_dry_device found;
    const char *whole = "# a\n\nname = X \x1b[1m\ncc = 8.9\nsms=4\nmemory = 2GiB\ncontext= 1M\n";
    assert_true(read_device(whole, &found));
    assert_int_equal(found.memory, 2 * GIB);
    assert_string_equal(found.name, "X ?[1m");
    assert_int_equal(found.nccl, 512 << 20);
    assert_int_equal(found.nccl_rank, 0);
    assert_true(
        read_device("name=X\ncc=9.0\nsms=4\nmemory=2GiB\nnccl=704MiB\nnccl-rank=96M\n", &found));
    assert_int_equal(found.nccl, 704 << 20);
    assert_int_equal(found.nccl_rank, 96 << 20);
    assert_false(read_device("name = X\ncc = 8.9\nsms = 4\n", &found));
    assert_false(read_device("name = X\ncc = 89\nsms = 4\nmemory = 2G\n", &found));
    assert_false(read_device("name = X\ncc = 8.9\nsms = 0\nmemory = 2G\n", &found));
    assert_false(read_device("name = X\ncc = 8.9\nsms = 4\nmemory = 2G\ncontext = 2G\n", &found));
    assert_false(read_device("name = X\ncc = 8.9\nsms = 4\nmemory = 2G\nflops = 3\n", &found));
}

/* How the answer reads. The caller frees it. */
static char *text_of(struct gm_dry_judgement *judgement, const struct gm_dry_facts *facts)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    gm_dry_judge(judgement, facts);
    gm_dry_text(out, judgement, facts);
    fclose(out);
    return text;
}

/* Enough is free, but no piece of it is large enough. */
static void what_is_in_pieces_is_not_short(void **state)
{
    (void)state;
    struct gm_dry_outcome outcome = outcome_of(0, 0, 6 * GIB);
    outcome.devices[0].has_failed = true;
    outcome.devices[0].held = 4 * GIB;
    outcome.devices[0].wanted = GIB;
    const struct gm_dry_facts facts = {
        .device = &device, .capacity = 10 * GIB, .outcome = &outcome, .command_exit = 1};
    struct gm_dry_judgement judgement;
    char *text = text_of(&judgement, &facts);
    assert_int_equal(judgement.verdict, GM_DRY_DOES_NOT_FIT);
    assert_non_null(
        strstr(text, "does not fit: 1.00 GiB were refused, as what is free is in pieces"));
    assert_null(strstr(text, "short by"));
    free(text);
}

/* XLA's pool grows in steps that double, and in smaller ones where the device has no more: what was in use decides, and what it
 * reserved is the most. */
static void what_xla_reserved_is_not_what_it_needs(void **state)
{
    (void)state;
    struct gm_dry_outcome whole = outcome_of(6 * GIB, 16 * GIB, 16 * GIB);
    struct gm_dry_outcome outcome = outcome_of(5 * GIB, 7 * GIB, 7 * GIB);
    whole.devices[0].is_of_xla = outcome.devices[0].is_of_xla = true;
    whole.devices[0].least_reserved = 7 * GIB;
    outcome.devices[0].least_reserved = 5 * GIB;
    struct gm_dry_facts facts = {.device = &device, .capacity = 10 * GIB, .outcome = &whole};
    struct gm_dry_judgement judgement;
    char *text = text_of(&judgement, &facts);
    assert_int_equal(judgement.verdict, GM_DRY_UNDECIDED);
    assert_non_null(strstr(text, "the steps in which XLA's pool grows decide between 8.00 GiB and "
                                 "17.0 GiB of 10.0 GiB"));
    free(text);
    facts.capacity = 7 * GIB;
    text = text_of(&judgement, &facts);
    assert_non_null(strstr(text, "does not fit, short by 1.00 GiB: needs 8.00 GiB"));
    free(text);

    outcome.devices[0].has_failed = true;
    outcome.devices[0].held = 7 * GIB;
    outcome.devices[0].wanted = GIB;
    outcome.devices[0].limit = 7 * GIB;
    facts.capacity = 10 * GIB;
    facts.outcome = &outcome;
    facts.whole = &whole;
    facts.command_exit = 1;
    text = text_of(&judgement, &facts);
    assert_int_equal(judgement.verdict, GM_DRY_DOES_NOT_FIT);
    assert_non_null(strstr(text, "1.00 GiB were refused, as XLA may take 7.00 GiB "
                                 "(XLA_PYTHON_CLIENT_MEM_FRACTION): needs 8.00 GiB of"));
    free(text);
}

/* What cuDNN may take is told as it was found: an estimate where it fits, a part of it where the run
 * with more was refused memory. */
static void what_cudnn_decides_is_said(void **state)
{
    (void)state;
    static const struct {
        uint64_t capacity;
        bool was_refused;
        const char *says;
    } cases[] = {
        {10 * GIB, false,
         "cuDNN decides between 3.00 GiB and 7.00 GiB of 10.0 GiB.\nBoth would fit"},
        {6 * GIB, false, "cuDNN decides between 3.00 GiB and 7.00 GiB of 6.00 GiB.\n  "},
        {6 * GIB, true, "cuDNN decides between 3.00 GiB and at least 7.00 GiB of 6.00 GiB.\n  "},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gm_dry_outcome without = outcome_of(0, 0, 2 * GIB), with = outcome_of(0, 0, 6 * GIB);
        with.devices[0].has_failed = cases[i].was_refused;
        with.devices[0].held = 5 * GIB;
        with.devices[0].wanted = GIB;
        const struct gm_dry_facts facts = {.device = &device,
                                           .capacity = cases[i].capacity,
                                           .outcome = &without,
                                           .with_cudnn = &with};
        struct gm_dry_judgement judgement;
        char *text = text_of(&judgement, &facts);
        if (!strstr(text, cases[i].says))
            fail_msg("%s", text);
        free(text);
    }
}

/* Masks that are not known choose nothing in `outcome`, and all rows in `with_rows`. */
static void masks_have_two_ends(void **state)
{
    (void)state;
    struct gm_dry_told failed = {.raised = {.file = "user.py", .line = 7, .count = 1},
                                 .exception = "IndexError: none"};
    const struct {
        uint64_t capacity; /* the context is 1 GiB, the run 2 */
        bool has_range, chose_all;
        const struct gm_dry_told *failed;
        enum gm_dry_verdict verdict;
        const char *says;
    } cases[] = {
        {10 * GIB, true, false, NULL, GM_DRY_FITS, "needs 3.00 GiB to 7.00 GiB of the 10.0 GiB"},
        {6 * GIB, true, false, NULL, GM_DRY_UNDECIDED,
         "masks that the GPU computes decide between 3.00 GiB and 7.00 GiB of 6.00 GiB"},
        {2 * GIB, true, false, NULL, GM_DRY_DOES_NOT_FIT, "short by 1.00 GiB: needs 3.00 GiB"},
        {10 * GIB, false, true, NULL, GM_DRY_FITS, "needs at most 3.00 GiB"},
        {2 * GIB, false, true, NULL, GM_DRY_UNDECIDED, "choose all rows"},
        {10 * GIB, false, false, &failed, GM_DRY_UNDECIDED,
         "with all rows the command failed at user.py:7 with \"IndexError: none\""},
        {10 * GIB, false, false, NULL, GM_DRY_FITS, "needs at least 3.00 GiB"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gm_dry_outcome none = outcome_of(0, 0, 2 * GIB), all = outcome_of(0, 0, 6 * GIB);
        none.uncertain[0] = (struct gm_dry_line){.count = 3, .rows = 3};
        none.uncertain_count = 1;
        none.uncertain_reads = none.row_reads = 3;
        const struct gm_dry_facts facts = {.device = &device,
                                           .capacity = cases[i].capacity,
                                           .outcome = &none,
                                           .with_rows = cases[i].has_range ? &all : NULL,
                                           .has_rows = cases[i].chose_all,
                                           .numbers_differ = cases[i].has_range,
                                           .chose_all = cases[i].chose_all,
                                           .rows_failed = cases[i].failed};
        struct gm_dry_judgement judgement;
        char *text = text_of(&judgement, &facts);
        assert_int_equal(judgement.verdict, cases[i].verdict);
        if (!strstr(text, cases[i].says) ||
            cases[i].has_range != !!strstr(text, "no token ends a text before its limit"))
            fail_msg("%s", text);
        free(text);
    }
}

static void what_is_printed_makes_no_at_least(void **state)
{
    (void)state;
    const struct gm_dry_line printed[] = {{.file = "user.py", .line = 3}};
    for (uint64_t others = 0; others < 2; others++) {
        struct gm_dry_outcome outcome = outcome_of(0, 0, 2 * GIB);
        outcome.uncertain[0] =
            (struct gm_dry_line){.file = "user.py", .line = 3, .count = 4, .rows = 1};
        outcome.uncertain[1] = (struct gm_dry_line){.file = "user.py", .line = 4, .count = others};
        outcome.uncertain_count = 1 + others;
        outcome.uncertain_reads = 4 + others;
        gm_dry_outcome_printed(&outcome, printed, 1);
        const struct gm_dry_facts facts = {
            .device = &device, .capacity = 10 * GIB, .outcome = &outcome, .has_rows = true};
        struct gm_dry_judgement judgement;
        char *text = text_of(&judgement, &facts);
        if (!strstr(text, others ? "needs at least 3.00 GiB" : "needs 3.00 GiB") ||
            !strstr(text, "user.py:3  (only printed)"))
            fail_msg("%s", text);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cudnn_decides_is_said),
        cmocka_unit_test(masks_have_two_ends),
        cmocka_unit_test(what_is_printed_makes_no_at_least),
        cmocka_unit_test(parts_add_up_to_the_peak),
        cmocka_unit_test(the_last_byte_decides),
        cmocka_unit_test(a_loop_that_grows_decides_nothing),
        cmocka_unit_test(cudnn_decides_where_its_range_is_wide),
        cmocka_unit_test(cudnn_decides_where_its_range_crosses_the_capacity),
        cmocka_unit_test(the_cache_is_bounded_by_the_other_runs),
        cmocka_unit_test(the_cache_is_bounded_by_other_addresses),
        cmocka_unit_test(addresses_decide_what_is_reserved),
        cmocka_unit_test(a_refused_request_does_not_fit),
        cmocka_unit_test(a_command_that_fails_tells_nothing),
        cmocka_unit_test(processes_add_up),
        cmocka_unit_test(a_device_file_says_all_or_nothing),
        cmocka_unit_test(what_is_in_pieces_is_not_short),
        cmocka_unit_test(what_xla_reserved_is_not_what_it_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
