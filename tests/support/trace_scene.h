/* A trace that a test writes, and the report's analysis of it. */
#ifndef GM_TESTS_TRACE_SCENE_H
#define GM_TESTS_TRACE_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h> /* needs the headers above */

#include "input/trace/trace_open.h"
#include "judge/analysis/analysis.h"
#include "trace_writer.h"

#define KIB 1024u
#define MIB 1048576u

struct scene {
    struct writer writer;
    struct gm_trace *trace;
    struct gm_analysis *analysis;
};

static int scene_begin(void **state)
{
    struct scene *scene = calloc(1, sizeof(*scene));
    writer_begin(&scene->writer);
    *state = scene;
    return scene ? 0 : -1;
}

static int scene_end(void **state)
{
    struct scene *scene = *state;
    gm_analysis_free(scene->analysis);
    gm_trace_close(scene->trace);
    writer_free(&scene->writer);
    free(scene);
    return 0;
}

static const struct gm_analysis *scene_analyse(struct scene *scene)
{
    char error[256];
    writer_finish(&scene->writer);
    scene->trace =
        gm_trace_open_memory(scene->writer.bytes, scene->writer.size, error, sizeof(error));
    assert_non_null(scene->trace);
    scene->analysis = gm_analyse(scene->trace);
    return scene->analysis;
}

/* The words of a test; `scene` is in scope. */
#define ON_LANE(lane, what, ...)                                                                   \
    writer_add(&scene->writer, (lane), (struct gm_record){.type = (what), __VA_ARGS__})
#define EVENT(what, ...) ON_LANE(0, what, __VA_ARGS__)
#define DEVICE_ALLOC(where, bytes, ...)                                                            \
    EVENT(GM_EVENT_ALLOC, .address = (where), .size = (bytes), .kind = GM_KIND_DEVICE, __VA_ARGS__)
#define FREE(where) EVENT(GM_EVENT_FREE, .address = (where))

#define SCENE_TEST(name) cmocka_unit_test_setup_teardown(name, scene_begin, scene_end)

#endif
