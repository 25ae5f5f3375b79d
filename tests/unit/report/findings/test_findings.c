/* Findings: each kind where its case is, and not where a sound program looks much like it. */
#include "judge/findings/findings.h"
#include "pool_scene.h"

/* The finding with that code, NULL if there is none; asserts that there is only one. */
static const struct gm_finding *only(const struct gm_findings *findings, enum gm_finding_code code)
{
    const struct gm_finding *found = NULL;
    for (size_t i = 0; i < findings->count; i++)
        if (findings->entries[i].code == code) {
            assert_null(found);
            found = &findings->entries[i];
        }
    return found;
}

/* Analyses the scene and collects its findings. */
static struct gm_findings collect_findings(struct scene *scene)
{
    struct gm_findings findings = {0};
    gm_findings_collect(scene_analyse(scene), &findings);
    return findings;
}

#define HOST 0x500000u /* addresses that were never allocated: pageable */
#define DEVICE 0x7f0000000000u

#define COPY_IN(where, from, bytes, ...)                                                           \
    EVENT(GM_EVENT_COPY, .kind = GM_COPY_HOST_TO_DEVICE, .address = (where), .aux = (from),        \
          .size = (bytes), __VA_ARGS__)

/* ---- pageable-copies ------------------------------------------------------------------------- */

static void a_loop_that_copies_pageable_memory_is_told(void **state)
{
    struct scene *scene = *state;
    uint32_t line = line_of(scene, 12);
    DEVICE_ALLOC(DEVICE, 4 * MIB);
    for (unsigned i = 0; i < 20; i++)
        COPY_IN(DEVICE + i % 2 * MIB, HOST + i * MIB, MIB, .stack = line, .extra = 1000);
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_PAGEABLE_COPIES);
    assert_non_null(finding);
    assert_int_equal(finding->bytes, 20 * MIB);
    assert_int_equal(finding->stack, line);
    assert_non_null(strstr(finding->cause, "20 copies from pageable memory"));
    assert_non_null(strstr(finding->cause, "18 of them"));
    assert_non_null(strstr(finding->remedy, "pin_memory"));
    gm_findings_free(&findings);
}

static void copies_that_need_no_pinning_are_not(void **state)
{
    struct scene *scene = *state;
    uint32_t load = line_of(scene, 3), pinned = line_of(scene, 12), small = line_of(scene, 13);
    DEVICE_ALLOC(DEVICE, 64 * MIB);
    EVENT(GM_EVENT_ALLOC, .address = HOST, .size = MIB, .kind = GM_KIND_PINNED);
    for (unsigned i = 0; i < 20; i++) {
        COPY_IN(DEVICE + i * MIB, HOST + 2 * MIB + i * MIB, MIB, .stack = load); /* each once */
        COPY_IN(DEVICE, HOST, MIB, .stack = pinned);
        COPY_IN(DEVICE, HOST + 2 * MIB, 64 * KIB, .stack = small);
    }
    struct gm_findings findings = collect_findings(scene);
    assert_int_equal(findings.count, 0);
    gm_findings_free(&findings);
}

/* Ten small copies in all: no time is lost. */
static void a_few_copies_are_not_told(void **state)
{
    struct scene *scene = *state;
    uint32_t line = line_of(scene, 12);
    DEVICE_ALLOC(DEVICE, MIB);
    for (unsigned i = 0; i < 10; i++)
        COPY_IN(DEVICE, HOST, 65 * KIB, .stack = line, .extra = 14700);
    struct gm_findings findings = collect_findings(scene);
    assert_int_equal(findings.count, 0);
    gm_findings_free(&findings);
}

static struct gm_findings copy_back(struct scene *scene, uint64_t bytes, unsigned count)
{
    uint32_t line = line_of(scene, 12);
    DEVICE_ALLOC(DEVICE, 4 * MIB);
    for (unsigned i = 0; i < count; i++)
        EVENT(GM_EVENT_COPY, .kind = GM_COPY_DEVICE_TO_HOST, .address = HOST, .aux = DEVICE,
              .size = bytes, .stack = line);
    return collect_findings(scene);
}

static void large_results_in_pageable_memory_are_told(void **state)
{
    struct gm_findings findings = copy_back(*state, 4 * MIB, 200);
    const struct gm_finding *finding = only(&findings, GM_FINDING_PAGEABLE_COPIES);
    assert_non_null(finding);
    assert_non_null(strstr(finding->cause, "200 copies to pageable memory"));
    gm_findings_free(&findings);
}

static void small_results_are_not(void **state)
{
    struct gm_findings findings = copy_back(*state, 256 * KIB, 200);
    assert_int_equal(findings.count, 0);
    gm_findings_free(&findings);
}

/* A model is loaded layer by layer, each cast on its way: the copy's memory is used again, and a quarter
 * of the data stay. With `kept` false the cast goes, too: a loop over batches. */
static struct gm_findings copy_and_cast(struct scene *scene, bool kept)
{
    uint32_t line = line_of(scene, 12);
    for (unsigned i = 0; i < 20; i++) {
        DEVICE_ALLOC(DEVICE, 4 * MIB, .stack = line);
        COPY_IN(DEVICE, HOST + i * 4 * MIB, 4 * MIB, .stack = line);
        DEVICE_ALLOC(DEVICE + (i + 4) * MIB, MIB, .stack = line);
        FREE(DEVICE);
        if (!kept)
            FREE(DEVICE + (i + 4) * MIB);
    }
    return collect_findings(scene);
}

static void copies_of_which_a_part_stays_are_a_load(void **state)
{
    struct gm_findings findings = copy_and_cast(*state, true);
    assert_null(only(&findings, GM_FINDING_PAGEABLE_COPIES));
    gm_findings_free(&findings);
}

static void copies_of_which_nothing_stays_are_a_loop(void **state)
{
    struct gm_findings findings = copy_and_cast(*state, false);
    assert_non_null(only(&findings, GM_FINDING_PAGEABLE_COPIES));
    gm_findings_free(&findings);
}

/* ---- out-of-memory, pool-fragmentation, batch-size-search ------------------------------------ */

/* Segments of 20 MiB, each with a block of 9 MiB that leaves a hole of 11. */
static void half_full(struct pool *pool, unsigned segments, uint32_t line)
{
    for (unsigned i = 0; i < segments; i++) {
        segment(pool, DEVICE + i * 32 * MIB, 20 * MIB);
        block(pool, DEVICE + i * 32 * MIB, 9 * MIB, line);
    }
}

static void enough_that_is_free_in_smaller_holes_is_fragmentation(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t kept = line_of(scene, 3), asks = line_of(scene, 9);
    half_full(&pool, 10, kept);
    refuse(&pool, 100 * MIB, asks);
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_POOL_FRAGMENTATION);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_ERROR);
    assert_int_equal(finding->stack, asks);
    assert_string_equal(finding->cause, "100 MiB asked, 110 MiB reserved but free, largest hole "
                                        "11.0 MiB: fragmentation.");
    assert_non_null(strstr(finding->remedy, "No setting"));
    assert_null(only(&findings, GM_FINDING_OUT_OF_MEMORY));
    gm_findings_free(&findings);
}

/* Two blocks of 9 MiB in each segment, as PyTorch places them; the second ones are given back. */
static void fragmentation_names_a_setting_with_its_figure(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t line = line_of(scene, 3);
    for (unsigned i = 0; i < 10; i++) {
        segment(&pool, DEVICE + i * 32 * MIB, 20 * MIB);
        block(&pool, DEVICE + i * 32 * MIB, 9 * MIB, line);
        block(&pool, DEVICE + (i * 32 + 9) * MIB, 9 * MIB, line);
    }
    for (unsigned i = 0; i < 10; i++)
        unblock(&pool, DEVICE + (i * 32 + 9) * MIB, 9 * MIB);
    refuse(&pool, 96 * MIB, line_of(scene, 9));
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_POOL_FRAGMENTATION);
    assert_non_null(finding);
    assert_non_null(finding->remedy);
    assert_non_null(strstr(finding->remedy, "roundup_power2_divisions:4 at most 200 MiB would have "
                                            "been reserved, and nothing refused"));
    gm_findings_free(&findings);
}

static void too_little_that_is_free_is_none(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    half_full(&pool, 10, line_of(scene, 3));
    refuse(&pool, 111 * MIB, line_of(scene, 9));
    struct gm_findings findings = collect_findings(scene);
    assert_null(only(&findings, GM_FINDING_POOL_FRAGMENTATION));
    assert_non_null(only(&findings, GM_FINDING_OUT_OF_MEMORY));
    gm_findings_free(&findings);
}

static void a_hole_that_is_large_enough_is_none(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    half_full(&pool, 10, line_of(scene, 3));
    refuse(&pool, 11 * MIB, line_of(scene, 9));
    struct gm_findings findings = collect_findings(scene);
    assert_null(only(&findings, GM_FINDING_POOL_FRAGMENTATION));
    assert_non_null(only(&findings, GM_FINDING_OUT_OF_MEMORY));
    gm_findings_free(&findings);
}

/* Memory that is free for small blocks cannot serve a large one. */
static void free_space_of_the_other_pool_does_not_count(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t line = line_of(scene, 3);
    for (unsigned i = 0; i < 10; i++) {
        segment(&pool, DEVICE + i * 2 * MIB, 2 * MIB);
        block(&pool, DEVICE + i * 2 * MIB, 512, line);
    }
    refuse(&pool, 11 * MIB, line_of(scene, 9));
    struct gm_findings findings = collect_findings(scene);
    assert_null(only(&findings, GM_FINDING_POOL_FRAGMENTATION));
    gm_findings_free(&findings);
}

/* Ten holes of 11 MiB, and 100 MiB that nobody used: neither is enough alone. */
static struct gm_findings refuse_beside(struct scene *scene, uint64_t total, uint64_t size)
{
    struct pool pool = pool_of(scene);
    EVENT(GM_EVENT_DEVICE, .size = total);
    half_full(&pool, 10, line_of(scene, 3));
    refuse(&pool, size, line_of(scene, 9));
    return collect_findings(scene);
}

