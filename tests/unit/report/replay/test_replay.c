/* The rules of docs/accounting.md, one test each: a few records, and the numbers they must give. */
#include "judge/verdict/completeness.h"
#include "trace_scene.h"

/* ---- words of the tests ---------------------------------------------------------------------- */

static struct gm_counters *replay(struct scene *scene)
{
    scene_analyse(scene);
    assert_true(gm_analysis_is_complete(scene->analysis));
    assert_int_equal(scene->analysis->replay.ledger.malformed, 0);
    return &scene->analysis->replay.ledger.counters;
}

/* The same for a trace with something unseen, which is never complete. */
static struct gm_counters *replay_gaps(struct scene *scene)
{
    scene_analyse(scene);
    assert_false(gm_analysis_is_complete(scene->analysis));
    return &scene->analysis->replay.ledger.counters;
}

#define ALLOC(...) EVENT(GM_EVENT_ALLOC, __VA_ARGS__)
#define UNDO(of, where, status)                                                                    \
    EVENT(GM_EVENT_UNDO, .kind = (of), .address = (where), .extra = (status))

/* Live bytes, peak, allocs, frees and implicit frees of a kind, in one line. */
static void check_tally(const struct gm_tally *tally, uint64_t live, uint64_t peak, uint64_t allocs,
                        uint64_t frees, uint64_t implicit_frees, int line)
{
    if (tally->live != live || tally->peak.bytes != peak || tally->allocs != allocs ||
        tally->frees != frees || tally->implicit_frees != implicit_frees)
        print_error("line %d: live %lu peak %lu allocs %lu frees %lu implicit %lu\n", line,
                    tally->live, tally->peak.bytes, tally->allocs, tally->frees,
                    tally->implicit_frees);
    assert_int_equal(tally->live, live);
    assert_int_equal(tally->peak.bytes, peak);
    assert_int_equal(tally->allocs, allocs);
    assert_int_equal(tally->frees, frees);
    assert_int_equal(tally->implicit_frees, implicit_frees);
}
#define EXPECT(kind, device, ...)                                                                  \
    check_tally(gm_counters_kind(counters, (kind), (device)), __VA_ARGS__, __LINE__)

static uint64_t leaked(const struct scene *scene, enum gm_leak_class class)
{
    return scene->analysis->leaked[class];
}

/* ---- lives of addresses ---------------------------------------------------------------------- */

static void an_allocation_lives_until_its_free(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(0x1000, 100);
    DEVICE_ALLOC(0x2000, 50);
    FREE(0x1000);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_DEVICE, 0, 50, 150, 2, 1, 0);
}

static void any_free_function_ends_any_life(void **state)
{
    struct scene *scene = *state;
    ALLOC(.address = 0x1000, .size = 8, .kind = GM_KIND_PINNED);
    DEVICE_ALLOC(0x2000, 16, .flags = GM_FLAG_ASYNC | GM_FLAG_POOL);
    EVENT(GM_EVENT_FREE, .address = 0x1000, .kind = GM_KIND_DEVICE);
    EVENT(GM_EVENT_FREE, .address = 0x2000, .kind = GM_KIND_DEVICE);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_PINNED, 0, 0, 8, 1, 1, 0);
    EXPECT(GM_KIND_DEVICE, 0, 0, 16, 1, 1, 0);
}

static void an_address_can_live_again(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(0x1000, 100);
    FREE(0x1000);
    DEVICE_ALLOC(0x1000, 30, .device = 1);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_DEVICE, 0, 0, 100, 1, 1, 0);
    EXPECT(GM_KIND_DEVICE, 1, 30, 30, 1, 0, 0);
}

static void a_free_of_null_or_of_the_unknown_is_not_counted(void **state)
{
    struct scene *scene = *state;
    FREE(0);
    FREE(0x5000);
    FREE(0x6000);
    UNDO(GM_EVENT_FREE, 0x6000, 1);
    struct gm_counters *counters = replay_gaps(scene);
    EXPECT(GM_KIND_DEVICE, 0, 0, 0, 0, 0, 0);
    assert_int_equal(scene->analysis->replay.ledger.unknown_frees, 1);
}

static void a_free_that_fails_is_no_free(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(0x1000, 100);
    FREE(0x1000);
    UNDO(GM_EVENT_FREE, 0x1000, 1);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_DEVICE, 0, 100, 100, 1, 0, 0);
    assert_int_equal(leaked(scene, GM_LEAK), 100);
}

static void a_failed_free_undoes_that_of_its_own_thread(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(0x1000, 100);
    DEVICE_ALLOC(0x2000, 7);
    FREE(0x1000);
    ON_LANE(1, GM_EVENT_FREE, .address = 0x2000);
    UNDO(GM_EVENT_FREE, 0x1000, 1);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_DEVICE, 0, 100, 107, 2, 1, 0);
}

/* The free that failed was dropped: the one before it did not fail. */
static void an_undo_takes_back_only_what_it_names(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(0x1000, 100);
    DEVICE_ALLOC(0x2000, 7);
    FREE(0x1000);
    UNDO(GM_EVENT_FREE, 0x2000, 1);
    FREE(0x2000);
    UNDO(GM_EVENT_VMM_RELEASE, 0x2000, 1);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_DEVICE, 0, 0, 107, 2, 2, 0);
}

static void an_address_allocated_twice_was_freed_unseen(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(0x1000, 100);
    DEVICE_ALLOC(0x1000, 40);
    struct gm_counters *counters = replay_gaps(scene);
    EXPECT(GM_KIND_DEVICE, 0, 40, 100, 2, 1, 0);
    assert_int_equal(scene->analysis->replay.ledger.lost_frees, 1);
}

static void memory_opened_twice_is_closed_twice(void **state)
{
    struct scene *scene = *state;
    ALLOC(.address = 0x1000, .size = 10, .kind = GM_KIND_EXTERNAL);
    ALLOC(.address = 0x1000, .size = 10, .kind = GM_KIND_EXTERNAL);
    FREE(0x1000);
    FREE(0x1000);
    UNDO(GM_EVENT_FREE, 0x1000, 1);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_EXTERNAL, 0, 10, 10, 1, 0, 0);
    assert_int_equal(counters->device[1].peak.bytes, 0); /* it is another owner's */
    assert_int_equal(leaked(scene, GM_LEAK_EXTERNAL), 10);
    assert_int_equal(leaked(scene, GM_LEAK), 0);
}

static void refused_calls_are_counted_by_reason(void **state)
{
    struct scene *scene = *state;
    EVENT(GM_EVENT_ALLOC_FAILED, .size = 1, .extra = 2, .kind = GM_KIND_DEVICE);
    EVENT(GM_EVENT_ALLOC_FAILED, .size = 2, .extra = 1, .kind = GM_KIND_DEVICE);
    EVENT(GM_EVENT_ALLOC_FAILED, .size = 3, .extra = 1, .flags = GM_FLAG_RUNTIME);
    struct gm_counters *counters = replay(scene);
    assert_int_equal(counters->failed, 1);
    assert_int_equal(counters->rejected, 1);
    assert_int_equal(counters->refused_by_runtime, 1);
}

