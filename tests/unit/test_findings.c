/* What a report tells its readers to act on: each kind of finding where its case is, and not where
 * a sound program looks much like it. */
#include "trace_scene.h"
#include "findings.h"

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

/* Analyses the scene and collects what there is to find. */
static struct gm_findings find(struct scene *scene)
{
    struct gm_findings findings = {0};
    gm_findings_collect(scene_analyse(scene), &findings);
    return findings;
}

/* A line of a Python file of the application, called by nobody. */
static uint32_t line_of(struct scene *scene, uint32_t line)
{
    uint32_t frame = writer_script_frame(&scene->writer, "/home/me/train.py", "step", line);
    return writer_node(&scene->writer, 0, 0, frame, GM_NODE_SCRIPT);
}

#define HOST 0x500000u /* addresses that were never allocated: pageable */
#define DEVICE 0x7f0000000000u

#define COPY_IN(where, from, bytes, ...)                                                           \
    EVENT(GM_EVENT_COPY, .kind = GM_COPY_HOST_TO_DEVICE, .address = (where), .aux = (from),        \
          .size = (bytes), __VA_ARGS__)

/* ---- pageable-copies --------------------------------------------------------------------------
 */

static void a_loop_that_copies_pageable_memory_is_told(void **state)
{
    struct scene *scene = *state;
    uint32_t line = line_of(scene, 12);
    DEVICE_ALLOC(DEVICE, 4 * MIB);
    for (unsigned i = 0; i < 20; i++)
        COPY_IN(DEVICE + i % 2 * MIB, HOST + i * MIB, MIB, .stack = line, .extra = 1000);
    struct gm_findings findings = find(scene);
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
    struct gm_findings findings = find(scene);
    assert_int_equal(findings.count, 0);
    gm_findings_free(&findings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(a_loop_that_copies_pageable_memory_is_told),
        SCENE_TEST(copies_that_need_no_pinning_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