static void holes_and_what_the_device_has_left_count_together(void **state)
{
    struct gm_findings findings = refuse_beside(*state, 300 * MIB, 200 * MIB);
    const struct gm_finding *finding = only(&findings, GM_FINDING_POOL_FRAGMENTATION);
    assert_non_null(finding);
    assert_non_null(strstr(finding->cause, "100 MiB of the device not used"));
    gm_findings_free(&findings);
}

static void what_would_not_do_together_is_no_fragmentation(void **state)
{
    struct gm_findings findings = refuse_beside(*state, 280 * MIB, 200 * MIB);
    assert_null(only(&findings, GM_FINDING_POOL_FRAGMENTATION));
    assert_non_null(only(&findings, GM_FINDING_OUT_OF_MEMORY));
    gm_findings_free(&findings);
}

/* One refusal, and then a request of `size` at the same line. */
static struct gm_findings ask_again(struct scene *scene, uint64_t size)
{
    struct pool pool = pool_of(scene);
    uint32_t line = line_of(scene, 9);
    refuse(&pool, 16 * MIB, line);
    segment(&pool, DEVICE, 20 * MIB);
    block(&pool, DEVICE, size, line);
    return collect_findings(scene);
}

static void a_smaller_request_after_one_refusal_is_a_search(void **state)
{
    struct gm_findings findings = ask_again(*state, 8 * MIB);
    const struct gm_finding *finding = only(&findings, GM_FINDING_BATCH_SIZE_SEARCH);
    assert_non_null(finding);
    assert_non_null(strstr(finding->cause, "16.0 MiB were refused here, and then 8.00 MiB served"));
    assert_int_equal(findings.count, 1);
    gm_findings_free(&findings);
}

static void the_same_request_after_one_refusal_is_none(void **state)
{
    struct gm_findings findings = ask_again(*state, 16 * MIB);
    assert_null(only(&findings, GM_FINDING_BATCH_SIZE_SEARCH));
    assert_non_null(only(&findings, GM_FINDING_OUT_OF_MEMORY));
    gm_findings_free(&findings);
}

static void a_search_for_what_fits_is_a_note(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t line = line_of(scene, 9);
    refuse(&pool, 64 * MIB, operation_of(scene, line, 0x10));
    refuse(&pool, 32 * MIB, operation_of(scene, line, 0x10));
    segment(&pool, DEVICE, 20 * MIB);
    block(&pool, DEVICE, 16 * MIB, operation_of(scene, line, 0x20)); /* another way out of it */
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_BATCH_SIZE_SEARCH);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_NOTE);
    assert_non_null(strstr(finding->cause, "2 requests were refused here, 64.0 MiB at first and "
                                           "32.0 MiB at last"));
    assert_int_equal(findings.count, 1);
    gm_findings_free(&findings);
}

static void refusals_that_end_a_program_are_no_search(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t line = line_of(scene, 9);
    refuse(&pool, 32 * MIB, line);
    refuse(&pool, 64 * MIB, line); /* more than before */
    segment(&pool, DEVICE, 20 * MIB);
    block(&pool, DEVICE, 16 * MIB, line);
    refuse(&pool, 128 * MIB, line_of(scene, 10));
    struct gm_findings findings = collect_findings(scene);
    assert_null(only(&findings, GM_FINDING_BATCH_SIZE_SEARCH));
    assert_int_equal(findings.count, 2);
    assert_int_equal(findings.entries[0].severity, GM_SEVERITY_ERROR);
    assert_int_equal(findings.entries[0].bytes, 128 * MIB);
    assert_int_equal(findings.entries[1].severity, GM_SEVERITY_WARNING); /* it went on */
    gm_findings_free(&findings);
}

static void refusals_without_success_are_no_search(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t line = line_of(scene, 9);
    refuse(&pool, 64 * MIB, line);
    refuse(&pool, 32 * MIB, line);
    segment(&pool, DEVICE, 20 * MIB);
    block(&pool, DEVICE, 16 * MIB, line_of(scene, 10));
    struct gm_findings findings = collect_findings(scene);
    assert_int_equal(findings.count, 1);
    assert_non_null(only(&findings, GM_FINDING_OUT_OF_MEMORY));
    gm_findings_free(&findings);
}

static void a_refusal_outside_of_any_pool_is_told(void **state)
{
    struct scene *scene = *state;
    uint32_t line = line_of(scene, 5);
    DEVICE_ALLOC(DEVICE, 3 * MIB, .stack = line);
    EVENT(GM_EVENT_ALLOC_FAILED, .size = 64 * MIB, .kind = GM_KIND_DEVICE, .extra = 2,
          .stack = line);
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_OUT_OF_MEMORY);
    assert_non_null(finding);
    assert_non_null(strstr(finding->cause, "3.00 MiB allocated"));
    assert_null(strstr(finding->cause, "fragmentation"));
    assert_non_null(strstr(finding->remedy, "Check the size"));
    gm_findings_free(&findings);
}

#define REFUSED(bytes, line)                                                                       \
    EVENT(GM_EVENT_ALLOC_FAILED, .size = (bytes), .kind = GM_KIND_DEVICE, .extra = 2,              \
          .stack = (line))

static void a_refusal_of_what_is_no_allocation_says_for_what(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(DEVICE, 3 * MIB, .stack = line_of(scene, 5));
    EVENT(GM_EVENT_DEVICE, .size = 4 * MIB);
    EVENT(GM_EVENT_ALLOC_FAILED, .aux = GM_PURPOSE_CODE, .extra = 2, .stack = line_of(scene, 6));
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_OUT_OF_MEMORY);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_ERROR);
    assert_non_null(strstr(finding->cause, "no memory for loading code"));
    assert_non_null(strstr(finding->cause, "3.00 MiB allocated on the device"));
    assert_non_null(strstr(finding->cause, "of 4.00 MiB at most 1.00 MiB were free"));
    assert_non_null(finding->remedy);
    gm_findings_free(&findings);
}

static void what_goes_on_after_such_a_refusal_survived_it(void **state)
{
    struct scene *scene = *state;
    EVENT(GM_EVENT_ALLOC_FAILED, .aux = GM_PURPOSE_STREAM, .extra = 2, .stack = line_of(scene, 6));
    DEVICE_ALLOC(DEVICE, 3 * MIB, .stack = line_of(scene, 5));
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_OUT_OF_MEMORY);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_WARNING);
    gm_findings_free(&findings);
}

static void a_device_that_failed_is_no_lack_of_memory(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(DEVICE, 3 * MIB, .stack = line_of(scene, 5));
    EVENT(GM_EVENT_ALLOC_FAILED, .aux = GM_PURPOSE_WAIT, .extra = 700, .stack = line_of(scene, 6));
    struct gm_findings findings = collect_findings(scene);
    assert_null(only(&findings, GM_FINDING_OUT_OF_MEMORY));
    gm_findings_free(&findings);
}

static void a_refusal_that_the_program_survives_is_a_warning(void **state)
{
    struct scene *scene = *state;
    REFUSED(64 * MIB, line_of(scene, 5));
    DEVICE_ALLOC(DEVICE, MIB, .stack = line_of(scene, 6));
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_OUT_OF_MEMORY);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_WARNING);
    gm_findings_free(&findings);
}

static void a_search_outside_of_any_pool_is_a_note(void **state)
{
    struct scene *scene = *state;
    uint32_t line = line_of(scene, 5);
    REFUSED(64 * MIB, line);
    REFUSED(32 * MIB, line);
    DEVICE_ALLOC(DEVICE, 16 * MIB, .stack = line);
    struct gm_findings findings = collect_findings(scene);
    assert_int_equal(findings.count, 1);
    const struct gm_finding *finding = only(&findings, GM_FINDING_BATCH_SIZE_SEARCH);
    assert_non_null(finding);
    assert_non_null(strstr(finding->cause, "64.0 MiB at first and 32.0 MiB at last"));
    gm_findings_free(&findings);
}

static void a_refusal_at_the_end_is_no_search(void **state)
{
    struct scene *scene = *state;
    uint32_t line = line_of(scene, 5);
    REFUSED(64 * MIB, line);
    DEVICE_ALLOC(DEVICE, 16 * MIB, .stack = line);
    REFUSED(32 * MIB, line);
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_OUT_OF_MEMORY);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_ERROR);
    gm_findings_free(&findings);
}

/* Room is made for one request at a time: nothing is searched, and memory was short. */
static void a_retry_is_no_search(void **state)
{
    struct scene *scene = *state;
    uint32_t line = line_of(scene, 5);
    for (unsigned i = 0; i < 8; i++)
        DEVICE_ALLOC(DEVICE + i * 64 * MIB, 64 * MIB, .stack = line_of(scene, 3));
    for (unsigned i = 0; i < 4; i++) {
        REFUSED(64 * MIB, line);
        FREE(DEVICE + i * 64 * MIB);
        DEVICE_ALLOC(DEVICE + i * 64 * MIB, 64 * MIB, .stack = line);
    }
    struct gm_findings findings = collect_findings(scene);
    assert_null(only(&findings, GM_FINDING_BATCH_SIZE_SEARCH));
    const struct gm_finding *finding = only(&findings, GM_FINDING_OUT_OF_MEMORY);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_WARNING);
    gm_findings_free(&findings);
}

/* Of a search by bisection, which the program ends well after, the last request is refused. */
static void a_search_by_bisection_is_a_note(void **state)
{
    struct scene *scene = *state;
    uint32_t line = line_of(scene, 5);
    scene->writer.header.status = GM_STATUS_TOLD;
    for (unsigned i = 0; i < 4; i++) {
        REFUSED((64 - 8 * i) * MIB, line);
        if (i == 3)
            break;
        DEVICE_ALLOC(DEVICE, (16 + 4 * i) * MIB, .stack = line);
        FREE(DEVICE);
    }
    EVENT(GM_EVENT_ALLOC, .address = HOST, .size = MIB, .kind = GM_KIND_PINNED);
    FREE(HOST);
    struct gm_findings findings = collect_findings(scene);
    assert_null(only(&findings, GM_FINDING_OUT_OF_MEMORY));
    assert_non_null(only(&findings, GM_FINDING_BATCH_SIZE_SEARCH));
    gm_findings_free(&findings);
}