static void the_peak_of_a_device_is_of_all_its_kinds(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(0x1000, 100);
    ALLOC(.address = 0x2000, .size = 60, .kind = GM_KIND_MANAGED);
    FREE(0x1000);
    ALLOC(.address = 0x3000, .size = 50, .kind = GM_KIND_ARRAY);
    struct gm_counters *counters = replay(scene);
    assert_int_equal(counters->device[1].peak.bytes, 160);
    assert_int_equal(counters->device[1].live, 110);
    EXPECT(GM_KIND_MANAGED, 0, 60, 60, 1, 0, 0);
    EXPECT(GM_KIND_ARRAY, 0, 50, 50, 1, 0, 0);
}

static void an_unknown_device_is_a_device(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(0x1000, 100, .device = -1);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_DEVICE, -1, 100, 100, 1, 0, 0);
}

/* ---- contexts -------------------------------------------------------------------------------- */

static void a_context_takes_its_memory_with_it(void **state)
{
    struct scene *scene = *state;
    EVENT(GM_EVENT_CONTEXT, .address = 0xc1, .context = 1);
    EVENT(GM_EVENT_CONTEXT, .address = 0xc2, .context = 2);
    DEVICE_ALLOC(0x1000, 1, .context = 1);
    ALLOC(.address = 0x2000, .size = 2, .kind = GM_KIND_MANAGED, .context = 1);
    ALLOC(.address = 0x3000, .size = 4, .kind = GM_KIND_ARRAY, .context = 1);
    ALLOC(.address = 0x4000, .size = 8, .kind = GM_KIND_PINNED, .context = 1);
    ALLOC(.address = 0x5000, .size = 16, .kind = GM_KIND_REGISTERED, .context = 1);
    DEVICE_ALLOC(0x6000, 32, .context = 2);
    DEVICE_ALLOC(0x7000, 64); /* in a context that is not known */
    EVENT(GM_EVENT_CONTEXT_END, .address = 0xc1);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_DEVICE, 0, 96, 97, 3, 0, 1);
    EXPECT(GM_KIND_MANAGED, 0, 0, 2, 1, 0, 1);
    EXPECT(GM_KIND_ARRAY, 0, 0, 4, 1, 0, 1);
    EXPECT(GM_KIND_PINNED, 0, 0, 8, 1, 0, 1);
    EXPECT(GM_KIND_REGISTERED, 0, 0, 16, 1, 0, 1);
    assert_int_equal(leaked(scene, GM_LEAK_IMPLICIT), 31);
    assert_int_equal(leaked(scene, GM_LEAK), 96);
}

static void stream_ordered_and_vmm_memory_outlive_a_context(void **state)
{
    struct scene *scene = *state;
    EVENT(GM_EVENT_CONTEXT, .address = 0xc1, .context = 1);
    DEVICE_ALLOC(0x1000, 1, .context = 1, .flags = GM_FLAG_ASYNC | GM_FLAG_POOL);
    EVENT(GM_EVENT_VMM_CREATE, .address = 0x77, .size = 2, .kind = GM_KIND_VMM, .context = 1);
    ALLOC(.address = 0x3000, .size = 4, .kind = GM_KIND_EXTERNAL, .context = 1,
          .flags = GM_FLAG_POOL);
    EVENT(GM_EVENT_CONTEXT_END, .address = 0xc1);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_DEVICE, 0, 1, 1, 1, 0, 0);
    EXPECT(GM_KIND_VMM, 0, 2, 2, 1, 0, 0);
    EXPECT(GM_KIND_EXTERNAL, 0, 4, 4, 1, 0, 0);
}

/* However often it was opened, because the mapping belongs to the context. Opened again, it lives
 * again. */
static void what_is_opened_of_anothers_memory_ends_with_its_context(void **state)
{
    struct scene *scene = *state;
    EVENT(GM_EVENT_CONTEXT, .address = 0xc1, .context = 1);
    ALLOC(.address = 0x3000, .size = 8, .kind = GM_KIND_EXTERNAL, .context = 1);
    ALLOC(.address = 0x3000, .size = 8, .kind = GM_KIND_EXTERNAL, .context = 1);
    EVENT(GM_EVENT_CONTEXT_END, .address = 0xc1);
    EVENT(GM_EVENT_CONTEXT, .address = 0xc2, .context = 2);
    ALLOC(.address = 0x3000, .size = 8, .kind = GM_KIND_EXTERNAL, .context = 2);
    FREE(0x3000);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_EXTERNAL, 0, 0, 8, 2, 1, 1);
    assert_int_equal(leaked(scene, GM_LEAK_EXTERNAL), 0);
}

static void memory_of_unknown_context_goes_with_the_primary_context(void **state)
{
    struct scene *scene = *state;
    EVENT(GM_EVENT_CONTEXT, .address = 0xc1, .context = 1, .flags = GM_FLAG_PRIMARY);
    DEVICE_ALLOC(0x1000, 1);
    DEVICE_ALLOC(0x2000, 2, .device = 1);
    EVENT(GM_EVENT_CONTEXT_END, .address = 0xc1, .flags = GM_FLAG_PRIMARY);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_DEVICE, 0, 0, 1, 1, 0, 1);
    EXPECT(GM_KIND_DEVICE, 1, 2, 2, 1, 0, 0);
}

static void a_reset_without_a_known_context_is_of_the_device(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(0x1000, 1);
    EVENT(GM_EVENT_CONTEXT_END, .flags = GM_FLAG_PRIMARY);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_DEVICE, 0, 0, 1, 1, 0, 1);
}

static void the_last_release_ends_a_primary_context(void **state)
{
    struct scene *scene = *state;
    EVENT(GM_EVENT_CONTEXT, .address = 0xc1, .context = 1, .flags = GM_FLAG_PRIMARY);
    EVENT(GM_EVENT_CONTEXT_RETAIN, .address = 0xc1, .context = 1);
    EVENT(GM_EVENT_CONTEXT_RETAIN, .address = 0xc1, .context = 1);
    DEVICE_ALLOC(0x1000, 1, .context = 1);
    EVENT(GM_EVENT_CONTEXT_RELEASE, .address = 0xc1);
    DEVICE_ALLOC(0x2000, 2, .context = 1);
    EVENT(GM_EVENT_CONTEXT_RELEASE, .address = 0xc1);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_DEVICE, 0, 0, 3, 2, 0, 2);
}

static void a_context_in_use_unseen_survives_a_release(void **state)
{
    struct scene *scene = *state;
    EVENT(GM_EVENT_CONTEXT, .address = 0xc1, .context = 1, .flags = GM_FLAG_PRIMARY);
    DEVICE_ALLOC(0x1000, 1, .context = 1); /* so an unseen reference holds it */
    EVENT(GM_EVENT_CONTEXT_RETAIN, .address = 0xc1, .context = 1);
    EVENT(GM_EVENT_CONTEXT_RELEASE, .address = 0xc1);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_DEVICE, 0, 1, 1, 1, 0, 0);
}

