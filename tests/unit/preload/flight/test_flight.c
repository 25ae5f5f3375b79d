/*
 * The flight recorder, from a call to the file: whenever the process is killed, what is alive is
 * found, the file has its size, and what the area had no room for is told.
 */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h> /* needs what stands above */

#include "assert_between.h"

#include "preload/ring/pack.h"
#include "preload/writer/tables.h"
#include "report/input/trace/trace_open.h"
#include "report/judge/analysis/analysis.h"
#include "report/judge/verdict/completeness.h"
#include "scene.h"

#define TRACE "t.trace"

enum { THREADS = 2, SLOTS = 8 };

/* Shared with the scene's processes: how many each thread has recorded. */
static struct shared {
    _Atomic uint64_t committed[THREADS][8]; /* a cache line each */
    _Atomic uint64_t packings;              /* begun, of all rings */
    _Atomic uint64_t waits; /* committed by the fast thread when the slow one went on */
    _Atomic bool has_time;  /* the slow thread's record, which is not committed */
    _Atomic unsigned left;  /* changes before the process ends; 0: it does not */
} * shared;

static int begin(void **unused)
{
    (void)unused;
    memset((void *)shared, 0, sizeof(*shared));
    scene_begin(TRACE);
    gm_config.flight = true;
    gm_config.flight_size = 16 << 10;
    return 0;
}

static int end(void **unused)
{
    (void)unused;
    scene_end();
    return 0;
}

static void put(const struct gm_record *record, const struct gm_record *detail)
{
    struct gm_call call;
    gm_call_begin(&call, 1, NULL);
    gm_call_record(&call, record, detail);
    gm_call_end(&call);
}

/* ---- kills ----------------------------------------------------------------------------------- */

static uint64_t address_of(unsigned thread, uint64_t n)
{
    return (uint64_t)(thread + 1) << 32 | (n % SLOTS) << 8;
}

/* Each allocation takes the place of an older one, and its size says which it is. */
static void allocate(unsigned thread, uint64_t n)
{
    struct gm_record record = {.type = GM_EVENT_ALLOC,
                               .kind = GM_KIND_DEVICE,
                               .address = address_of(thread, n),
                               .size = n + 1};
    struct gm_record block = record, detail = {.address = n};
    block.type = GM_EVENT_BLOCK_ALLOC;
    put(&record, NULL);
    if (n % 5 == 0)
        put(&block, &detail);
}

static void *allocate_for_ever(void *number)
{
    unsigned thread = (unsigned)(uintptr_t)number;
    for (uint64_t n = 0;; n++) {
        allocate(thread, n);
        atomic_store_explicit(&shared->committed[thread][0], n + 1, memory_order_release);
    }
    return NULL;
}

static void two_threads_for_ever(void *unused)
{
    (void)unused;
    scene_threads(THREADS, allocate_for_ever);
}

/* What lives in a slot is what `known` records left there, or the one record after them. */
static void assert_slot(const struct gm_replay *replay, unsigned thread, uint64_t slot,
                        uint64_t known)
{
    uint32_t number = gm_lives_find(&replay->ledger.lives, address_of(thread, slot));
    uint64_t left = known > slot ? known - 1 - (known - 1 - slot) % SLOTS + 1 : 0; /* its size */
    uint64_t size = number == GM_NONE ? 0 : replay->ledger.lives.slots[number].size;
    if (size != left && !(size == known + 1 && known % SLOTS == slot))
        fail_msg("thread %u, slot %lu: %lu after %lu records, not %lu", thread, slot, size, known,
                 left);
}

static struct gm_trace *open_it(void)
{
    char error[256];
    struct gm_trace *trace = gm_trace_open(scene_path(TRACE), error, sizeof(error));
    if (!trace)
        fail_msg("%s", error);
    return trace;
}

/* Allocations here take the place of older ones that nobody freed, so that frees are missing; but
 * no record is. */
static void assert_nothing_missing(const struct gm_analysis *analysis)
{
    assert_int_equal(analysis->trace->ending, GM_ENDING_NORMAL);
    assert_int_equal(analysis->trace->damaged, 0);
    assert_int_equal(analysis->lost, 0);
    assert_int_equal(analysis->replay.ledger.unknown_frees, 0);
}