static void falling_back_to_the_host_is_a_note(void **state)
{
    struct scene *scene = *state;
    REFUSED(64 * MIB, line_of(scene, 5));
    EVENT(GM_EVENT_ALLOC, .address = HOST, .size = 64 * MIB, .kind = GM_KIND_PINNED);
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_OUT_OF_MEMORY);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_NOTE);
    assert_true(scene->analysis->failures[0].survived);
    gm_findings_free(&findings);
}

/* Managed memory takes no room on the device: what was free there lay in holes. */
static void managed_memory_takes_no_room(void **state)
{
    struct scene *scene = *state;
    EVENT(GM_EVENT_DEVICE, .size = 2048 * MIB);
    EVENT(GM_EVENT_ALLOC, .address = 0x10000000, .size = 1900 * MIB, .kind = GM_KIND_MANAGED);
    for (uint64_t i = 0; i < 3; i++)
        DEVICE_ALLOC(DEVICE + i * 800 * MIB, 64 * MIB);
    REFUSED(1200 * MIB, line_of(scene, 5));
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_OUT_OF_MEMORY);
    assert_non_null(finding);
    assert_int_equal(scene->analysis->failures[0].used, 192 * MIB);
    assert_non_null(strstr(finding->cause, "192 MiB allocated on the device (and 1.86 GiB of"));
    assert_non_null(strstr(finding->cause, "fragmentation"));
    gm_findings_free(&findings);
}

/* A program that calls CUDA after a refusal and ends with 0 survived it; one that fails did not. */
static void exit_code_0_after_more_calls_is_survival(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(DEVICE, MIB);
    scene->writer.header.status = GM_STATUS_TOLD;
    REFUSED(64 * MIB, line_of(scene, 5));
    FREE(DEVICE);
    assert_true(scene_analyse(scene)->failures[0].survived);
}

static void another_exit_code_is_not(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(DEVICE, MIB);
    scene->writer.header.status = GM_STATUS_TOLD | 3u << 8;
    REFUSED(64 * MIB, line_of(scene, 5));
    FREE(DEVICE);
    assert_false(scene_analyse(scene)->failures[0].survived);
}

/* PyTorch without a cache of its own hands the driver's answer on, as an error of the program's. */
static void a_refusal_of_pytorchs_that_ends_a_program_is_told(void **state)
{
    struct scene *scene = *state;
    uint32_t line = operation_of(scene, line_of(scene, 5), 0x10);
    DEVICE_ALLOC(DEVICE, 3 * MIB, .stack = line);
    REFUSED(64 * MIB, line);
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_OUT_OF_MEMORY);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_ERROR);
    gm_findings_free(&findings);
}

static void a_refusal_that_pytorchs_cache_recovers_from_is_not(void **state)
{
    struct scene *scene = *state;
    uint32_t line = operation_of(scene, line_of(scene, 5), 0x10);
    REFUSED(64 * MIB, line);
    DEVICE_ALLOC(DEVICE, 64 * MIB, .stack = line); /* it emptied its cache first */
    struct gm_findings findings = collect_findings(scene);
    assert_null(only(&findings, GM_FINDING_OUT_OF_MEMORY));
    gm_findings_free(&findings);
}

static void a_refusal_of_a_cache_that_tells_of_blocks_is_its_own_to_tell(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t line = operation_of(scene, line_of(scene, 5), 0x10);
    segment(&pool, DEVICE, 20 * MIB);
    block(&pool, DEVICE, MIB, line);
    REFUSED(64 * MIB, line);
    struct gm_findings findings = collect_findings(scene);
    assert_null(only(&findings, GM_FINDING_OUT_OF_MEMORY));
    gm_findings_free(&findings);
}

/* Holes of 64 and 64 MiB, on a device of 1 GiB. */
static void find_with_holes(struct scene *scene, uint64_t request, bool fragmentation)
{
    uint32_t line = line_of(scene, 5);
    EVENT(GM_EVENT_DEVICE, .size = 1024 * MIB);
    for (uint64_t i = 0; i < 3; i++)
        DEVICE_ALLOC(DEVICE + i * 65 * MIB, 1 * MIB, .stack = line);
    EVENT(GM_EVENT_ALLOC_FAILED, .size = request, .kind = GM_KIND_DEVICE, .extra = 2,
          .stack = line);
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_OUT_OF_MEMORY);
    assert_non_null(finding);
    assert_int_equal(strstr(finding->cause, "128 MiB were free, in holes of at most 64.0 MiB: "
                                            "fragmentation") != NULL,
                     fragmentation);
    gm_findings_free(&findings);
}

static void a_refusal_for_lack_of_one_hole_says_so(void **state)
{
    find_with_holes(*state, 128 * MIB, true);
}

static void a_refusal_that_no_holes_would_serve_does_not(void **state)
{
    find_with_holes(*state, 129 * MIB, false);
}

static void a_refusal_that_a_hole_could_serve_does_not(void **state)
{
    find_with_holes(*state, 64 * MIB, false);
}

/* ---- retained -------------------------------------------------------------------------------- */

/* Steps of a loop: an activation and two temporaries; `kept` of the activations live on. */
static void steps(struct pool *pool, unsigned count, unsigned kept, uint32_t line)
{
    uint32_t activation = operation_of(pool->scene, line, 0x10);
    uint32_t temporary = operation_of(pool->scene, line, 0x20);
    segment(pool, DEVICE, 1024 * MIB);
    for (unsigned i = 0; i < count; i++) {
        uint64_t address = DEVICE + (uint64_t)i * MIB;
        block(pool, address, MIB, activation);
        for (unsigned other = 0; other < 2; other++) {
            block(pool, DEVICE + 1000 * MIB, MIB, temporary);
            unblock(pool, DEVICE + 1000 * MIB, MIB);
        }
        if (i >= kept)
            unblock(pool, address, MIB);
    }
}

static void a_list_that_keeps_every_step_is_told(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t line = line_of(scene, 7);
    steps(&pool, 20, 20, line);
    for (unsigned i = 0; i < 20; i++) /* the interpreter ends */
        unblock(&pool, DEVICE + (uint64_t)i * MIB, MIB);
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_RETAINED);
    assert_non_null(finding);
    assert_int_equal(finding->bytes, 21 * MIB); /* with the last temporary */
    assert_int_equal(finding->severity, GM_SEVERITY_WARNING);
    assert_int_equal(gm_callers_get(scene->analysis->callers, finding->stack), line);
    assert_non_null(strstr(finding->cause, " in each, to 21.0 MiB"));
    assert_non_null(strstr(finding->evidence, "% were freed"));
    gm_findings_free(&findings);
}

static void a_loop_that_forgets_is_sound(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    steps(&pool, 20, 0, line_of(scene, 7));
    struct gm_findings findings = collect_findings(scene);
    assert_null(only(&findings, GM_FINDING_RETAINED));
    gm_findings_free(&findings);
}

/* A cache that fills up, or a list that nobody clears: everything was there at half time. */
static void what_grew_and_stopped_is_a_note(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    steps(&pool, 40, 20, line_of(scene, 7));
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_RETAINED);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_NOTE);
    assert_non_null(strstr(finding->cause, ", and stayed"));
    gm_findings_free(&findings);
}

/* Weights: all was taken in the first fifth of the run. */
static void what_stays_from_the_beginning_is_sound(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    steps(&pool, 100, 20, line_of(scene, 7));
    struct gm_findings findings = collect_findings(scene);
    assert_null(only(&findings, GM_FINDING_RETAINED));
    gm_findings_free(&findings);
}

/* A cache without temporaries that is full after three tenths of the run: it was loaded. */
static void what_was_loaded_is_sound(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t cached = operation_of(scene, line_of(scene, 7), 0x10), line = line_of(scene, 8);
    segment(&pool, DEVICE, 1024 * MIB);
    for (unsigned i = 0; i < 65; i++) {
        if (i < 30)
            block(&pool, DEVICE + (uint64_t)i * MIB, MIB, cached);
        for (unsigned other = 0; i >= 30 && other < 2; other++) {
            block(&pool, DEVICE + 1000 * MIB, MIB, line);
            unblock(&pool, DEVICE + 1000 * MIB, MIB);
        }
    }
    struct gm_findings findings = collect_findings(scene);
    assert_null(only(&findings, GM_FINDING_RETAINED));
    gm_findings_free(&findings);
}

/* A tenth of the requests is never closed. */
static void a_share_that_is_kept_is_told(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t line = line_of(scene, 7);
    segment(&pool, DEVICE, 1024 * MIB);
    for (unsigned i = 0; i < 200; i++) {
        block(&pool, DEVICE + (uint64_t)i * MIB, MIB, line);
        if (i % 10)
            unblock(&pool, DEVICE + (uint64_t)i * MIB, MIB);
    }
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_RETAINED);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_WARNING);
    gm_findings_free(&findings);
}

/* Each round replaces what the one before left by something larger: no block lives long. The state of one request
 * does so, too. */
static void what_is_replaced_and_grows_is_a_note(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t line = operation_of(scene, line_of(scene, 7), 0x10);
    segment(&pool, DEVICE, 1024 * MIB);
    for (unsigned i = 0; i < 60; i++) {
        block(&pool, DEVICE + i % 2 * 512 * MIB, (i + 1) * MIB, line);
        if (i > 0)
            unblock(&pool, DEVICE + (i + 1) % 2 * 512 * MIB, i * MIB);
    }
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_RETAINED);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_NOTE);
    gm_findings_free(&findings);
}

/* Objects of one line give way to those of another. */
static void what_takes_the_place_of_others_is_sound(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t before = line_of(scene, 7), after = line_of(scene, 8);
    segment(&pool, DEVICE, 1024 * MIB);
    for (unsigned i = 0; i < 40; i++)
        block(&pool, DEVICE + (uint64_t)i * MIB, MIB, before);
    for (unsigned i = 0; i < 40; i++) {
        unblock(&pool, DEVICE + (uint64_t)i * MIB, MIB);
        block(&pool, DEVICE + (uint64_t)i * MIB, MIB, after);
    }
    struct gm_findings findings = collect_findings(scene);
    assert_null(only(&findings, GM_FINDING_RETAINED));
    gm_findings_free(&findings);
}