static void a_failed_reset_takes_nothing(void **state)
{
    struct scene *scene = *state;
    EVENT(GM_EVENT_CONTEXT, .address = 0xc1, .context = 1, .flags = GM_FLAG_PRIMARY);
    EVENT(GM_EVENT_CONTEXT_RETAIN, .address = 0xc1, .context = 1);
    DEVICE_ALLOC(0x1000, 1, .context = 1);
    DEVICE_ALLOC(0x2000, 2, .context = 1);
    EVENT(GM_EVENT_CONTEXT_RELEASE, .address = 0xc1);
    UNDO(GM_EVENT_CONTEXT_RELEASE, 0xc1, 1);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_DEVICE, 0, 3, 3, 2, 0, 0);
    assert_int_equal(leaked(scene, GM_LEAK_IMPLICIT), 0);
    assert_int_equal(scene->analysis->replay.contexts.entries[1].references, 1);
}

static void a_handle_used_again_is_a_new_context(void **state)
{
    struct scene *scene = *state;
    EVENT(GM_EVENT_CONTEXT, .address = 0xc1, .context = 1);
    DEVICE_ALLOC(0x1000, 1, .context = 1);
    EVENT(GM_EVENT_CONTEXT_END, .address = 0xc1);
    EVENT(GM_EVENT_CONTEXT, .address = 0xc1, .context = 2);
    DEVICE_ALLOC(0x2000, 2, .context = 2);
    EVENT(GM_EVENT_CONTEXT_END, .address = 0xc1);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_DEVICE, 0, 0, 2, 2, 0, 2);
}

/* ---- virtual memory management --------------------------------------------------------------- */

#define CREATE(handle, bytes)                                                                      \
    EVENT(GM_EVENT_VMM_CREATE, .address = (handle), .size = (bytes), .kind = GM_KIND_VMM)
#define RELEASE(handle) EVENT(GM_EVENT_VMM_RELEASE, .address = (handle))
#define MAP(where, bytes, handle)                                                                  \
    EVENT(GM_EVENT_VMM_MAP, .address = (where), .size = (bytes), .aux = (handle))
#define UNMAP(where, bytes) EVENT(GM_EVENT_VMM_UNMAP, .address = (where), .size = (bytes))

static void physical_memory_lives_until_the_last_mapping(void **state)
{
    struct scene *scene = *state;
    CREATE(0x77, 64 * KIB);
    MAP(0x100000, 64 * KIB, 0x77);
    MAP(0x200000, 64 * KIB, 0x77);
    EVENT(GM_EVENT_DETAIL, .address = 0);
    RELEASE(0x77);
    UNMAP(0x100000, 64 * KIB);
    CREATE(0x78, 10);
    UNMAP(0x200000, 64 * KIB);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 10, 64 * KIB + 10, 2, 1, 0);
}

static void physical_memory_lives_until_the_last_handle(void **state)
{
    struct scene *scene = *state;
    CREATE(0x77, 100);
    EVENT(GM_EVENT_VMM_RETAIN, .address = 0x77);
    MAP(0x100000, 100, 0x77);
    UNMAP(0x100000, 100);
    RELEASE(0x77);
    CREATE(0x78, 1);
    RELEASE(0x77);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 1, 101, 2, 1, 0);
}

static void a_released_handle_can_be_retained_by_its_mapping(void **state)
{
    struct scene *scene = *state;
    CREATE(0x77, 100);
    MAP(0x100000, 100, 0x77);
    RELEASE(0x77);
    EVENT(GM_EVENT_VMM_RETAIN, .address = 0x77);
    UNMAP(0x100000, 100);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 100, 100, 1, 0, 0);
}

static void a_handle_value_used_again_is_other_memory(void **state)
{
    struct scene *scene = *state;
    CREATE(0x77, 100);
    MAP(0x100000, 100, 0x77);
    RELEASE(0x77);
    CREATE(0x77, 5); /* the old memory still lives by its mapping */
    UNMAP(0x100000, 100);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 5, 105, 2, 1, 0);
    assert_int_equal(scene->analysis->replay.ledger.lost_frees, 0);
}

static void one_unmap_can_end_several_mappings(void **state)
{
    struct scene *scene = *state;
    for (uint64_t i = 0; i < 4; i++) {
        CREATE(0x70 + i, 4096);
        MAP(0x100000 + i * 4096, 4096, 0x70 + i);
        RELEASE(0x70 + i);
    }
    UNMAP(0x101000, 8192);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 8192, 16384, 4, 2, 0);
}

static void a_part_of_a_mapping_keeps_the_memory(void **state)
{
    struct scene *scene = *state;
    CREATE(0x77, 3 * 4096);
    MAP(0x100000, 3 * 4096, 0x77);
    RELEASE(0x77);
    UNMAP(0x101000, 4096);
    UNMAP(0x100000, 4096);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 3 * 4096, 3 * 4096, 1, 0, 0);
}

static void a_failed_unmap_changes_nothing(void **state)
{
    struct scene *scene = *state;
    CREATE(0x77, 100);
    MAP(0x100000, 100, 0x77);
    RELEASE(0x77);
    UNMAP(0x100000, 100);
    UNDO(GM_EVENT_VMM_UNMAP, 0x100000, 1);
    UNMAP(0x100000, 100);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 0, 100, 1, 1, 0);
}

static void after_a_failed_unmap_the_handle_can_be_retained(void **state)
{
    struct scene *scene = *state;
    CREATE(0x77, 100);
    MAP(0x100000, 100, 0x77);
    RELEASE(0x77);
    UNMAP(0x100000, 100);
    UNDO(GM_EVENT_VMM_UNMAP, 0x100000, 1);
    EVENT(GM_EVENT_VMM_RETAIN, .address = 0x77);
    UNMAP(0x100000, 100);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 100, 100, 1, 0, 0);
}

static void a_failed_release_changes_nothing(void **state)
{
    struct scene *scene = *state;
    CREATE(0x77, 100);
    RELEASE(0x77);
    UNDO(GM_EVENT_VMM_RELEASE, 0x77, 1);
    CREATE(0x78, 1);
    RELEASE(0x77);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 1, 101, 2, 1, 0);
}

static void vmm_memory_on_the_host_is_the_hosts(void **state)
{
    struct scene *scene = *state;
    EVENT(GM_EVENT_VMM_CREATE, .address = 0x77, .size = 9, .kind = GM_KIND_HOST_VMM, .device = -1);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_HOST_VMM, -1, 9, 9, 1, 0, 0);
    assert_int_equal(counters->device[0].live, 0);
}