/* Returns whether something was overwritten by then. */
static bool kill_at(uint64_t moment)
{
    memset((void *)shared, 0, sizeof(*shared));
    pid_t child = scene_start(two_threads_for_ever, NULL);
    while (atomic_load(shared->committed[0]) + atomic_load(shared->committed[1]) < moment)
        sched_yield();
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    struct gm_trace *trace = open_it();
    struct gm_analysis *analysis = gm_analyse(trace);
    bool overwritten = trace->checkpoint != NULL;
    assert_int_equal(trace->ending, GM_ENDING_CUT);
    assert_int_equal(trace->damaged, 0);
    assert_int_equal(analysis->lost, 0);
    for (unsigned thread = 0; thread < THREADS; thread++)
        for (uint64_t slot = 0; slot < SLOTS; slot++)
            assert_slot(&analysis->replay, thread, slot,
                        atomic_load(&shared->committed[thread][0]));
    gm_analysis_free(analysis);
    gm_trace_close(trace);
    unlink(scene_path(TRACE));
    return overwritten;
}

static void a_kill_at_any_moment_leaves_what_is_alive(void **unused)
{
    (void)unused;
    unsigned overwritten = 0;
    srandom(42);
    for (unsigned attempt = 0; attempt < 300; attempt++)
        overwritten += kill_at(1 + (uint64_t)random() % (attempt % 4 ? 20000 : 200));
    assert_between(overwritten, 150, 300);
}

/* ---- order ----------------------------------------------------------------------------------- */

void __real_gm_pack(struct gm_thread *thread);
void __wrap_gm_pack(struct gm_thread *thread);

void __wrap_gm_pack(struct gm_thread *thread)
{
    shared->packings++;
    __real_gm_pack(thread);
}

enum { RING = 64, MANY = 3000 }; /* records; MANY fill the area more than once */

static _Thread_local bool is_slow;
static bool goes_on_in_time;

static void stop_slow_thread(void)
{
    if (!is_slow)
        return;
    shared->has_time = true;
    while (goes_on_in_time ? shared->packings < 3 : shared->committed[1][0] < MANY)
        sched_yield();
    shared->waits = shared->committed[1][0];
}

/* A reference to the context is taken, and another then given back: one is left. In the wrong order
 * none is, and all that was allocated in the context has ended. */
static void *race_for_a_context(void *number)
{
    if (number == 0) {
        is_slow = true;
        put(&(struct gm_record){.type = GM_EVENT_CONTEXT_RETAIN, .address = 0xc0}, NULL);
        return NULL;
    }
    while (!shared->has_time)
        sched_yield();
    put(&(struct gm_record){.type = GM_EVENT_CONTEXT_RELEASE, .address = 0xc0}, NULL);
    for (uint64_t n = 1; n <= MANY; n++) {
        allocate(1, n);
        atomic_store(&shared->committed[1][0], n);
    }
    return NULL;
}

static void two_threads_race(void *in_time)
{
    goes_on_in_time = in_time != NULL;
    fake_capture = stop_slow_thread;
    put(
        &(struct gm_record){
            .type = GM_EVENT_CONTEXT, .address = 0xc0, .context = 1, .flags = GM_FLAG_PRIMARY},
        NULL);
    put(&(struct gm_record){.type = GM_EVENT_CONTEXT_RETAIN, .address = 0xc0}, NULL);
    put(&(struct gm_record){.type = GM_EVENT_ALLOC,
                            .kind = GM_KIND_DEVICE,
                            .address = 0xa110c,
                            .size = 1,
                            .context = 1},
        NULL);
    scene_threads(2, race_for_a_context);
    scene_leave();
}

static void a_full_ring_waits_for_an_earlier_record(void **unused)
{
    (void)unused;
    scene_without_drainer = true;
    assert_int_equal(scene_play(two_threads_race, ""), 0);
    assert_between(shared->waits, 1, RING);
    struct gm_trace *trace = open_it();
    struct gm_analysis *analysis = gm_analyse(trace);
    assert_non_null(trace->checkpoint);
    assert_nothing_missing(analysis);
    assert_int_equal(trace->header.counters[GM_COUNT_FLIGHT_LATE], 0);
    assert_int_not_equal(gm_lives_find(&analysis->replay.ledger.lives, 0xa110c), GM_NONE);
    assert_int_equal(analysis->replay.ledger.lives.count, 1 + SLOTS);
    gm_analysis_free(analysis);
    gm_trace_close(trace);
}

static void nobody_waits_for_good_and_it_is_told(void **unused)
{
    (void)unused;
    scene_without_drainer = true;
    assert_int_equal(scene_play(two_threads_race, NULL), 0);
    assert_int_equal(shared->waits, MANY);
    struct gm_trace *trace = open_it();
    struct gm_analysis *analysis = gm_analyse(trace);
    assert_non_null(trace->checkpoint);
    assert_int_equal(trace->header.counters[GM_COUNT_FLIGHT_LATE], 1);
    assert_int_equal(analysis->lost, 1);
    assert_false(gm_analysis_is_complete(analysis));
    gm_analysis_free(analysis);
    gm_trace_close(trace);
}

