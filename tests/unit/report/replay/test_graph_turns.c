/*
 * A launch that leaves nothing behind is booked at once: it must come to what its nodes come to one
 * by one. Random programs are written twice. In one an executable is instantiated anew before each
 * launch, so that each is its first, which is booked node by node; in the other something without
 * meaning stands there.
 */
#include "trace_scene.h"

enum { PROGRAMS = 200, STEPS = 300, GRAPHS = 5, NODES = 12, DEVICES = 2 };

static uint64_t seed;

static uint64_t draw(uint64_t below)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return seed % below;
}

static uint64_t address_of(uint64_t graph, uint64_t node)
{
    return 0x10000 * (graph + 1) + 0x100 * node;
}

/* Frees for most of its nodes, in any order; of the last graph not for all of them. */
static void write_graph(struct scene *scene, uint64_t graph)
{
    uint64_t count = 1 + draw(NODES), alive = 0;
    for (uint64_t made = 0; made < count || alive;) {
        uint64_t node = draw(count);
        bool is_there = alive >> node & 1;
        if (!is_there && made < count) {
            made++;
            EVENT(GM_EVENT_GRAPH_ALLOC_NODE, .aux = graph, .address = address_of(graph, node),
                  .size = 1 + draw(1000), .stack = (uint32_t)draw(3),
                  .device = (int8_t)(graph == 3 ? draw(DEVICES) : graph % DEVICES));
            alive |= UINT64_C(1) << node;
        } else if (is_there) {
            alive &= ~(UINT64_C(1) << node);
            if (graph < GRAPHS - 1 || draw(2))
                EVENT(GM_EVENT_GRAPH_FREE_NODE, .aux = graph, .address = address_of(graph, node));
        }
    }
}

static void launch(struct scene *scene, uint64_t graph, bool anew)
{
    EVENT(anew ? GM_EVENT_GRAPH_INSTANTIATE : GM_EVENT_HINT, .address = 100 + graph, .aux = graph,
          .extra = graph & 1);
    EVENT(GM_EVENT_GRAPH_LAUNCH, .address = 100 + graph, .extra = (uint32_t)draw(100));
}

/* What may stand between launches, now and then in their way. */
static void do_something(struct scene *scene)
{
    uint64_t where = draw(8) ? 0x1000 + 0x10 * draw(8) : address_of(draw(GRAPHS), draw(NODES));
    switch (draw(9)) {
    case 0:
    case 1:
        DEVICE_ALLOC(where, 1 + draw(2000), .stack = (uint32_t)draw(3),
                     .device = (int8_t)draw(DEVICES));
        break;
    case 2:
    case 3:
        FREE(where);
        break;
    case 4:
        ON_LANE(1, GM_EVENT_FREE, .address = where);
        break;
    case 5:
        EVENT(draw(2) ? GM_EVENT_RANGE_PUSH : GM_EVENT_RANGE_POP, .aux = 2);
        break;
    case 6:
        EVENT(GM_EVENT_MARK, .aux = 2);
        break;
    case 7:
        for (uint64_t node = 0; node < NODES; node++)
            FREE(address_of(GRAPHS - 1, node)); /* what it left */
        break;
    default:
        EVENT(GM_EVENT_ALLOC_FAILED, .kind = GM_KIND_GRAPH, .size = 1, .extra = 2,
              .stack = (uint32_t)draw(3), .device = (int8_t)draw(DEVICES));
    }
}

static struct scene *play(uint64_t program, bool anew)
{
    void *state;
    assert_int_equal(scene_begin(&state), 0);
    struct scene *scene = state;
    seed = 88172645463325252u + program;
    for (uint64_t graph = 0; graph < GRAPHS; graph++) {
        write_graph(scene, graph);
        EVENT(GM_EVENT_GRAPH_INSTANTIATE, .address = 100 + graph, .aux = graph, .extra = graph & 1);
    }
    uint64_t rarely = 2 + draw(20);
    for (unsigned step = 0; step < STEPS; step++)
        if (draw(rarely))
            launch(scene, draw(GRAPHS), anew);
        else
            do_something(scene);
    scene_analyse(scene);
    return scene;
}

static void assert_same_phases(const struct gm_phases *a, const struct gm_phases *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        assert_int_equal(a->entries[i].count, b->entries[i].count);
        assert_int_equal(a->entries[i].memory_count, b->entries[i].memory_count);
        if (a->entries[i].memory_count)
            assert_memory_equal(a->entries[i].memory, b->entries[i].memory,
                                a->entries[i].memory_count * sizeof(a->entries[i].memory[0]));
    }
}