static void imported_memory_is_external(void **state)
{
    struct scene *scene = *state;
    EVENT(GM_EVENT_VMM_IMPORT, .address = 0x77);
    MAP(0x100000, 4096, 0x77); /* as much of it is known */
    MAP(0x200000, 1000, 0x77);
    EVENT(GM_EVENT_VMM_MAP, .address = 0x300000, .size = 4096, .aux = 0x77);
    EVENT(GM_EVENT_DETAIL, .address = 1904);
    MAP(0x400000, 1ull << 60, 0x77); /* makes no sense */
    RELEASE(0x77);
    UNMAP(0x100000, 4096);
    UNMAP(0x200000, 1000);
    UNMAP(0x300000, 4096);
    EVENT(GM_EVENT_VMM_IMPORT, .address = 0x78);
    MAP(0x100000, 500, 0x78);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_EXTERNAL, 0, 6500, 6500, 2, 0, 0);
    assert_int_equal(counters->device[1].live, 0);
}

static void an_import_of_ones_own_memory_keeps_it_and_is_none_of_its_own(void **state)
{
    struct scene *scene = *state;
    CREATE(0x77, 100);
    EVENT(GM_EVENT_VMM_IMPORT, .address = 0x78, .aux = 0x77);
    EVENT(GM_EVENT_VMM_IMPORT, .address = 0x79, .aux = 0x78);
    RELEASE(0x77);
    CREATE(0x77, 7); /* the handle of the first is free again */
    MAP(0x100000, 100, 0x78);
    RELEASE(0x78);
    RELEASE(0x79);
    EVENT(GM_EVENT_VMM_RETAIN, .address = 0x78);
    UNMAP(0x100000, 100);
    RELEASE(0x78);
    EVENT(GM_EVENT_VMM_IMPORT, .address = 0x79, .aux = 0x76); /* of which nothing is known */
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 7, 107, 2, 1, 0);
    EXPECT(GM_KIND_EXTERNAL, 0, 0, 0, 1, 0, 0);
    assert_int_equal(scene->analysis->replay.ledger.lost_frees, 0);
    assert_int_equal(scene->analysis->replay.ledger.unknown_frees, 0);
    assert_int_equal(scene->analysis->replay.ledger.malformed, 0);
}

static void tiles_keep_the_memory_of_a_sparse_array(void **state)
{
    struct scene *scene = *state;
    CREATE(0x77, 65536);
    CREATE(0x78, 100);
    MAP(GM_TILE | 0x500000001, 1, 0x77);
    MAP(GM_TILE | 0x500000002, 1, 0x77);
    MAP(GM_TILE | 0x600000001, 1, 0x78);
    RELEASE(0x77);
    RELEASE(0x78);
    UNMAP(GM_TILE | 0x500000002, 1);
    UNMAP(GM_TILE | 0x600000000, 1ull << 32);
    MAP(GM_TILES_OF(0xa000ull) | 1, 1, 0x77);
    UNMAP(GM_TILE | 0x500000001, 1);
    ALLOC(.address = 0xa000, .kind = GM_KIND_ARRAY);
    EVENT(GM_EVENT_FREE, .address = 0xa000, .kind = GM_KIND_ARRAY);
    UNDO(GM_EVENT_FREE, 0xa000, 1);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 65536, 65636, 2, 1, 0);
    EVENT(GM_EVENT_FREE, .address = 0xa000, .kind = GM_KIND_ARRAY);
    counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 0, 65636, 2, 2, 0);
}

static void tiles_go_with_the_context_of_their_array(void **state)
{
    struct scene *scene = *state;
    EVENT(GM_EVENT_CONTEXT, .address = 0xc1, .context = 1);
    ALLOC(.address = 0xa000, .kind = GM_KIND_ARRAY, .context = 1);
    ALLOC(.address = 0xb000, .kind = GM_KIND_ARRAY, .context = 2);
    CREATE(0x77, 65536);
    CREATE(0x78, 100);
    MAP(GM_TILES_OF(0xa000ull) | 1, 1, 0x77);
    MAP(GM_TILES_OF(0xb000ull) | 1, 1, 0x78);
    RELEASE(0x77);
    RELEASE(0x78);
    EVENT(GM_EVENT_CONTEXT_END, .address = 0xc1);
    UNDO(GM_EVENT_CONTEXT_END, 0xc1, 1);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 65636, 65636, 2, 0, 0);
    EVENT(GM_EVENT_CONTEXT_END, .address = 0xc1);
    counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 100, 65636, 2, 1, 0);
    EXPECT(GM_KIND_ARRAY, 0, 0, 0, 2, 0, 1);
}

static void address_reservations_hold_no_bytes(void **state)
{
    struct scene *scene = *state;
    EVENT(GM_EVENT_VMM_RESERVE, .address = 0x100000, .size = 1u << 30);
    EVENT(GM_EVENT_VMM_RESERVE, .address = 0x80000000, .size = 4096);
    EVENT(GM_EVENT_VMM_UNRESERVE, .address = 0x100000, .size = 1u << 30);
    EVENT(GM_EVENT_VMM_UNRESERVE, .address = 0x80000000, .size = 4096);
    UNDO(GM_EVENT_VMM_UNRESERVE, 0x80000000, 1);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 0, 0, 0, 0, 0);
    assert_int_equal(scene->analysis->replay.vmm.reserved, 4096);
    assert_int_equal(scene->analysis->replay.vmm.reserved_peak, (1u << 30) + 4096);
    assert_int_equal(scene->analysis->leaks.count, 0);
}

static void a_multicast_binding_keeps_the_memory(void **state)
{
    struct scene *scene = *state;
    CREATE(0x77, 100);
    CREATE(0x78, 10);
    EVENT(GM_EVENT_MULTICAST_CREATE, .address = 0x99, .size = 200);
    EVENT(GM_EVENT_MULTICAST_BIND, .address = 0x99, .aux = 0x77, .size = 100);
    MAP(0x100000, 10, 0x78);
    EVENT(GM_EVENT_MULTICAST_BIND, .address = 0x99, .aux = 0x100000, .size = 10);
    RELEASE(0x77);
    RELEASE(0x78);
    UNMAP(0x100000, 10);
    CREATE(0x79, 1);
    EVENT(GM_EVENT_MULTICAST_UNBIND, .address = 0x99, .size = 100);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 11, 111, 3, 1, 0);
}

/* One of several processes that share a multicast object has imported it. */
static void a_binding_to_an_import_is_no_mistake(void **state)
{
    struct scene *scene = *state;
    CREATE(0x77, 100);
    EVENT(GM_EVENT_VMM_IMPORT, .address = 0x99);
    EVENT(GM_EVENT_MULTICAST_BIND, .address = 0x99, .aux = 0x77, .size = 100);
    EVENT(GM_EVENT_MULTICAST_UNBIND, .address = 0x99, .size = 100);
    RELEASE(0x77);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 0, 100, 1, 1, 0);
}

/* Stream-ordered memory may be bound by its address. */
static void a_multicast_binding_of_pool_memory_is_no_mistake(void **state)
{
    struct scene *scene = *state;
    EVENT(GM_EVENT_MULTICAST_CREATE, .address = 0x99, .size = 200);
    EVENT(GM_EVENT_ALLOC, .address = 0x5000, .size = 100, .kind = GM_KIND_DEVICE,
          .flags = GM_FLAG_POOL | GM_FLAG_ASYNC);
    EVENT(GM_EVENT_MULTICAST_BIND, .address = 0x99, .aux = 0x5000, .size = 100);
    EVENT(GM_EVENT_FREE, .address = 0x5000, .kind = GM_KIND_DEVICE);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_DEVICE, 0, 0, 100, 1, 1, 0);
}