/* The leak is the line that filled the pool, not the request that found it full. */
static void a_leak_that_ends_in_out_of_memory_is_named(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t line = line_of(scene, 7), asks = line_of(scene, 9);
    steps(&pool, 40, 40, line);
    refuse(&pool, 512 * MIB, asks);
    for (unsigned i = 0; i < 40; i++) /* the interpreter ends */
        unblock(&pool, DEVICE + (uint64_t)i * MIB, MIB);
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_RETAINED);
    assert_non_null(finding);
    assert_int_equal(finding->bytes, 40 * MIB);
    assert_int_equal(gm_callers_get(scene->analysis->callers, finding->stack), line);
    assert_non_null(strstr(finding->cause, "Then a request was refused."));
    finding = only(&findings, GM_FINDING_OUT_OF_MEMORY);
    assert_non_null(finding);
    assert_non_null(strstr(finding->cause, "40.0 MiB of that had grown"));
    assert_string_equal(finding->remedy, only(&findings, GM_FINDING_RETAINED)->remedy);
    gm_findings_free(&findings);
}

/* Without it, the reason that the refusal gives would lead nowhere. */
static void a_leak_that_ends_in_out_of_memory_is_told_also_as_what_grew(void **state)
{
    struct scene *scene = *state;
    uint32_t line = line_of(scene, 7);
    for (unsigned i = 0; i < 40; i++) {
        DEVICE_ALLOC(DEVICE + (uint64_t)i * MIB, MIB, .stack = line);
        DEVICE_ALLOC(DEVICE + 1000 * MIB, MIB, .stack = line_of(scene, 8));
        FREE(DEVICE + 1000 * MIB);
    }
    REFUSED(512 * MIB, line_of(scene, 9));
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_RETAINED);
    assert_non_null(finding);
    assert_int_equal(gm_callers_get(scene->analysis->callers, finding->stack), line);
    finding = only(&findings, GM_FINDING_OUT_OF_MEMORY);
    assert_non_null(finding);
    assert_non_null(strstr(finding->cause, "(see \"retained\")"));
    gm_findings_free(&findings);
}

/* Each round keeps a block of a MiB, behind which half of one stays free. */
static struct gm_findings keep_with_gaps(struct pool *pool)
{
    struct scene *scene = pool->scene;
    uint32_t keeps = operation_of(scene, line_of(scene, 7), 0x10);
    uint32_t temporary = operation_of(scene, line_of(scene, 8), 0x20);
    segment(pool, DEVICE, 60 * MIB);
    for (uint64_t i = 0; i < 40; i++) {
        uint64_t address = DEVICE + i * 3 * MIB / 2;
        block(pool, address, MIB, keeps);
        for (unsigned other = 0; other < 2; other++) {
            block(pool, address + MIB, MIB / 2, temporary);
            unblock(pool, address + MIB, MIB / 2);
        }
    }
    refuse(pool, 8 * MIB, line_of(scene, 9));
    return collect_findings(scene);
}

static void a_pool_that_is_full_of_a_leak_is_not_fragmented(void **state)
{
    struct pool pool = pool_of(*state);
    struct gm_findings findings = keep_with_gaps(&pool);
    const struct gm_finding *finding = only(&findings, GM_FINDING_OUT_OF_MEMORY);
    assert_non_null(finding);
    assert_non_null(strstr(finding->cause, "40.0 MiB of that had grown"));
    assert_null(only(&findings, GM_FINDING_POOL_FRAGMENTATION));
    gm_findings_free(&findings);
}

/* Half of what is reserved did not grow: the gaps matter. */
static void a_pool_that_holds_much_else_is_fragmented(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t weights = operation_of(scene, line_of(scene, 3), 0x30);
    segment(&pool, DEVICE + 1024 * MIB, 100 * MIB);
    for (uint64_t i = 0; i < 66; i++)
        block(&pool, DEVICE + 1024 * MIB + i * 3 * MIB / 2, MIB, weights);
    struct gm_findings findings = keep_with_gaps(&pool);
    assert_non_null(only(&findings, GM_FINDING_POOL_FRAGMENTATION));
    assert_null(only(&findings, GM_FINDING_OUT_OF_MEMORY));
    gm_findings_free(&findings);
}

/* Passes of a few blocks each, then one of many, which is refused. `first`: MiB that stay from the beginning. */
static struct gm_findings passes(struct scene *scene, unsigned first, unsigned last)
{
    struct pool pool = pool_of(scene);
    uint32_t weights = operation_of(scene, line_of(scene, 3), 0x10);
    uint32_t activation = operation_of(scene, line_of(scene, 7), 0x20);
    segment(&pool, DEVICE, 1024 * MIB);
    for (unsigned i = 0; i < first; i++)
        block(&pool, DEVICE + (900 + i) * MIB, MIB, weights);
    for (unsigned pass = 0; pass < 100; pass++) {
        for (uint64_t i = 0; i < 5; i++)
            block(&pool, DEVICE + i * MIB, MIB, activation);
        for (uint64_t i = 0; i < 5; i++)
            unblock(&pool, DEVICE + i * MIB, MIB);
    }
    for (uint64_t i = 0; i < last; i++)
        block(&pool, DEVICE + i * MIB, MIB, activation);
    refuse(&pool, 512 * MIB, activation);
    return collect_findings(scene);
}

static void what_the_refused_pass_took_is_told_apart(void **state)
{
    struct gm_findings findings = passes(*state, 0, 40);
    const struct gm_finding *finding = only(&findings, GM_FINDING_OUT_OF_MEMORY);
    assert_non_null(finding);
    assert_non_null(strstr(finding->cause, " 40.0 MiB came last, by lines that allocated again and "
                                           "again: one long pass, or several that kept it; before "
                                           "it at most 5.00 MiB had been held."));
    assert_null(only(&findings, GM_FINDING_RETAINED));
    gm_findings_free(&findings);
}

static void what_had_been_there_is_of_no_pass(void **state)
{
    struct gm_findings findings = passes(*state, 100, 5);
    const struct gm_finding *finding = only(&findings, GM_FINDING_OUT_OF_MEMORY);
    assert_non_null(finding);
    assert_non_null(strstr(finding->cause, " 105 MiB had been there for longer."));
    gm_findings_free(&findings);
}

static void a_run_that_only_loads_is_a_note_at_most(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t line = operation_of(scene, line_of(scene, 7), 0x10);
    segment(&pool, DEVICE, 1024 * MIB);
    for (unsigned i = 0; i < 50; i++)
        block(&pool, DEVICE + (uint64_t)i * MIB, MIB, line);
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_RETAINED);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_NOTE);
    assert_non_null(strstr(finding->cause, "a load, or one long pass"));
    gm_findings_free(&findings);
}

/* What is told of the same memory in two findings is told with the same certainty. */
static void a_load_that_is_refused_has_not_grown_for_certain(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    uint32_t line = operation_of(scene, line_of(scene, 7), 0x10);
    segment(&pool, DEVICE, 1024 * MIB);
    for (unsigned i = 0; i < 50; i++)
        block(&pool, DEVICE + (uint64_t)i * MIB, MIB, line);
    refuse(&pool, 2000 * MIB, line);
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_OUT_OF_MEMORY);
    const struct gm_finding *retained = only(&findings, GM_FINDING_RETAINED);
    assert_true(finding && retained && retained->severity == GM_SEVERITY_NOTE);
    assert_null(strstr(finding->cause, "had grown from round to round"));
    assert_non_null(strstr(finding->cause, " 50.0 MiB of that had been growing, from round to "
                                           "round or in one long pass (see \"retained\")."));
    gm_findings_free(&findings);
}

static void a_model_of_a_few_layers_is_sound(void **state)
{
    struct scene *scene = *state;
    struct pool pool = pool_of(scene);
    segment(&pool, DEVICE, 1024 * MIB);
    for (unsigned i = 0; i < 20; i++)
        block(&pool, DEVICE + (uint64_t)i * MIB, MIB, line_of(scene, 7));
    struct gm_findings findings = collect_findings(scene);
    assert_null(only(&findings, GM_FINDING_RETAINED));
    gm_findings_free(&findings);
}

/* Allocations directly from CUDA: each step fills one again, keeps one, and gives another back.
 * `after`: how long the program then works without an allocation, ns. */
static struct gm_findings keep_allocations(struct scene *scene, uint64_t after, bool freed)
{
    uint32_t keeping = line_of(scene, 7), working = line_of(scene, 8);
    for (unsigned i = 0; i < 40; i++) {
        COPY_IN(DEVICE + 2000 * MIB, HOST, 4 * KIB, .stack = working);
        DEVICE_ALLOC(DEVICE + (uint64_t)i * MIB, MIB, .stack = keeping);
        DEVICE_ALLOC(DEVICE + 1000 * MIB, MIB, .stack = working);
        FREE(DEVICE + 1000 * MIB);
    }
    scene->writer.clock += after;
    for (unsigned i = 0; i < 40 && freed; i++)
        FREE(DEVICE + (uint64_t)i * MIB);
    return collect_findings(scene);
}

static void allocations_that_pile_up_are_told(void **state)
{
    struct scene *scene = *state;
    struct gm_findings findings = keep_allocations(scene, 0, true);
    const struct gm_finding *finding = only(&findings, GM_FINDING_RETAINED);
    assert_non_null(finding);
    assert_int_equal(finding->bytes, 40 * MIB);
    assert_int_equal(finding->severity, GM_SEVERITY_NOTE); /* all of it was given back */
    assert_non_null(strstr(finding->evidence, " copies repeated"));
    assert_null(strstr(finding->remedy, "loss.item()"));
    gm_findings_free(&findings);
}