/* ---- the end of the process ------------------------------------------------------------------ */

void __real_gm_log_complete(void *payload);
void __wrap_gm_log_complete(void *payload);
void __real_gm_trace_publish_extents(struct gm_extent *first, uint32_t count, uint32_t used);
void __wrap_gm_trace_publish_extents(struct gm_extent *first, uint32_t count, uint32_t used);

/* As if another thread ended the process now. Whether it was marked before this one's last step. */
static bool is_end(void)
{
    if (shared->left == 0 || --shared->left > 0)
        return false;
    gm_trace_mark_end(GM_END_UNDERSCORE_EXIT, 0);
    return true;
}

void __wrap_gm_log_complete(void *payload)
{
    bool ends = is_end();
    __real_gm_log_complete(payload);
    if (ends)
        _exit(0);
}

void __wrap_gm_trace_publish_extents(struct gm_extent *first, uint32_t count, uint32_t used)
{
    __real_gm_trace_publish_extents(first, count, used);
    if (is_end())
        _exit(0);
}

/* Packs as the drainer does: while no record is being committed. */
static void change_everything(void *unused)
{
    (void)unused;
    scene_put(0, 0); /* makes the trace */
    gm_node_intern(0, 0, 1, GM_NODE_NATIVE);
    gm_string_intern("text", 4);
    for (uint64_t n = 0; n < 60 * SLOTS; n++) {
        allocate(0, n);
        if (n % SLOTS)
            continue;
        gm_lock_take(gm_pack_lock(gm_tls.thread));
        gm_pack(gm_tls.thread);
        gm_lock_release(gm_pack_lock(gm_tls.thread));
    }
    scene_leave();
}

static void an_end_in_the_middle_of_a_change_is_no_damage(void **unused)
{
    (void)unused;
    scene_without_drainer = true;
    unsigned ends = 0;
    do {
        shared->left = ++ends;
        assert_int_equal(scene_play(change_everything, NULL), 0);
        struct gm_trace *trace = open_it();
        if (trace->damaged)
            fail_msg("damaged by an end at change %u", ends);
        gm_trace_close(trace);
        unlink(scene_path(TRACE));
    } while (shared->left == 0);
    assert_between(ends, 40, 1000);
}

/* ---- room ------------------------------------------------------------------------------------ */

static void allocate_many(void *unused)
{
    (void)unused;
    for (uint64_t n = 0; n < 100000; n++)
        allocate(0, n);
    scene_leave();
}

static void the_file_does_not_grow(void **unused)
{
    (void)unused;
    struct stat status;
    assert_int_equal(scene_play(allocate_many, NULL), 0);
    assert_int_equal(stat(scene_path(TRACE), &status), 0);
    /* Preamble, one ring, and the strings that the thread's name begins. */
    assert_between(status.st_size, 16 << 10, (16 << 10) + (64 << 10) + (16 << 10));
    struct gm_trace *trace = open_it();
    struct gm_analysis *analysis = gm_analyse(trace);
    assert_nothing_missing(analysis);
    assert_int_equal(trace->checkpoint->before.events + analysis->replay.ledger.events,
                     100000 + 100000 / 5 + 1); /* one says whose the lane is */
    assert_int_equal(analysis->replay.ledger.lives.count, SLOTS);
    gm_analysis_free(analysis);
    gm_trace_close(trace);
}

/* Without a life or an object of it left. */
static void lose_handles_and_mappings(void *unused)
{
    (void)unused;
    struct gm_record handle = {
        .type = GM_EVENT_VMM_CREATE, .kind = GM_KIND_VMM, .address = 7, .size = 1};
    put(&handle, NULL);
    put(&handle, NULL); /* it was released unseen */
    for (uint64_t start = 0x1000; start <= 0x2000; start += 0x1000)
        put(
            &(struct gm_record){
                .type = GM_EVENT_VMM_MAP, .address = start, .size = 0x2000, .aux = 7},
            &(struct gm_record){0}); /* the second one over the first, which was unmapped unseen */
    put(&(struct gm_record){.type = GM_EVENT_VMM_UNMAP, .address = 0x2000, .size = 0x2000}, NULL);
    handle.type = GM_EVENT_VMM_RELEASE;
    put(&handle, NULL);
    put(&handle, NULL); /* what is not known to live */
    for (uint64_t n = 0; n < 100000; n++)
        put(&(struct gm_record){.type = GM_EVENT_SET, .address = n, .size = n * n}, NULL);
    scene_leave();
}