/* Does not affect memory that is bound at another place, or of another device there. */
static void an_unbinding_of_pool_memory_ends_no_other_binding(void **state)
{
    struct scene *scene = *state;
    EVENT(GM_EVENT_MULTICAST_CREATE, .address = 0x99, .size = 400);
    CREATE(0x77, 100);
    EVENT(GM_EVENT_MULTICAST_BIND, .address = 0x99, .aux = 0x77, .size = 100);
    RELEASE(0x77);
    EVENT(GM_EVENT_ALLOC, .address = 0x5000, .size = 100, .kind = GM_KIND_DEVICE,
          .flags = GM_FLAG_POOL | GM_FLAG_ASYNC);
    EVENT(GM_EVENT_MULTICAST_BIND, .address = 0x99, .aux = 0x5000, .size = 100);
    EVENT(GM_EVENT_DETAIL, .address = 100);
    EVENT(GM_EVENT_MULTICAST_UNBIND, .address = 0x99, .aux = 100, .size = 100);
    EVENT(GM_EVENT_MULTICAST_UNBIND, .address = 0x99, .size = 100, .device = 1);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 100, 100, 1, 0, 0);
}

static void the_end_of_a_multicast_object_unbinds(void **state)
{
    struct scene *scene = *state;
    CREATE(0x77, 100);
    EVENT(GM_EVENT_MULTICAST_CREATE, .address = 0x99, .size = 200);
    EVENT(GM_EVENT_MULTICAST_BIND, .address = 0x99, .aux = 0x77, .size = 100);
    RELEASE(0x77);
    RELEASE(0x99);
    UNDO(GM_EVENT_VMM_RELEASE, 0x99, 1);
    CREATE(0x78, 1);
    RELEASE(0x99);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_VMM, 0, 1, 101, 2, 1, 0);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

#define NODE(graph, where, bytes)                                                                  \
    EVENT(GM_EVENT_GRAPH_ALLOC_NODE, .aux = (graph), .address = (where), .size = (bytes))
#define FREE_NODE(graph, where) EVENT(GM_EVENT_GRAPH_FREE_NODE, .aux = (graph), .address = (where))
#define INSTANTIATE(exec, graph, options)                                                          \
    EVENT(GM_EVENT_GRAPH_INSTANTIATE, .address = (exec), .aux = (graph), .extra = (options))
#define LAUNCH(exec) EVENT(GM_EVENT_GRAPH_LAUNCH, .address = (exec))

static void a_node_lives_from_its_launch(void **state)
{
    struct scene *scene = *state;
    NODE(0xa, 0x1000, 100);
    INSTANTIATE(0xe, 0xa, 0);
    LAUNCH(0xe);
    FREE(0x1000); /* an address of a graph can be freed like any other */
    LAUNCH(0xe);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_GRAPH, 0, 100, 100, 2, 1, 0);
}

static void a_node_that_is_not_launched_never_lives(void **state)
{
    struct scene *scene = *state;
    NODE(0xa, 0x1000, 100);
    INSTANTIATE(0xe, 0xa, 0);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_GRAPH, 0, 0, 0, 0, 0, 0);
}

static void a_free_node_ends_the_life_in_the_same_launch(void **state)
{
    struct scene *scene = *state;
    NODE(0xa, 0x1000, 100);
    FREE_NODE(0xa, 0x1000);
    NODE(0xa, 0x2000, 30);
    FREE_NODE(0xa, 0x2000);
    INSTANTIATE(0xe, 0xa, 0);
    LAUNCH(0xe);
    LAUNCH(0xe);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_GRAPH, 0, 0, 100, 4, 4, 0);
}

static void a_free_node_can_end_what_another_graph_allocated(void **state)
{
    struct scene *scene = *state;
    NODE(0xa, 0x1000, 100);
    FREE_NODE(0xb, 0x1000);
    INSTANTIATE(0xe, 0xa, 0);
    INSTANTIATE(0xf, 0xb, 0);
    LAUNCH(0xe);
    LAUNCH(0xf);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_GRAPH, 0, 0, 100, 1, 1, 0);
}

static void auto_free_frees_before_the_launch(void **state)
{
    struct scene *scene = *state;
    NODE(0xa, 0x1000, 100);
    INSTANTIATE(0xe, 0xa, 1);
    LAUNCH(0xe);
    LAUNCH(0xe);
    LAUNCH(0xe);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_GRAPH, 0, 100, 100, 3, 2, 0);
    assert_int_equal(scene->analysis->replay.ledger.lost_frees, 0);
}

static void an_executable_is_what_the_graph_was(void **state)
{
    struct scene *scene = *state;
    NODE(0xa, 0x1000, 100);
    INSTANTIATE(0xe, 0xa, 0);
    NODE(0xa, 0x2000, 50);
    EVENT(GM_EVENT_GRAPH_DESTROY, .address = 0xa);
    LAUNCH(0xe);
    EVENT(GM_EVENT_GRAPH_EXEC_DESTROY, .address = 0xe); /* ends no life */
    LAUNCH(0xe);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_GRAPH, 0, 100, 100, 1, 0, 0);
}

static void what_was_not_destroyed_after_all_can_be_launched(void **state)
{
    struct scene *scene = *state;
    NODE(0xa, 0x1000, 100);
    EVENT(GM_EVENT_GRAPH_DESTROY, .address = 0xa);
    UNDO(GM_EVENT_GRAPH_DESTROY, 0xa, 1);
    INSTANTIATE(0xe, 0xa, 1);
    EVENT(GM_EVENT_GRAPH_EXEC_DESTROY, .address = 0xe);
    UNDO(GM_EVENT_GRAPH_EXEC_DESTROY, 0xe, 1);
    LAUNCH(0xe);
    EVENT(GM_EVENT_GRAPH_EXEC_DESTROY, .address = 0xe);
    NODE(0xb, 0x2000,
         10); /* another executable has the handle before the first is known to be gone */
    INSTANTIATE(0xe, 0xb, 0);
    UNDO(GM_EVENT_GRAPH_EXEC_DESTROY, 0xe, 1);
    LAUNCH(0xe);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_GRAPH, 0, 110, 110, 2, 0, 0);
}

static void captures_children_and_clones_bring_their_nodes(void **state)
{
    struct scene *scene = *state;
    NODE(0x8000000000000001, 0x1000, 1); /* under the token of a capture */
    EVENT(GM_EVENT_ALLOC, .address = 0x2000, .size = 2, .kind = GM_KIND_DEVICE,
          .flags = GM_FLAG_CAPTURED, .aux = 0x8000000000000001);
    EVENT(GM_EVENT_GRAPH_CHILD, .address = 0xa, .aux = 0x8000000000000001);
    EVENT(GM_EVENT_GRAPH_CLONE, .address = 0xb, .aux = 0xa);
    NODE(0xa, 0x3000, 4); /* after the copy was made */
    NODE(0xc, 0x4000, 8);
    EVENT(GM_EVENT_GRAPH_CHILD, .address = 0xb, .aux = 0xc);
    INSTANTIATE(0xe, 0xb, 0);
    LAUNCH(0xe);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_GRAPH, 0, 11, 11, 3, 0, 0);
    EXPECT(GM_KIND_DEVICE, 0, 0, 0, 0, 0, 0);
}