static void allocations_that_are_lost_are_leaks_and_not_told_twice(void **state)
{
    struct gm_findings findings = keep_allocations(*state, 0, false);
    assert_null(only(&findings, GM_FINDING_RETAINED));
    gm_findings_free(&findings);
}

static void a_process_that_was_killed_has_no_leaks_but_piles_up_all_the_same(void **state)
{
    struct scene *scene = *state;
    scene->writer.header.end = GM_END_NONE;
    struct gm_findings findings = keep_allocations(scene, 0, false);
    assert_non_null(only(&findings, GM_FINDING_RETAINED));
    gm_findings_free(&findings);
}

static void what_was_taken_before_the_work_is_a_note_at_most(void **state)
{
    struct gm_findings findings = keep_allocations(*state, 2000000000u, true);
    const struct gm_finding *finding = only(&findings, GM_FINDING_RETAINED);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_NOTE);
    gm_findings_free(&findings);
}

/* ---- cached ---------------------------------------------------------------------------------- */

/* A large phase in segments of its own, then a small one. */
static struct gm_findings two_phases(struct scene *scene, uint64_t later)
{
    struct pool pool = pool_of(scene);
    uint32_t line = line_of(scene, 7);
    for (unsigned i = 0; i < 8; i++) {
        segment(&pool, DEVICE + i * 32 * MIB, 32 * MIB);
        block(&pool, DEVICE + i * 32 * MIB, 32 * MIB, line);
    }
    for (unsigned i = 0; i < 8; i++)
        unblock(&pool, DEVICE + i * 32 * MIB, 32 * MIB);
    for (unsigned i = 0; i < 100; i++) {
        for (uint64_t at = 0; at < later; at += 32 * MIB)
            block(&pool, DEVICE + at, 32 * MIB, line);
        for (uint64_t at = 0; at < later; at += 32 * MIB)
            unblock(&pool, DEVICE + at, 32 * MIB);
    }
    return collect_findings(scene);
}

static void memory_that_lies_idle_is_noted(void **state)
{
    struct gm_findings findings = two_phases(*state, 32 * MIB);
    const struct gm_finding *finding = only(&findings, GM_FINDING_CACHED);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_NOTE);
    assert_int_equal(finding->bytes, 7 * 32 * MIB);
    assert_non_null(strstr(finding->remedy, "empty_cache"));
    gm_findings_free(&findings);
}

static void memory_that_each_step_needs_is_not(void **state)
{
    struct gm_findings findings = two_phases(*state, 7 * 32 * MIB);
    assert_null(only(&findings, GM_FINDING_CACHED));
    gm_findings_free(&findings);
}

/* ---- device-imbalance ------------------------------------------------------------------------ */

static struct gm_findings two_devices(struct scene *scene, uint64_t first, uint64_t second)
{
    const uint64_t other = DEVICE + ((uint64_t)1 << 40), replica = 30 * MIB;
    const uint32_t model = line_of(scene, 3);
    DEVICE_ALLOC(DEVICE, replica, .stack = model);
    DEVICE_ALLOC(other, replica, .stack = model, .device = 1);
    DEVICE_ALLOC(DEVICE + replica, first - replica, .stack = line_of(scene, 4));
    DEVICE_ALLOC(other + replica, second - replica, .stack = line_of(scene, 5), .device = 1);
    return collect_findings(scene);
}

static void one_device_that_limits_the_other_is_told(void **state)
{
    struct gm_findings findings = two_devices(*state, 120 * MIB, 1024 * MIB);
    const struct gm_finding *finding = only(&findings, GM_FINDING_DEVICE_IMBALANCE);
    assert_non_null(finding);
    assert_int_equal(finding->device, 1);
    assert_int_equal(finding->bytes, 904 * MIB);
    gm_findings_free(&findings);
}

/* Less than a quarter of the lesser device is a replica. */
static void devices_with_other_work_are_not_compared(void **state)
{
    struct gm_findings findings = two_devices(*state, 130 * MIB, 1024 * MIB);
    assert_null(only(&findings, GM_FINDING_DEVICE_IMBALANCE));
    gm_findings_free(&findings);
}

static void devices_that_are_alike_are_not(void **state)
{
    struct gm_findings findings = two_devices(*state, 1024 * MIB, 700 * MIB);
    assert_null(only(&findings, GM_FINDING_DEVICE_IMBALANCE));
    gm_findings_free(&findings);
}

static void a_device_that_is_hardly_used_is_not(void **state)
{
    struct gm_findings findings = two_devices(*state, 1024 * MIB, 60 * MIB);
    assert_null(only(&findings, GM_FINDING_DEVICE_IMBALANCE));
    gm_findings_free(&findings);
}

/* ---- pinned memory --------------------------------------------------------------------------- */

#define PINNED(where, bytes, ...)                                                                  \
    EVENT(GM_EVENT_ALLOC, .address = (where), .size = (bytes), .kind = GM_KIND_PINNED, __VA_ARGS__)

/* Each step copies; the first `pinning` of 64 pin a buffer. */
static struct gm_findings pinning_steps(struct scene *scene, unsigned pinning)
{
    uint32_t line = line_of(scene, 11);
    DEVICE_ALLOC(DEVICE, MIB);
    for (unsigned i = 0; i < 64; i++) {
        uint64_t buffer = HOST + (uint64_t)(i < pinning ? i : 0) * MIB;
        if (i < pinning)
            PINNED(buffer, MIB, .stack = line);
        COPY_IN(DEVICE, buffer, MIB, .stack = line);
    }
    return collect_findings(scene);
}

static void pinned_memory_that_grows_all_through_is_told(void **state)
{
    struct scene *scene = *state;
    struct gm_findings findings = pinning_steps(scene, 64);
    const struct gm_finding *finding = only(&findings, GM_FINDING_PINNED_GROWTH);
    assert_non_null(finding);
    assert_non_null(strstr(finding->cause, "to 64.0 MiB"));
    assert_int_equal(findings.count, 1);
    gm_findings_free(&findings);
}

static void pinned_memory_of_the_first_steps_is_not(void **state)
{
    struct gm_findings findings = pinning_steps(*state, 40);
    assert_int_equal(findings.count, 0);
    gm_findings_free(&findings);
}

static void use_pinned_buffer(struct scene *scene, const char *library, uint64_t used)
{
    char path[64];
    snprintf(path, sizeof(path), "/v/%s", library);
    uint16_t module = writer_module(&scene->writer, path);
    uint32_t stack = writer_node(&scene->writer, line_of(scene, 11), module, 0x100, GM_NODE_NATIVE);
    DEVICE_ALLOC(DEVICE, 8 * MIB);
    PINNED(HOST, 8 * MIB, .stack = stack);
    COPY_IN(DEVICE, HOST, used, .stack = stack);
    COPY_IN(DEVICE, HOST, MIB, .stack = stack);
}

static struct gm_findings pinned_buffer(struct scene *scene, const char *library, uint64_t used)
{
    use_pinned_buffer(scene, library, used);
    return collect_findings(scene);
}

static void a_pinned_buffer_used_in_part_is_noted(void **state)
{
    struct gm_findings findings = pinned_buffer(*state, "libtorch_cuda.so", 5 * MIB);
    const struct gm_finding *finding = only(&findings, GM_FINDING_PINNED_WASTE);
    assert_non_null(finding);
    assert_int_equal(finding->bytes, 3 * MIB);
    gm_findings_free(&findings);
}

/* As at the end of a process, when the driver is gone before PyTorch gives its buffers back. */
static void a_refused_free_does_not_unsay_what_copies_used(void **state)
{
    struct scene *scene = *state;
    use_pinned_buffer(scene, "libtorch_cuda.so", 5 * MIB);
    EVENT(GM_EVENT_FREE, .address = HOST);
    EVENT(GM_EVENT_UNDO, .address = HOST, .kind = GM_EVENT_FREE, .extra = 4);
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_PINNED_WASTE);
    assert_non_null(finding);
    assert_int_equal(finding->bytes, 3 * MIB);
    gm_findings_free(&findings);
}

/* What copies used of the memory that was there before says nothing about this one. */
static void a_buffer_at_the_address_of_another_begins_unused(void **state)
{
    struct scene *scene = *state;
    use_pinned_buffer(scene, "libtorch_cuda.so", 5 * MIB);
    EVENT(GM_EVENT_FREE, .address = HOST);
    PINNED(HOST, 8 * MIB, .stack = 1);
    struct gm_findings findings = collect_findings(scene);
    assert_null(only(&findings, GM_FINDING_PINNED_WASTE));
    gm_findings_free(&findings);
}

static void a_pinned_buffer_used_in_full_is_not(void **state)
{
    struct gm_findings findings = pinned_buffer(*state, "libtorch_cuda.so", 8 * MIB);
    assert_int_equal(findings.count, 0);
    gm_findings_free(&findings);
}

/* Rounding up leaves less than half. */
static void a_pinned_buffer_used_by_half_was_asked_for_so(void **state)
{
    struct gm_findings findings = pinned_buffer(*state, "libtorch_cuda.so", 4 * MIB);
    assert_int_equal(findings.count, 0);
    gm_findings_free(&findings);
}

static void a_pinned_buffer_of_others_is_theirs(void **state)
{
    struct gm_findings findings = pinned_buffer(*state, "site-packages/cupy/memory.so", 5 * MIB);
    assert_int_equal(findings.count, 0);
    gm_findings_free(&findings);
}

/* ---- churn ----------------------------------------------------------------------------------- */

/* Rounds that each take `segments` of 20 MiB, make `blocks` in them, and give all back. */
static struct gm_findings give_back(struct scene *scene, unsigned rounds, unsigned segments,
                                    unsigned blocks)
{
    struct pool pool = pool_of(scene);
    uint32_t line = line_of(scene, 7);
    pool.segments = operation_of(scene, line, 0x10);
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned i = 0; i < segments; i++)
            segment(&pool, DEVICE + i * 32 * MIB, 20 * MIB);
        for (unsigned i = 0; i < blocks; i++) {
            block(&pool, DEVICE, MIB, line);
            unblock(&pool, DEVICE, MIB);
        }
        for (unsigned i = 0; i < segments; i++)
            FREE(DEVICE + i * 32 * MIB);
    }
    return collect_findings(scene);
}