static void losses_in_what_was_overwritten_count(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(lose_handles_and_mappings, NULL), 0);
    struct gm_trace *trace = open_it();
    struct gm_analysis *analysis = gm_analyse(trace);
    assert_non_null(trace->checkpoint);
    assert_int_equal(analysis->lost, 0);
    assert_int_equal(analysis->replay.ledger.lost_frees, 2);
    assert_int_equal(analysis->replay.ledger.unknown_frees, 1);
    assert_false(gm_analysis_is_complete(analysis));
    gm_analysis_free(analysis);
    gm_trace_close(trace);
}

static void keep(uint64_t n)
{
    put(&(struct gm_record){.type = GM_EVENT_ALLOC,
                            .kind = GM_KIND_DEVICE,
                            .address = 0x1000 + n * 0x1234567,
                            .size = n * n + 1},
        NULL);
}

/* More than a checkpoint of 16 KiB can hold; then most of it is freed. */
static void keep_too_many(void *then_free)
{
    for (uint64_t n = 0; n < 5000; n++)
        keep(n);
    for (uint64_t n = 0; n < 4990 && then_free; n++)
        put(&(struct gm_record){.type = GM_EVENT_FREE, .address = 0x1000 + n * 0x1234567}, NULL);
    for (uint64_t n = 0; n < 1000 && then_free; n++)
        allocate(0, n);
    scene_leave();
}

static void what_there_is_no_room_for_is_told(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(keep_too_many, NULL), 0);
    struct gm_trace *trace = open_it();
    struct gm_analysis *analysis = gm_analyse(trace);
    assert_int_equal(trace->damaged, 0);
    assert_between(trace->header.counters[GM_COUNT_FLIGHT_FULL], 1, 5000);
    /* A checkpoint that still found room covers what was lost before it. */
    assert_between(analysis->lost, 1, trace->header.counters[GM_COUNT_FLIGHT_FULL]);
    assert_false(gm_analysis_is_complete(analysis));
    gm_analysis_free(analysis);
    gm_trace_close(trace);
}

static void when_there_is_room_again_all_is_exact(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(keep_too_many, ""), 0);
    struct gm_trace *trace = open_it();
    struct gm_analysis *analysis = gm_analyse(trace);
    assert_between(trace->header.counters[GM_COUNT_FLIGHT_FULL], 1, 11000);
    assert_int_equal(analysis->lost, 0);
    assert_nothing_missing(analysis);
    assert_int_equal(analysis->replay.ledger.lives.count, 10 + SLOTS);
    gm_analysis_free(analysis);
    gm_trace_close(trace);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* The child starts over: with a trace of its own, and nothing of its parent's in it. */
static void fork_when_full(void *unused)
{
    (void)unused;
    for (uint64_t n = 0; n < 2000; n++)
        allocate(0, n);
    pid_t child = fork();
    for (uint64_t n = 0; n < (child ? 10u : 3000u); n++)
        keep(n % 7);
    if (child && waitpid(child, NULL, 0) != child)
        _exit(1);
    scene_leave();
}

static void a_forked_child_starts_over(void **unused)
{
    (void)unused;
    char error[256];
    assert_int_equal(scene_play(fork_when_full, NULL), 0);
    assert_int_equal(scene_files(), 2);
    struct gm_trace *trace = gm_trace_open(scene_path("t.1.trace"), error, sizeof(error));
    assert_non_null(trace);
    struct gm_analysis *analysis = gm_analyse(trace);
    assert_nothing_missing(analysis);
    assert_non_null(trace->checkpoint);
    assert_int_equal(analysis->replay.ledger.lives.count, 7);
    /* Of them one says whose the lane is. */
    assert_int_equal(trace->checkpoint->before.events + analysis->replay.ledger.events, 3000 + 1);
    gm_analysis_free(analysis);
    gm_trace_close(trace);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(a_kill_at_any_moment_leaves_what_is_alive),
        TEST(a_full_ring_waits_for_an_earlier_record),
        TEST(nobody_waits_for_good_and_it_is_told),
        TEST(an_end_in_the_middle_of_a_change_is_no_damage),
        TEST(the_file_does_not_grow),
        TEST(losses_in_what_was_overwritten_count),
        TEST(what_there_is_no_room_for_is_told),
        TEST(when_there_is_room_again_all_is_exact),
        TEST(a_forked_child_starts_over),
    };
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