static void graph_memory_outlives_a_context(void **state)
{
    struct scene *scene = *state;
    EVENT(GM_EVENT_CONTEXT, .address = 0xc1, .context = 1);
    NODE(0xa, 0x1000, 100);
    INSTANTIATE(0xe, 0xa, 0);
    EVENT(GM_EVENT_GRAPH_LAUNCH, .address = 0xe, .context = 1);
    EVENT(GM_EVENT_CONTEXT_END, .address = 0xc1);
    struct gm_counters *counters = replay(scene);
    EXPECT(GM_KIND_GRAPH, 0, 100, 100, 1, 0, 0);
}

static void a_graph_inside_itself_cannot_eat_all_memory(void **state)
{
    struct scene *scene = *state;
    NODE(0xa, 0x1000, 1);
    for (int i = 0; i < 64; i++)
        EVENT(GM_EVENT_GRAPH_CHILD, .address = 0xa, .aux = 0xa);
    replay_gaps(scene);
    assert_true(scene->analysis->replay.graphs.nodes_refused > 0 ||
                scene->analysis->trace->over_limit);
}

/* ---- leaks ----------------------------------------------------------------------------------- */

static void a_free_after_the_driver_is_gone_is_late(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(0x1000, 100);
    DEVICE_ALLOC(0x2000, 10);
    DEVICE_ALLOC(0x3000, 1);
    EVENT(GM_EVENT_FREE, .address = 0x1000, .flags = GM_FLAG_LATE);
    UNDO(GM_EVENT_FREE, 0x1000, 4);
    EVENT(GM_EVENT_FREE, .address = 0x2000, .flags = GM_FLAG_LATE); /* late, but it worked */
    EVENT(GM_EVENT_FREE, .address = 0x3000, .flags = GM_FLAG_LATE);
    UNDO(GM_EVENT_FREE, 0x3000, 1); /* failed for another reason */
    replay(scene);
    assert_int_equal(leaked(scene, GM_LEAK_LATE), 100);
    assert_int_equal(leaked(scene, GM_LEAK), 1);
}