static void a_cache_that_is_emptied_in_each_round_is_told(void **state)
{
    struct scene *scene = *state;
    struct gm_findings findings = give_back(scene, 20, 3, 8);
    const struct gm_finding *finding = only(&findings, GM_FINDING_CHURN);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_WARNING);
    assert_int_equal(finding->bytes, 19 * 60 * MIB);
    assert_non_null(gm_trace_node(scene->trace, finding->stack));
    assert_non_null(strstr(finding->cause, "gave memory back to the driver 20 times"));
    gm_findings_free(&findings);
}

static void a_cache_that_is_emptied_between_phases_is_sound(void **state)
{
    struct gm_findings findings = give_back(*state, 20, 3, 100); /* most requests it did serve */
    assert_null(only(&findings, GM_FINDING_CHURN));
    gm_findings_free(&findings);
}

static void a_cache_that_is_emptied_a_few_times_is_sound(void **state)
{
    struct gm_findings findings = give_back(*state, 7, 3, 8);
    assert_null(only(&findings, GM_FINDING_CHURN));
    gm_findings_free(&findings);
}

static struct gm_findings pin_and_unpin(struct scene *scene, unsigned kind, unsigned rounds)
{
    uint32_t line = line_of(scene, 7);
    for (unsigned i = 0; i < rounds; i++) {
        EVENT(GM_EVENT_ALLOC, .address = HOST, .size = MIB, .kind = (uint8_t)kind, .stack = line);
        FREE(HOST);
    }
    return collect_findings(scene);
}

static void pinning_in_each_round_is_told(void **state)
{
    struct gm_findings findings = pin_and_unpin(*state, GM_KIND_PINNED, 200);
    const struct gm_finding *finding = only(&findings, GM_FINDING_CHURN);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_NOTE);
    gm_findings_free(&findings);
}

static void registering_in_each_round_is_told(void **state)
{
    struct gm_findings findings = pin_and_unpin(*state, GM_KIND_REGISTERED, 200);
    assert_non_null(only(&findings, GM_FINDING_CHURN));
    gm_findings_free(&findings);
}

static void pinning_a_few_times_is_sound(void **state)
{
    struct gm_findings findings = pin_and_unpin(*state, GM_KIND_PINNED, 20);
    assert_null(only(&findings, GM_FINDING_CHURN));
    gm_findings_free(&findings);
}

/* The driver refuses, the cache empties itself, and then it is served. */
static struct gm_findings retry(struct scene *scene, unsigned times)
{
    struct pool pool = pool_of(scene);
    pool.segments = operation_of(scene, line_of(scene, 7), 0x10);
    segment(&pool, DEVICE, 20 * MIB);
    block(&pool, DEVICE, MIB, line_of(scene, 7));
    unblock(&pool, DEVICE, MIB);
    for (unsigned i = 0; i < times; i++) {
        EVENT(GM_EVENT_ALLOC_FAILED, .size = 20 * MIB, .kind = GM_KIND_DEVICE, .extra = 2,
              .stack = pool.segments);
        FREE(DEVICE);
        segment(&pool, DEVICE, 20 * MIB);
    }
    return collect_findings(scene);
}

static void retries_of_the_cache_are_told(void **state)
{
    struct gm_findings findings = retry(*state, 4);
    const struct gm_finding *finding = only(&findings, GM_FINDING_CHURN);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_NOTE);
    assert_non_null(strstr(finding->cause, "4 times the driver had refused a request first"));
    assert_non_null(strstr(finding->remedy, "expandable_segments"));
    gm_findings_free(&findings);
}

static void a_few_retries_are_sound(void **state)
{
    struct gm_findings findings = retry(*state, 3);
    assert_null(only(&findings, GM_FINDING_CHURN));
    gm_findings_free(&findings);
}

/* A buffer for each iteration, taken from CUDA itself. */
static struct gm_findings take_and_give(struct scene *scene, unsigned times)
{
    uint32_t line = line_of(scene, 7);
    for (unsigned i = 0; i < times; i++) {
        DEVICE_ALLOC(DEVICE, MIB, .stack = line);
        FREE(DEVICE);
    }
    return collect_findings(scene);
}

static void a_buffer_for_each_iteration_is_a_note(void **state)
{
    struct gm_findings findings = take_and_give(*state, 64);
    const struct gm_finding *finding = only(&findings, GM_FINDING_CHURN);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_NOTE);
    gm_findings_free(&findings);
}

static void a_buffer_for_some_iterations_is_sound(void **state)
{
    struct gm_findings findings = take_and_give(*state, 63);
    assert_null(only(&findings, GM_FINDING_CHURN));
    gm_findings_free(&findings);
}

/* ---- second-copy, dense-gradient ------------------------------------------------------------- */

/* A function of a Python file that this line calls. */
static uint32_t called_by(struct scene *scene, uint32_t caller, const char *file,
                          const char *function)
{
    uint32_t frame = writer_script_frame(&scene->writer, file, function, 1);
    return writer_node(&scene->writer, caller, 0, frame, GM_NODE_SCRIPT);
}

#define TORCH "/v/lib/python3.11/site-packages/torch/"

/* Eight weights of a module that moves to the device, and as many blocks of another line, each
 * `difference` bytes larger, and one of `extra` bytes, if any. */
static struct gm_findings twice(struct scene *scene, uint64_t difference, uint64_t extra,
                                const char *function)
{
    struct pool pool = pool_of(scene);
    uint32_t moved = called_by(scene, line_of(scene, 7), TORCH "nn/modules/module.py", function);
    uint32_t other = line_of(scene, 9);
    segment(&pool, DEVICE, 1024 * MIB);
    for (unsigned i = 0; i < 16; i++)
        block(&pool, DEVICE + (uint64_t)i * 16 * MIB, (1 + i % 8) * MIB + (i < 8 ? 0 : difference),
              i < 8 ? moved : other);
    if (extra)
        block(&pool, DEVICE + 16 * 16 * MIB, extra, other);
    return collect_findings(scene);
}

/* What a request is refused beside: 100 MiB that this function of PyTorch made, and 50 that another did. */
static struct gm_findings refused_beside(struct scene *scene, const char *file,
                                         const char *function, const char *other)
{
    struct pool pool = pool_of(scene);
    uint32_t most = called_by(scene, line_of(scene, 7), file, function);
    uint32_t rest = called_by(scene, line_of(scene, 8), TORCH "nn/modules/module.py", other);
    segment(&pool, DEVICE, 150 * MIB);
    block(&pool, DEVICE, 100 * MIB, most);
    block(&pool, DEVICE + 100 * MIB, 50 * MIB, rest);
    refuse(&pool, 20 * MIB, line_of(scene, 9));
    return collect_findings(scene);
}

static void what_to_do_goes_by_what_the_memory_is_for(void **state)
{
    static const struct {
        const char *file, *function, *other, *remedy;
    } cases[] = {
        {TORCH "nn/modules/module.py", "_apply", "_call_impl", "A smaller batch will not do"},
        {TORCH "optim/adam.py", "_init_group", "_call_impl", "A smaller batch will not do"},
        {TORCH "nn/modules/module.py", "_call_impl", "_apply", "If nothing is trained"},
        {TORCH "utils/data/loader.py", "fetch", "_call_impl", "Use a smaller batch, or free"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        void *scene;
        scene_begin(&scene);
        struct gm_findings findings =
            refused_beside(scene, cases[i].file, cases[i].function, cases[i].other);
        const struct gm_finding *finding = only(&findings, GM_FINDING_OUT_OF_MEMORY);
        assert_non_null(finding);
        assert_non_null(strstr(finding->remedy, cases[i].remedy));
        gm_findings_free(&findings);
        scene_end(&scene);
    }
}

static void a_second_copy_of_a_model_is_a_note(void **state)
{
    struct scene *scene = *state;
    struct gm_findings findings = twice(scene, 0, 0, "Module._apply");
    const struct gm_finding *finding = only(&findings, GM_FINDING_SECOND_COPY);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_NOTE);
    assert_int_equal(finding->bytes, 36 * MIB);
    assert_int_equal(gm_categories_get(scene->analysis->categories, finding->stack),
                     GM_CATEGORY_OTHER); /* the later one */
    gm_findings_free(&findings);
}

/* Eight weights of a module, as many blocks of a file, and so many times their bytes copied into the module. */
static enum gm_severity severity_of_loaded(struct scene *scene, unsigned times)
{
    uint32_t line = line_of(scene, 12);
    uint32_t into =
        called_by(scene, line, TORCH "nn/modules/module.py", "Module._load_from_state_dict");
    uint32_t moved =
        called_by(scene, line_of(scene, 7), TORCH "nn/modules/module.py", "Module._apply");
    uint32_t loaded = called_by(scene, line_of(scene, 9), TORCH "serialization.py", "load");
    struct pool pool = pool_of(scene);
    segment(&pool, DEVICE, 1024 * MIB);
    for (unsigned i = 0; i < 16; i++)
        block(&pool, DEVICE + (uint64_t)i * 16 * MIB, (1 + i % 8) * MIB, i < 8 ? moved : loaded);
    for (unsigned i = 0; i < times * 8; i++)
        EVENT(GM_EVENT_COPY, .kind = GM_COPY_DEVICE_TO_DEVICE, .address = DEVICE,
              .aux = DEVICE + 128 * MIB, .size = (1 + i % 8) * MIB, .stack = into);
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_SECOND_COPY);
    assert_non_null(finding);
    assert_int_equal(finding->stack, loaded);
    enum gm_severity severity = finding->severity;
    gm_findings_free(&findings);
    return severity;
}

static void a_checkpoint_beside_its_model_is_a_warning(void **state)
{
    assert_int_equal(severity_of_loaded(*state, 1), GM_SEVERITY_WARNING);
}

static void a_loaded_model_that_fills_another_again_and_again_is_a_note(void **state)
{
    assert_int_equal(severity_of_loaded(*state, 3), GM_SEVERITY_NOTE);
}