static void assert_same_activity(const struct gm_activity *a, const struct gm_activity *b)
{
    assert_int_equal(a->count, b->count);
    for (size_t i = 0; i < a->count; i++) {
        const struct gm_active_site *one = &a->sites[i], *other = &b->sites[i];
        assert_int_equal(one->stack, other->stack);
        assert_int_equal(one->kind, other->kind);
        assert_int_equal(one->device, other->device);
        assert_int_equal(one->allocs, other->allocs);
        assert_int_equal(one->allocated, other->allocated);
        assert_int_equal(one->live, other->live);
        assert_int_equal(one->peak, other->peak);
        assert_int_equal(one->short_lived, other->short_lived);
        assert_int_equal(one->short_bytes, other->short_bytes);
    }
    assert_int_equal(a->growth.found_count, b->growth.found_count);
}

static void assert_same_failures(const struct gm_analysis *a, const struct gm_analysis *b)
{
    assert_int_equal(a->failure_count, b->failure_count);
    for (size_t i = 0; i < a->failure_count; i++) {
        assert_int_equal(a->failures[i].served, b->failures[i].served);
        assert_int_equal(a->failures[i].survived, b->failures[i].survived);
        assert_int_equal(a->failures[i].snapshot.step, b->failures[i].snapshot.step);
        assert_int_equal(a->failures[i].snapshot.owners.bytes,
                         b->failures[i].snapshot.owners.bytes);
    }
}

static void assert_same(const struct gm_analysis *a, const struct gm_analysis *b)
{
    const struct gm_ledger *one = &a->replay.ledger, *other = &b->replay.ledger;
    assert_memory_equal(&one->counters, &other->counters, sizeof(one->counters));
    assert_int_equal(one->step, other->step);
    assert_int_equal(one->lost_frees, other->lost_frees);
    assert_int_equal(one->unknown_frees, other->unknown_frees);
    assert_int_equal(one->lives.count, other->lives.count);
    assert_int_equal(a->device_peak_count, b->device_peak_count);
    for (size_t i = 0; i < a->device_peak_count; i++) {
        assert_int_equal(a->device_peaks[i].step, b->device_peaks[i].step);
        assert_int_equal(a->device_peaks[i].owners.bytes, b->device_peaks[i].owners.bytes);
    }
    assert_int_equal(a->ended_since_use, b->ended_since_use);
    assert_same_phases(&a->phases, &b->phases);
    assert_same_activity(&a->activity, &b->activity);
    assert_same_failures(a, b);
}

static void at_once_comes_to_the_same_as_node_by_node(void **state)
{
    uint64_t at_once = 0, launches = 0;
    (void)state;
    for (uint64_t program = 0; program < PROGRAMS; program++) {
        struct scene *as_it_is = play(program, false), *anew = play(program, true);
        assert_same(as_it_is->analysis, anew->analysis);
        assert_int_equal(anew->analysis->replay.graphs.at_once, 0);
        at_once += as_it_is->analysis->replay.graphs.at_once;
        launches += as_it_is->analysis->replay.graphs.launches;
        scene_end((void **)&as_it_is);
        scene_end((void **)&anew);
    }
    assert_in_range(at_once, launches / 4, launches - launches / 4);
}

/* ---- moments ----------------------------------------------------------------------------------- */

static void count_lives(void *replay_of)
{
    struct gm_replay *replay = replay_of;
    assert_int_equal(replay->ledger.step, 5);
    assert_int_equal(replay->ledger.lives.count, 1);
    replay->ledger.stop = 0;
}

static void a_moment_in_the_middle_of_a_launch_is_not_missed(void **state)
{
    struct scene *scene = *state;
    struct gm_replay replay;
    struct gm_entry entry;
    for (uint64_t node = 0; node < 2; node++)
        EVENT(GM_EVENT_GRAPH_ALLOC_NODE, .aux = 1, .address = address_of(1, node), .size = 1);
    for (uint64_t node = 0; node < 2; node++)
        EVENT(GM_EVENT_GRAPH_FREE_NODE, .aux = 1, .address = address_of(1, node));
    EVENT(GM_EVENT_GRAPH_INSTANTIATE, .address = 2, .aux = 1);
    for (unsigned launches = 0; launches < 4; launches++)
        EVENT(GM_EVENT_GRAPH_LAUNCH, .address = 2);
    scene_analyse(scene);
    struct gm_stream *stream = gm_stream_open(scene->trace);
    gm_replay_begin(&replay);
    replay.ledger.stop = 5; /* the first birth of the third launch */
    replay.ledger.stopped = count_lives;
    replay.ledger.stop_argument = &replay;
    while (gm_stream_next(stream, &entry))
        gm_replay_apply(&replay, &entry);
    assert_int_equal(replay.ledger.stop, 0);
    assert_int_equal(replay.graphs.at_once, 2);
    gm_replay_end(&replay);
    gm_stream_close(stream);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        SCENE_TEST(a_moment_in_the_middle_of_a_launch_is_not_missed),
        cmocka_unit_test(at_once_comes_to_the_same_as_node_by_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