static void leaks_are_told_apart_by_stack_kind_and_device(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(0x1000, 1, .stack = 5);
    DEVICE_ALLOC(0x2000, 2, .stack = 5);
    DEVICE_ALLOC(0x3000, 50, .stack = 6);
    DEVICE_ALLOC(0x4000, 20, .stack = 5, .device = 1);
    ALLOC(.address = 0x5000, .size = 30, .kind = GM_KIND_MANAGED, .stack = 5);
    replay(scene);
    const struct gm_sites *leaks = &scene->analysis->leaks;
    static const uint64_t sizes[] = {50, 30, 20, 3};
    assert_int_equal(leaks->count, 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(leaks->entries[i].bytes, sizes[i]);
    assert_int_equal(leaks->entries[3].count, 2);
}

static void memory_of_vendors_libraries_is_external(void **state)
{
    struct scene *scene = *state;
    struct writer *writer = &scene->writer;
    uint16_t program = writer_module(writer, "/opt/app/program");
    uint16_t blas = writer_module(writer, "/usr/lib/libcublas.so.12.4.5");
    uint16_t runtime = writer_module(writer, "/usr/lib/libcudart.so.12");
    uint16_t own = writer_module(writer, "/opt/app/libcublas_wrapper.so");
    uint32_t main_node = writer_node(writer, 0, program, 0x100, GM_NODE_NATIVE);
    uint32_t in_blas = writer_node(writer, main_node, blas, 0x200, GM_NODE_NATIVE);
    uint32_t through_runtime = writer_node(writer, in_blas, runtime, 0x300, GM_NODE_NATIVE);
    uint32_t in_own = writer_node(writer, in_blas, own, 0x400, GM_NODE_NATIVE);
    DEVICE_ALLOC(0x1000, 1, .stack = in_blas);
    DEVICE_ALLOC(0x2000, 2, .stack = through_runtime);
    DEVICE_ALLOC(0x3000, 4, .stack = main_node);
    DEVICE_ALLOC(0x4000, 8, .stack = in_own);
    DEVICE_ALLOC(0x5000, 16); /* still a leak without a stack */
    replay(scene);
    assert_int_equal(leaked(scene, GM_LEAK_EXTERNAL), 3);
    assert_int_equal(leaked(scene, GM_LEAK), 28);
}

/* Memory that PyTorch's allocator keeps, and memory that only looks like it. */
static void allocate_for_caches(struct scene *scene)
{
    struct writer *writer = &scene->writer;
    uint16_t program = writer_module(writer, "/opt/app/libc10_cuda_helper.so");
    uint16_t c10 = writer_module(writer, "/venv/torch/lib/libc10_cuda.so");
    uint16_t torch = writer_module(writer, "/venv/torch/lib/libtorch_cuda.so");
    uint16_t cupy = writer_module(writer, "/v/site-packages/cupy/cuda/memory.so");
    uint16_t cumem = writer_module(writer, "/v/site-packages/vllm/cumem_allocator.abi3.so");
    uint32_t own = writer_node(writer, 0, program, 0x100, GM_NODE_NATIVE);
    uint32_t in_cumem = writer_node(writer, own, cumem, 0x600, GM_NODE_NATIVE);
    uint32_t in_c10 = writer_node(writer, own, c10, 0x200, GM_NODE_NATIVE);
    uint32_t in_torch = writer_node(writer, own, torch, 0x300, GM_NODE_NATIVE);
    uint32_t in_cupy = writer_node(writer, own, cupy, 0x400, GM_NODE_NATIVE);
    uint32_t behind_c10 = writer_node(writer, in_c10, program, 0x500, GM_NODE_NATIVE);
    DEVICE_ALLOC(0x10000, 1, .stack = in_c10);
    DEVICE_ALLOC(0x20000, 2, .stack = in_torch); /* past the allocator: a leak */
    ALLOC(.address = 0x30000, .size = 4, .kind = GM_KIND_PINNED, .stack = in_torch);
    DEVICE_ALLOC(0x40000, 8, .stack = in_cupy);
    DEVICE_ALLOC(0x50000, 16, .stack = own);
    DEVICE_ALLOC(0x60000, 32, .stack = behind_c10); /* the program's own plugged-in allocator */
    DEVICE_ALLOC(0x70000, 64, .stack = behind_c10); /* the same, with a block in it */
    EVENT(GM_EVENT_BLOCK_ALLOC, .address = 0x70010, .size = 16, .aux = 16);
    EVENT(GM_EVENT_BLOCK_ALLOC, .address = 0x60000, .size = 16, .aux = 32);
    EVENT(GM_EVENT_BLOCK_FREE, .address = 0x60000, .size = 16, .aux = 16);
    DEVICE_ALLOC(0x80000, 128, .stack = in_cumem);
}

static void what_frameworks_cache_is_no_leak(void **state)
{
    struct scene *scene = *state;
    allocate_for_caches(scene);
    replay(scene);
    assert_int_equal(leaked(scene, GM_LEAK_CACHED), 1 + 4 + 8 + 64 + 128);
    assert_int_equal(leaked(scene, GM_LEAK), 2 + 16 + 32);
}

static void nothing_is_cached_at_an_end_that_is_not_normal(void **state)
{
    struct scene *scene = *state;
    char error[256];
    allocate_for_caches(scene);
    scene->writer.header.end = GM_END_NONE;
    writer_finish(&scene->writer);
    scene->trace =
        gm_trace_open_memory(scene->writer.bytes, scene->writer.size, error, sizeof(error));
    scene->analysis = gm_analyse(scene->trace);
    assert_int_equal(leaked(scene, GM_LEAK_CACHED), 0);
    assert_int_equal(leaked(scene, GM_LEAK), 0);
    assert_int_equal(leaked(scene, GM_LEAK_LIVE), 255);
}

/* ---- snapshots ------------------------------------------------------------------------------- */

static void the_owners_at_the_peak_are_known(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(0x1000, 10, .stack = 1);
    DEVICE_ALLOC(0x2000, 100, .stack = 2);
    FREE(0x1000);
    DEVICE_ALLOC(0x3000, 5, .stack = 3); /* less than before: no new peak */
    DEVICE_ALLOC(0x4000, 20, .stack = 2);
    FREE(0x2000);
    DEVICE_ALLOC(0x5000, 70, .stack = 4, .device = 1);
    ALLOC(.address = 0x6000, .size = 33, .kind = GM_KIND_PINNED, .stack = 7);
    FREE(0x6000);
    struct gm_counters *counters = replay(scene);
    const struct gm_snapshot *peak = gm_analysis_peak(scene->analysis, 0);
    assert_int_equal(counters->device[1].peak.bytes, 125);
    assert_int_equal(peak->owners.bytes, 125);
    assert_int_equal(peak->owners.count, 2);
    assert_int_equal(peak->owners.entries[0].stack, 2);
    assert_int_equal(peak->owners.entries[0].bytes, 120);
    assert_int_equal(peak->owners.entries[1].stack, 3);
    assert_int_equal(gm_analysis_peak(scene->analysis, 1)->owners.bytes, 70);
    assert_null(gm_analysis_peak(scene->analysis, 2));
    assert_int_equal(scene->analysis->pinned_peak.owners.entries[0].stack, 7);
}

static void a_peak_inside_a_launch_is_caught_there(void **state)
{
    struct scene *scene = *state;
    NODE(0xa, 0x1000, 100);
    FREE_NODE(0xa, 0x1000);
    NODE(0xa, 0x2000, 30);
    INSTANTIATE(0xe, 0xa, 0);
    LAUNCH(0xe);
    replay(scene);
    const struct gm_snapshot *peak = gm_analysis_peak(scene->analysis, 0);
    assert_int_equal(peak->owners.bytes, 100);
}

static void what_lived_at_a_refusal_is_known(void **state)
{
    struct scene *scene = *state;
    for (uint64_t i = 0; i < 8; i++)
        DEVICE_ALLOC(0x100000 + i * 0x1000, 0x1000, .stack = 1 + (uint32_t)(i & 1));
    for (uint64_t i = 1; i < 7; i += 2)
        FREE(0x100000 + i * 0x1000);
    EVENT(GM_EVENT_ALLOC_FAILED, .size = 0x2000, .extra = 2, .kind = GM_KIND_DEVICE, .stack = 9);
    FREE(0x100000);
    replay(scene);
    const struct gm_failure *failure = &scene->analysis->failures[0];
    assert_int_equal(scene->analysis->failure_count, 1);
    assert_int_equal(failure->size, 0x2000);
    assert_int_equal(failure->snapshot.owners.bytes, 0x5000);
    assert_int_equal(failure->snapshot.holes.count, 3);
    assert_int_equal(failure->snapshot.holes.free, 0x3000);
    assert_int_equal(failure->snapshot.holes.largest, 0x1000);
    assert_int_equal(gm_holes_fragmentation(&failure->snapshot.holes), 667);
}

static void refusals_at_one_place_are_one(void **state)
{
    struct scene *scene = *state;
    for (uint32_t i = 0; i < 100; i++) {
        DEVICE_ALLOC(0x1000 * (i + 1), 10);
        EVENT(GM_EVENT_ALLOC_FAILED, .size = i, .extra = 2, .kind = GM_KIND_DEVICE,
              .stack = 1 + i % 2);
    }
    replay(scene);
    assert_int_equal(scene->analysis->failure_count, 2);
    assert_int_equal(scene->analysis->failures[1].count, 50);
    assert_int_equal(scene->analysis->failures[1].size, 99);
    assert_int_equal(scene->analysis->failures[1].snapshot.owners.bytes, 1000);
    assert_int_equal(scene->analysis->failures[0].snapshot.owners.bytes, 990);
}

/* ---- transfers ------------------------------------------------------------------------------- */

#define COPY(to, from, bytes, way)                                                                 \
    EVENT(GM_EVENT_COPY, .address = (to), .aux = (from), .size = (bytes), .kind = (way))

static void host_memory_is_pageable_unless_pinned_then(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(0x100000, 0x10000);
    COPY(0x100000, 0x900100, 50000, GM_COPY_HOST_TO_DEVICE);
    ALLOC(.address = 0x900000, .size = 0x1000, .kind = GM_KIND_PINNED);
    COPY(0x100000, 0x900100, 5000, GM_COPY_HOST_TO_DEVICE); /* inside the pinned block */
    COPY(0x900fff, 0x100000, 500, GM_COPY_DEVICE_TO_HOST);
    COPY(0x901000, 0x100000, 50, GM_COPY_DEVICE_TO_HOST); /* just after it */
    FREE(0x900000);
    COPY(0x100000, 0x900100, 5, GM_COPY_HOST_TO_DEVICE);
    replay(scene);
    const struct gm_transfer *total = scene->analysis->transfers.total;
    assert_int_equal(total[GM_COPY_HOST_TO_DEVICE].bytes, 55005);
    assert_int_equal(total[GM_COPY_HOST_TO_DEVICE].pageable_bytes, 50005);
    assert_int_equal(total[GM_COPY_HOST_TO_DEVICE].tiny, 1);
    assert_int_equal(total[GM_COPY_DEVICE_TO_HOST].pageable_bytes, 50);
}

static void addresses_tell_the_direction_where_the_call_does_not(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(0x10000000, 0x10000);
    EVENT(GM_EVENT_VMM_MAP, .address = 0x50000000, .size = 0x1000, .aux = 0x77);
    COPY(0x10000010, 0x7000, 1, GM_COPY_UNKNOWN);
    COPY(0x7000, 0x1000ffff, 10, GM_COPY_UNKNOWN);
    COPY(0x10000000, 0x50000100, 100, GM_COPY_UNKNOWN);
    COPY(0x7000, 0x8000, 1000, GM_COPY_UNKNOWN);
    EVENT(GM_EVENT_SET, .address = 0x10000000, .size = 10000);
    writer_finish(&scene->writer);
    char error[256];
    scene->trace =
        gm_trace_open_memory(scene->writer.bytes, scene->writer.size, error, sizeof(error));
    scene->analysis = gm_analyse(scene->trace);
    const struct gm_transfer *total = scene->analysis->transfers.total;
    assert_int_equal(total[GM_COPY_HOST_TO_DEVICE].bytes, 1);
    assert_int_equal(total[GM_COPY_DEVICE_TO_HOST].bytes, 10);
    assert_int_equal(total[GM_COPY_DEVICE_TO_DEVICE].bytes, 100);
    assert_int_equal(total[GM_COPY_HOST_TO_HOST].bytes, 1000);
    assert_int_equal(total[GM_DIRECTION_SET].bytes, 10000);
}

/* ---- blocks of a framework ------------------------------------------------------------------- */

static void blocks_have_totals_of_their_own(void **state)
{
    struct scene *scene = *state;
    DEVICE_ALLOC(0x100000, 1000);
    EVENT(GM_EVENT_BLOCK_ALLOC, .address = 0x100000, .size = 300, .aux = 300, .stack = 1);
    EVENT(GM_EVENT_DETAIL, .address = 1000);
    EVENT(GM_EVENT_BLOCK_ALLOC, .address = 0x100200, .size = 200, .aux = 500, .stack = 2);
    EVENT(GM_EVENT_DETAIL, .address = 1000);
    EVENT(GM_EVENT_BLOCK_FREE, .address = 0x100000, .size = 300, .aux = 200);
    EVENT(GM_EVENT_DETAIL, .address = 1000);
    struct gm_counters *counters = replay(scene);
    const struct gm_block_totals *totals = &scene->analysis->blocks.device[1];
    assert_int_equal(totals->live, 200);
    assert_int_equal(totals->peak.bytes, 500);
    assert_int_equal(totals->reserved_peak.bytes, 1000);
    EXPECT(GM_KIND_DEVICE, 0, 1000, 1000, 1, 0, 0);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        SCENE_TEST(an_allocation_lives_until_its_free),
        SCENE_TEST(any_free_function_ends_any_life),
        SCENE_TEST(an_address_can_live_again),
        SCENE_TEST(a_free_of_null_or_of_the_unknown_is_not_counted),
        SCENE_TEST(a_free_that_fails_is_no_free),
        SCENE_TEST(a_failed_free_undoes_that_of_its_own_thread),
        SCENE_TEST(an_undo_takes_back_only_what_it_names),
        SCENE_TEST(an_address_allocated_twice_was_freed_unseen),
        SCENE_TEST(memory_opened_twice_is_closed_twice),
        SCENE_TEST(refused_calls_are_counted_by_reason),
        SCENE_TEST(the_peak_of_a_device_is_of_all_its_kinds),
        SCENE_TEST(an_unknown_device_is_a_device),
        SCENE_TEST(a_context_takes_its_memory_with_it),
        SCENE_TEST(stream_ordered_and_vmm_memory_outlive_a_context),
        SCENE_TEST(what_is_opened_of_anothers_memory_ends_with_its_context),
        SCENE_TEST(memory_of_unknown_context_goes_with_the_primary_context),
        SCENE_TEST(a_reset_without_a_known_context_is_of_the_device),
        SCENE_TEST(the_last_release_ends_a_primary_context),
        SCENE_TEST(a_context_in_use_unseen_survives_a_release),
        SCENE_TEST(a_failed_reset_takes_nothing),
        SCENE_TEST(a_handle_used_again_is_a_new_context),
        SCENE_TEST(physical_memory_lives_until_the_last_mapping),
        SCENE_TEST(physical_memory_lives_until_the_last_handle),
        SCENE_TEST(a_released_handle_can_be_retained_by_its_mapping),
        SCENE_TEST(a_handle_value_used_again_is_other_memory),
        SCENE_TEST(one_unmap_can_end_several_mappings),
        SCENE_TEST(a_part_of_a_mapping_keeps_the_memory),
        SCENE_TEST(a_failed_unmap_changes_nothing),
        SCENE_TEST(after_a_failed_unmap_the_handle_can_be_retained),
        SCENE_TEST(a_failed_release_changes_nothing),
        SCENE_TEST(vmm_memory_on_the_host_is_the_hosts),
        SCENE_TEST(imported_memory_is_external),
        SCENE_TEST(an_import_of_ones_own_memory_keeps_it_and_is_none_of_its_own),
        SCENE_TEST(tiles_keep_the_memory_of_a_sparse_array),
        SCENE_TEST(tiles_go_with_the_context_of_their_array),
        SCENE_TEST(address_reservations_hold_no_bytes),
        SCENE_TEST(a_multicast_binding_keeps_the_memory),
        SCENE_TEST(a_binding_to_an_import_is_no_mistake),
        SCENE_TEST(a_multicast_binding_of_pool_memory_is_no_mistake),
        SCENE_TEST(an_unbinding_of_pool_memory_ends_no_other_binding),
        SCENE_TEST(the_end_of_a_multicast_object_unbinds),
        SCENE_TEST(a_node_lives_from_its_launch),
        SCENE_TEST(a_node_that_is_not_launched_never_lives),
        SCENE_TEST(a_free_node_ends_the_life_in_the_same_launch),
        SCENE_TEST(a_free_node_can_end_what_another_graph_allocated),
        SCENE_TEST(auto_free_frees_before_the_launch),
        SCENE_TEST(an_executable_is_what_the_graph_was),
        SCENE_TEST(what_was_not_destroyed_after_all_can_be_launched),
        SCENE_TEST(captures_children_and_clones_bring_their_nodes),
        SCENE_TEST(graph_memory_outlives_a_context),
        SCENE_TEST(a_graph_inside_itself_cannot_eat_all_memory),
        SCENE_TEST(a_free_after_the_driver_is_gone_is_late),
        SCENE_TEST(leaks_are_told_apart_by_stack_kind_and_device),
        SCENE_TEST(memory_of_vendors_libraries_is_external),
        SCENE_TEST(what_frameworks_cache_is_no_leak),
        SCENE_TEST(nothing_is_cached_at_an_end_that_is_not_normal),
        SCENE_TEST(the_owners_at_the_peak_are_known),
        SCENE_TEST(a_peak_inside_a_launch_is_caught_there),
        SCENE_TEST(what_lived_at_a_refusal_is_known),
        SCENE_TEST(refusals_at_one_place_are_one),
        SCENE_TEST(host_memory_is_pageable_unless_pinned_then),
        SCENE_TEST(addresses_tell_the_direction_where_the_call_does_not),
        SCENE_TEST(blocks_have_totals_of_their_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