static void a_loaded_model_that_fills_no_other_is_a_note(void **state)
{
    assert_int_equal(severity_of_loaded(*state, 0), GM_SEVERITY_NOTE);
}

static void blocks_of_other_sizes_are_no_copy(void **state)
{
    struct gm_findings findings = twice(*state, MIB / 2, 0, "Module._apply");
    assert_null(only(&findings, GM_FINDING_SECOND_COPY));
    gm_findings_free(&findings);
}

static void blocks_of_more_sizes_are_no_copy(void **state)
{
    struct gm_findings findings = twice(*state, 0, 12 * MIB, "Module._apply");
    assert_null(only(&findings, GM_FINDING_SECOND_COPY));
    gm_findings_free(&findings);
}

/* Keys and values of a cache have the same sizes, too. */
static void blocks_of_which_none_is_a_models_are_no_copy(void **state)
{
    struct gm_findings findings = twice(*state, 0, 0, "Module.forward");
    assert_null(only(&findings, GM_FINDING_SECOND_COPY));
    gm_findings_free(&findings);
}

/* A table of 64 MiB, a lookup of `looked_up` bytes, and a gradient as large as the table. */
static struct gm_findings look_up(struct scene *scene, uint64_t looked_up)
{
    struct pool pool = pool_of(scene);
    uint32_t line = line_of(scene, 7);
    uint32_t moved = called_by(scene, line, TORCH "nn/modules/module.py", "Module._apply");
    uint32_t lookup = called_by(scene, line, TORCH "nn/functional.py", "embedding");
    uint16_t module = writer_module(&scene->writer, TORCH "lib/libtorch_cpu.so");
    uint32_t backward = writer_node(&scene->writer, 0, module, 0x100, GM_NODE_NATIVE);
    segment(&pool, DEVICE, 1024 * MIB);
    block(&pool, DEVICE, 64 * MIB, moved);
    block(&pool, DEVICE + 128 * MIB, looked_up, lookup);
    block(&pool, DEVICE + 256 * MIB, 64 * MIB, backward);
    return collect_findings(scene);
}

static void a_gradient_of_rows_that_nobody_touched_is_a_note(void **state)
{
    struct gm_findings findings = look_up(*state, 4 * MIB);
    const struct gm_finding *finding = only(&findings, GM_FINDING_DENSE_GRADIENT);
    assert_non_null(finding);
    assert_int_equal(finding->bytes, 64 * MIB);
    assert_non_null(strstr(finding->remedy, "sparse=True"));
    gm_findings_free(&findings);
}

static void a_gradient_of_rows_that_are_used_is_sound(void **state)
{
    struct gm_findings findings = look_up(*state, 8 * MIB);
    assert_null(only(&findings, GM_FINDING_DENSE_GRADIENT));
    gm_findings_free(&findings);
}

/* ---- worker-context, ipc-handles ------------------------------------------------------------- */

static struct gm_findings allocate_in(struct scene *scene, const char *starter)
{
    uint32_t process =
        called_by(scene, 0, "/usr/lib/python3.11/multiprocessing/process.py", "_bootstrap");
    uint32_t started = called_by(scene, process, starter, "run");
    DEVICE_ALLOC(DEVICE, MIB, .stack = called_by(scene, started, "/home/me/load.py", "load"));
    FREE(DEVICE);
    return collect_findings(scene);
}

static void a_worker_with_a_context_is_a_note(void **state)
{
    struct gm_findings findings =
        allocate_in(*state, "/usr/lib/python3.11/multiprocessing/pool.py");
    const struct gm_finding *finding = only(&findings, GM_FINDING_WORKER_CONTEXT);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_NOTE);
    gm_findings_free(&findings);
}

static void a_loaders_worker_with_a_context_is_a_warning(void **state)
{
    struct gm_findings findings = allocate_in(*state, TORCH "utils/data/_utils/worker.py");
    const struct gm_finding *finding = only(&findings, GM_FINDING_WORKER_CONTEXT);
    assert_non_null(finding);
    assert_int_equal(finding->severity, GM_SEVERITY_WARNING);
    gm_findings_free(&findings);
}

/* A worker that makes a block of this size by this function, and copies some of it back or does not: the severity of
 * its finding, or NO_FINDING. */
#define NO_FINDING (-1)

static int severity_of_worker(struct scene *scene, uint64_t size, const char *file,
                              const char *function, bool copies)
{
    uint32_t process =
        called_by(scene, 0, "/usr/lib/python3.11/multiprocessing/process.py", "_bootstrap");
    uint32_t line = called_by(scene, process, "/home/me/work.py", "work");
    struct pool pool = pool_of(scene);
    pool.segments = line;
    segment(&pool, DEVICE, size);
    block(&pool, DEVICE, size, called_by(scene, line, file, function));
    if (copies)
        EVENT(GM_EVENT_COPY, .kind = GM_COPY_DEVICE_TO_HOST, .address = HOST, .aux = DEVICE,
              .size = 4, .stack = line);
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_WORKER_CONTEXT);
    int severity = finding ? (int)finding->severity : NO_FINDING;
    gm_findings_free(&findings);
    return severity;
}

static void a_worker_that_only_prepares_data_is_a_warning(void **state)
{
    static const struct {
        uint64_t size;
        const char *file, *function;
        bool copies;
        int severity;
    } cases[] = {
        {4 * MIB, "/home/me/resize.py", "resize", true, GM_SEVERITY_WARNING},
        {4 * MIB, "/home/me/resize.py", "resize", false, GM_SEVERITY_NOTE},
        {256 * MIB, "/home/me/resize.py", "resize", true, GM_SEVERITY_NOTE},
        {4 * MIB, TORCH "nn/modules/module.py", "Module._apply", true, GM_SEVERITY_NOTE},
        {4 * MIB, TORCH "optim/adam.py", "Adam._init_group", true, GM_SEVERITY_NOTE},
        {4 * MIB, "/v/site-packages/vllm/v1/worker/utils.py", "allocate_kv_cache", true,
         NO_FINDING},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        void *scene;
        scene_begin(&scene);
        assert_int_equal(severity_of_worker(scene, cases[i].size, cases[i].file, cases[i].function,
                                            cases[i].copies),
                         cases[i].severity);
        scene_end(&scene);
    }
}

static void a_rank_is_no_worker(void **state)
{
    struct gm_findings findings = allocate_in(*state, TORCH "multiprocessing/spawn.py");
    assert_null(only(&findings, GM_FINDING_WORKER_CONTEXT));
    gm_findings_free(&findings);
}

static struct gm_findings open_handles(struct scene *scene, unsigned closed)
{
    uint16_t api = writer_api(&scene->writer, "cudaIpcOpenMemHandle");
    uint32_t line = line_of(scene, 7);
    for (unsigned i = 0; i < 20; i++)
        EVENT(GM_EVENT_ALLOC, .address = DEVICE + i * MIB, .size = MIB, .kind = GM_KIND_EXTERNAL,
              .api = api, .stack = line);
    for (unsigned i = 0; i < closed; i++)
        FREE(DEVICE + i * MIB);
    return collect_findings(scene);
}

static void handles_that_stay_open_are_a_note(void **state)
{
    struct gm_findings findings = open_handles(*state, 10);
    const struct gm_finding *finding = only(&findings, GM_FINDING_IPC_HANDLES);
    assert_non_null(finding);
    assert_non_null(strstr(finding->cause, "10 of the 20 IPC handles"));
    gm_findings_free(&findings);
}

static void handles_that_are_closed_are_sound(void **state)
{
    struct gm_findings findings = open_handles(*state, 13);
    assert_null(only(&findings, GM_FINDING_IPC_HANDLES));
    gm_findings_free(&findings);
}

/* ---- growing-code ---------------------------------------------------------------------------- */

#define CODE 0x5600000000u

enum { TOLD = 1, UNLOADED = 2, OF_THREAD = 4 }; /* flags */

struct code_case {
    const char *what;
    unsigned steps;
    unsigned every;  /* a module is loaded in each so many steps */
    unsigned until;  /* before this step */
    unsigned calls;  /* blocks that its line makes a step */
    unsigned others; /* that other lines make a step */
    unsigned flags;
};

/* The finding's severity, NO_FINDING: none. All modules are unloaded when the work is over. */
static int severity_of_code(struct scene *scene, const struct code_case *of)
{
    uint32_t line = of->flags & OF_THREAD
                        ? called_by(scene, 0, TORCH "nn/modules/module.py", "load")
                        : line_of(scene, 7);
    uint32_t other = line_of(scene, 8);
    struct pool pool = pool_of(scene);
    for (unsigned i = 0; i < of->steps; i++) {
        bool loads = i % of->every == 0 && i < of->until;
        if (loads)
            EVENT(GM_EVENT_MODULE_LOAD, .address = CODE + i, .stack = line);
        for (unsigned j = 0; j < of->calls + of->others; j++) {
            block(&pool, DEVICE, MIB, j < of->calls ? line : other);
            unblock(&pool, DEVICE, MIB);
        }
        if (loads && of->flags & UNLOADED)
            EVENT(GM_EVENT_MODULE_UNLOAD, .address = CODE + i, .stack = line);
    }
    for (unsigned i = 0; i < of->steps; i++)
        EVENT(GM_EVENT_MODULE_UNLOAD, .address = CODE + i, .stack = other);
    struct gm_findings findings = collect_findings(scene);
    const struct gm_finding *finding = only(&findings, GM_FINDING_GROWING_CODE);
    int severity = finding ? (int)finding->severity : NO_FINDING;
    assert_true(!finding || finding->stack == line);
    gm_findings_free(&findings);
    return severity;
}

static void code_that_piles_up_is_a_note(void **state)
{
    static const struct code_case cases[] = {
        {"each step", 16, 1, 16, 1, 20, TOLD},
        {"each step of a few", 8, 1, 8, 1, 2, TOLD},
        {"each step of a few long ones", 8, 1, 8, 1, 20, 0},
        {"of a line that makes nothing", 40, 2, 40, 0, 12, TOLD},
        {"now and then", 80, 5, 80, 1, 2, 0},
        {"at first", 100, 1, 40, 1, 2, 0},
        {"until late, but the line is called again", 90, 3, 90, 3, 2, 0},
        {"unloaded", 40, 1, 40, 1, 2, UNLOADED},
        {"in a thread of a library's", 40, 1, 40, 0, 2, OF_THREAD},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        void *scene;
        scene_begin(&scene);
        if (severity_of_code(scene, &cases[i]) !=
            (cases[i].flags & TOLD ? GM_SEVERITY_NOTE : NO_FINDING))
            fail_msg("%s", cases[i].what);
        scene_end(&scene);
    }
}

/* ---- several devices ------------------------------------------------------------------------- */

static void one_cause_on_several_devices_is_one_finding(void **state)
{
    enum { GROWS = GM_FINDING_GROWING, CHURNS = GM_FINDING_CHURN, OOM = GM_FINDING_OUT_OF_MEMORY };
    enum { NOTE = GM_SEVERITY_NOTE, WARNING = GM_SEVERITY_WARNING, ERROR = GM_SEVERITY_ERROR };
    static const struct {
        int device, code, severity;
        uint32_t stack;
    } given[] = {
        {0, GROWS, WARNING, 7}, {1, GROWS, WARNING, 7},  {2, GROWS, WARNING, 7},
        {3, GROWS, WARNING, 8}, {3, CHURNS, WARNING, 7}, {3, GROWS, NOTE, 9},
        {0, OOM, ERROR, 7},     {1, OOM, ERROR, 7},      {-1, GROWS, WARNING, 8},
    };
    struct gm_findings findings = {0};
    (void)state;
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++)
        gm_findings_add(&findings,
                        &(struct gm_finding){.code = (enum gm_finding_code)given[i].code,
                                             .severity = (enum gm_severity)given[i].severity,
                                             .device = given[i].device,
                                             .stack = given[i].stack,
                                             .bytes = 9 - i,
                                             .is_unbounded = i == 1},
                        "It grew.");
    gm_findings_join_devices(&findings);
    assert_int_equal(findings.count, 7);
    assert_string_equal(findings.entries[0].cause, "It grew. The same on 2 other devices.");
    assert_int_equal(findings.entries[0].bytes, 9);
    assert_true(findings.entries[0].is_unbounded);
    for (size_t i = 1; i < findings.count; i++)
        assert_string_equal(findings.entries[i].cause, "It grew.");
    gm_findings_free(&findings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(a_loop_that_copies_pageable_memory_is_told),
        SCENE_TEST(copies_that_need_no_pinning_are_not),
        SCENE_TEST(enough_that_is_free_in_smaller_holes_is_fragmentation),
        SCENE_TEST(fragmentation_names_a_setting_with_its_figure),
        SCENE_TEST(too_little_that_is_free_is_none),
        SCENE_TEST(a_hole_that_is_large_enough_is_none),
        SCENE_TEST(free_space_of_the_other_pool_does_not_count),
        SCENE_TEST(a_search_for_what_fits_is_a_note),
        SCENE_TEST(refusals_that_end_a_program_are_no_search),
        SCENE_TEST(refusals_without_success_are_no_search),
        SCENE_TEST(a_refusal_outside_of_any_pool_is_told),
        SCENE_TEST(a_refusal_of_what_is_no_allocation_says_for_what),
        SCENE_TEST(what_goes_on_after_such_a_refusal_survived_it),
        SCENE_TEST(a_device_that_failed_is_no_lack_of_memory),
        SCENE_TEST(a_refusal_that_the_program_survives_is_a_warning),
        SCENE_TEST(a_refusal_of_pytorchs_that_ends_a_program_is_told),
        SCENE_TEST(a_refusal_that_pytorchs_cache_recovers_from_is_not),
        SCENE_TEST(a_refusal_of_a_cache_that_tells_of_blocks_is_its_own_to_tell),
        SCENE_TEST(a_search_outside_of_any_pool_is_a_note),
        SCENE_TEST(a_refusal_at_the_end_is_no_search),
        SCENE_TEST(a_retry_is_no_search),
        SCENE_TEST(a_search_by_bisection_is_a_note),
        SCENE_TEST(falling_back_to_the_host_is_a_note),
        SCENE_TEST(managed_memory_takes_no_room),
        SCENE_TEST(exit_code_0_after_more_calls_is_survival),
        SCENE_TEST(another_exit_code_is_not),
        SCENE_TEST(a_refusal_for_lack_of_one_hole_says_so),
        SCENE_TEST(a_refusal_that_no_holes_would_serve_does_not),
        SCENE_TEST(a_refusal_that_a_hole_could_serve_does_not),
        SCENE_TEST(a_list_that_keeps_every_step_is_told),
        SCENE_TEST(a_loop_that_forgets_is_sound),
        SCENE_TEST(pinning_in_each_round_is_told),
        SCENE_TEST(registering_in_each_round_is_told),
        SCENE_TEST(pinning_a_few_times_is_sound),
        SCENE_TEST(a_few_copies_are_not_told),
        SCENE_TEST(large_results_in_pageable_memory_are_told),
        SCENE_TEST(small_results_are_not),
        SCENE_TEST(a_cache_that_is_emptied_in_each_round_is_told),
        SCENE_TEST(a_cache_that_is_emptied_between_phases_is_sound),
        SCENE_TEST(a_cache_that_is_emptied_a_few_times_is_sound),
        SCENE_TEST(retries_of_the_cache_are_told),
        SCENE_TEST(a_few_retries_are_sound),
        SCENE_TEST(a_buffer_for_each_iteration_is_a_note),
        SCENE_TEST(a_buffer_for_some_iterations_is_sound),
        SCENE_TEST(a_second_copy_of_a_model_is_a_note),
        SCENE_TEST(a_checkpoint_beside_its_model_is_a_warning),
        SCENE_TEST(a_loaded_model_that_fills_another_again_and_again_is_a_note),
        SCENE_TEST(a_loaded_model_that_fills_no_other_is_a_note),
        SCENE_TEST(blocks_of_other_sizes_are_no_copy),
        SCENE_TEST(copies_of_which_a_part_stays_are_a_load),
        SCENE_TEST(copies_of_which_nothing_stays_are_a_loop),
        SCENE_TEST(holes_and_what_the_device_has_left_count_together),
        SCENE_TEST(what_would_not_do_together_is_no_fragmentation),
        SCENE_TEST(a_smaller_request_after_one_refusal_is_a_search),
        SCENE_TEST(the_same_request_after_one_refusal_is_none),
        SCENE_TEST(blocks_of_more_sizes_are_no_copy),
        SCENE_TEST(blocks_of_which_none_is_a_models_are_no_copy),
        SCENE_TEST(a_gradient_of_rows_that_nobody_touched_is_a_note),
        SCENE_TEST(a_gradient_of_rows_that_are_used_is_sound),
        SCENE_TEST(a_worker_with_a_context_is_a_note),
        SCENE_TEST(a_loaders_worker_with_a_context_is_a_warning),
        cmocka_unit_test(a_worker_that_only_prepares_data_is_a_warning),
        SCENE_TEST(a_rank_is_no_worker),
        SCENE_TEST(handles_that_stay_open_are_a_note),
        SCENE_TEST(handles_that_are_closed_are_sound),
        cmocka_unit_test(code_that_piles_up_is_a_note),
        cmocka_unit_test(one_cause_on_several_devices_is_one_finding),
        SCENE_TEST(what_grew_and_stopped_is_a_note),
        SCENE_TEST(what_is_replaced_and_grows_is_a_note),
        SCENE_TEST(what_takes_the_place_of_others_is_sound),
        SCENE_TEST(a_leak_that_ends_in_out_of_memory_is_named),
        SCENE_TEST(a_leak_that_ends_in_out_of_memory_is_told_also_as_what_grew),
        SCENE_TEST(a_pool_that_is_full_of_a_leak_is_not_fragmented),
        SCENE_TEST(a_pool_that_holds_much_else_is_fragmented),
        SCENE_TEST(what_the_refused_pass_took_is_told_apart),
        SCENE_TEST(what_had_been_there_is_of_no_pass),
        SCENE_TEST(a_model_of_a_few_layers_is_sound),
        SCENE_TEST(what_stays_from_the_beginning_is_sound),
        SCENE_TEST(what_was_loaded_is_sound),
        SCENE_TEST(a_share_that_is_kept_is_told),
        SCENE_TEST(a_run_that_only_loads_is_a_note_at_most),
        SCENE_TEST(a_load_that_is_refused_has_not_grown_for_certain),
        SCENE_TEST(allocations_that_pile_up_are_told),
        SCENE_TEST(allocations_that_are_lost_are_leaks_and_not_told_twice),
        SCENE_TEST(a_process_that_was_killed_has_no_leaks_but_piles_up_all_the_same),
        SCENE_TEST(what_was_taken_before_the_work_is_a_note_at_most),
        SCENE_TEST(memory_that_lies_idle_is_noted),
        SCENE_TEST(memory_that_each_step_needs_is_not),
        SCENE_TEST(one_device_that_limits_the_other_is_told),
        SCENE_TEST(devices_with_other_work_are_not_compared),
        SCENE_TEST(devices_that_are_alike_are_not),
        SCENE_TEST(a_device_that_is_hardly_used_is_not),
        SCENE_TEST(pinned_memory_that_grows_all_through_is_told),
        cmocka_unit_test(what_to_do_goes_by_what_the_memory_is_for),
        SCENE_TEST(pinned_memory_of_the_first_steps_is_not),
        SCENE_TEST(a_pinned_buffer_used_in_part_is_noted),
        SCENE_TEST(a_refused_free_does_not_unsay_what_copies_used),
        SCENE_TEST(a_buffer_at_the_address_of_another_begins_unused),
        SCENE_TEST(a_pinned_buffer_used_in_full_is_not),
        SCENE_TEST(a_pinned_buffer_used_by_half_was_asked_for_so),
        SCENE_TEST(a_pinned_buffer_of_others_is_theirs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
