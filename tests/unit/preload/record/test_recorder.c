/*
 * The recorder, from a call to the file: everything a thread commits is found again by the report's
 * reader, whole, once and in order, through full rings, kills, forks, full disks and hosts that
 * close what is not theirs; and what cannot be kept is counted.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h> /* needs what stands above */

#include "assert_between.h"

#include "preload/base/environment.h"
#include "preload/base/own_thread.h"
#include "preload/base/ticks.h"
#include "preload/ring/pack.h"
#include "preload/writer/modules.h"
#include "preload/writer/tables.h"
#include "preload/writer/trace_place.h"
#include "report/input/trace/trace_open.h"
#include "scene.h"

#define TRACE "t.trace"

/* Shared with the scene's processes. */
static struct shared {
    _Atomic uint64_t committed[SCENE_THREADS][8]; /* per thread; a cache line each */
    _Atomic uint32_t ready;                       /* processes that have recorded */
} * shared;

static int begin(void **unused)
{
    (void)unused;
    memset((void *)shared, 0, sizeof(*shared));
    scene_begin(TRACE);
    return 0;
}

static int end(void **unused)
{
    (void)unused;
    scene_end();
    return 0;
}

/* Nothing wrong with what is there; whether all is there is the test's to say. */
static void assert_sound(const struct scene_found *found)
{
    assert_int_equal(found->damaged, 0);
    assert_false(found->truncated);
    assert_int_equal(found->wrong, 0);
    assert_int_equal(found->disorder, 0);
    assert_int_equal(found->strays, 0);
}

static void assert_whole(const struct scene_found *found, uint64_t records)
{
    assert_sound(found);
    assert_int_equal(found->lost, 0);
    assert_int_equal(found->records, records);
    assert_int_equal(found->header.counters[GM_COUNT_DROPPED], 0);
    assert_int_equal(found->header.counters[GM_COUNT_WRITE_FAILED], 0);
}

/* ---- full rings ------------------------------------------------------------------------------ */

enum { MANY = 100000 };

static void *put_many(void *number)
{
    scene_put_many((unsigned)(uintptr_t)number, MANY);
    return NULL;
}

static void four_threads(void *unused)
{
    (void)unused;
    scene_threads(4, put_many);
}

static void all_of_four_threads_are_there(void)
{
    assert_int_equal(scene_play(four_threads, NULL), 0);
    struct scene_found found = scene_read(TRACE);
    assert_whole(&found, 4 * MANY);
    for (unsigned thread = 0; thread < 4; thread++)
        assert_int_equal(found.count[thread], MANY);
    assert_int_equal(found.threads, 4);
    assert_int_equal(found.details, 4 * MANY / 5);
    assert_int_equal(found.ending, GM_ENDING_NORMAL);
}

static void full_rings_lose_nothing_with_the_drainer(void **unused)
{
    (void)unused;
    all_of_four_threads_are_there();
}

static void full_rings_lose_nothing_without_a_drainer(void **unused)
{
    (void)unused;
    scene_without_drainer = true;
    all_of_four_threads_are_there();
}

static void pack(struct gm_thread *thread)
{
    gm_lock_take(gm_pack_lock(thread));
    gm_pack(thread);
    gm_lock_release(gm_pack_lock(thread));
}

/* Past what a call can put there: equal and backward times, every field at its ends. */
static void extremes(void *records)
{
    struct gm_tls *tls = &gm_tls;
    scene_put(0, 0); /* takes a lane */
    struct gm_thread *thread = tls->thread;
    memcpy(thread->records + 2, records, 20 * sizeof(struct gm_record));
    thread->head += 20;
    __atomic_store_n(&thread->lane->head, thread->head, __ATOMIC_RELEASE);
    pack(thread);
    if (thread->lane->tail != 22)
        _exit(1);
}

static void every_field_survives_packing_at_its_extremes(void **unused)
{
    (void)unused;
    struct gm_record records[20], ends = {.time = 1ull << 62};
    for (unsigned n = 0; n < 20; n++) {
        records[n] = ends;
        if (n % 2)
            memset((char *)&records[n] + 8, 0xff, sizeof(ends) - 8);
        records[n].type = GM_EVENT_HINT;
        records[n].time += n / 4; /* ties of four */
        records[n].device = n % 2 ? INT8_MAX : INT8_MIN;
    }
    assert_int_equal(scene_play(extremes, records), 0);
    char error[256];
    struct gm_trace *trace = gm_trace_open(scene_path(TRACE), error, sizeof(error));
    assert_non_null(trace);
    struct gm_stream *stream = gm_stream_open(trace);
    struct gm_entry entry;
    assert_true(gm_stream_next(stream, &entry)); /* whose lane it is */
    assert_true(gm_stream_next(stream, &entry));
    for (unsigned n = 0; n < 20; n++) {
        assert_true(gm_stream_next(stream, &entry));
        assert_memory_equal(entry.record, &records[n], sizeof(records[n]));
    }
    assert_false(gm_stream_next(stream, &entry));
    gm_stream_close(stream);
    gm_trace_close(trace);
}

/* Records until the owner has looked at the ring again; returns how many records it holds then. */
static uint64_t until_next_look(const struct gm_thread *thread)
{
    uint64_t limit = thread->limit;
    while (thread->limit == limit)
        scene_put(0, 5 * thread->head); /* these have no detail */
    return thread->head - thread->lane->tail;
}

static void look_at_a_ring_of_64(void *unused)
{
    (void)unused;
    scene_put(0, 0);
    gm_lock_take(gm_pack_lock(gm_tls.thread)); /* the drainer waits */
    const struct gm_thread *thread = gm_tls.thread;
    if (until_next_look(thread) != 32 + 1 || until_next_look(thread) != 40 + 1 ||
        until_next_look(thread) != 48 + 1)
        _exit(1);
    gm_pack(gm_tls.thread); /* what waited; from now on half a ring is half a ring again */
    if (until_next_look(thread) != 56 - 49 + 1 || until_next_look(thread) != 32 + 1)
        _exit(2);
    gm_lock_release(gm_pack_lock(gm_tls.thread));
}

static void a_ring_is_looked_at_by_what_waits_in_it(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(look_at_a_ring_of_64, NULL), 0);
}

/* It naps after work, ever longer, and then sleeps; so does the test, for as long. */
static void leave_a_ring_to_the_drainer(void *unused)
{
    (void)unused;
    scene_put(0, 0);
    struct gm_thread *thread = gm_tls.thread;
    for (unsigned round = 0; round < 100; round++) {
        while (until_next_look(thread) < 32)
            continue;
        /* From here on nothing is recorded until it has come. */
        for (int waited = 0;
             thread->head - __atomic_load_n(&thread->lane->tail, __ATOMIC_ACQUIRE) > 32; waited++) {
            if (waited > 100000)
                _exit(1);
            usleep(100);
        }
        usleep(round * 300);
    }
}

static void the_drainer_comes_from_a_nap_and_from_sleep(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(leave_a_ring_to_the_drainer, NULL), 0);
}

/*
 * Of this many looks at half a ring, how many found it packed right after. It counts only who has
 * been quick, so on a busy machine not all do.
 */
static unsigned packed_at_half(unsigned looks)
{
    unsigned packed = 0;
    scene_put(0, 0);
    for (const struct gm_thread *thread = gm_tls.thread; looks > 0; looks--) {
        bool is_half = thread->limit - thread->lane->tail == 32;
        packed += until_next_look(thread) == 1 && is_half;
    }
    return packed;
}

static void record_on_the_only_cpu(void *unused)
{
    (void)unused;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    if (sched_setaffinity(0, sizeof(one), &one) != 0)
        _exit(1);
    gm_own_prepare(); /* as if it had been started on it */
    if (packed_at_half(1000) == 0)
        _exit(1);
}

static void record_on_one_of_many_cpus(void *unused)
{
    (void)unused;
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof(all), &all) != 0 || CPU_COUNT(&all) < 2)
        return;
    if (packed_at_half(1000) != 0)
        _exit(1);
}

static void who_has_no_cpu_to_spare_packs_at_half_a_ring(void **unused)
{
    (void)unused;
    scene_without_drainer = true; /* so that nobody else packs */
    assert_int_equal(scene_play(record_on_the_only_cpu, NULL), 0);
    assert_int_equal(scene_play(record_on_one_of_many_cpus, NULL), 0);
    gm_config.drop_on_full = true; /* then the host waits for no packing */
    assert_int_not_equal(scene_play(record_on_the_only_cpu, NULL), 0);
}

enum { RING = 1024, RANDOM_RECORDS = 5000 };

/*
 * Records whose fields change seldom or always and are of any length, so that every column is at
 * times left out, at times the same for long and at times as long as it can be.
 */
static void make_random_records(struct gm_record records[RANDOM_RECORDS])
{
    uint64_t seed = 1, time = 1ull << 62, words[6] = {0}, masks[6] = {0};
    for (unsigned n = 0; n < RANDOM_RECORDS; n++) {
        for (unsigned i = 0; i < 6; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            if (seed >> 56 == 0) /* for the next 256 or so */
                masks[i] = seed >> 40 & 1 ? 0 : UINT64_MAX >> (seed >> 48 & 63);
            words[i] ^= (seed >> 32 ^ seed << 32) & masks[i];
        }
        memcpy(&records[n], words, sizeof(words));
        records[n].time = time += words[0] % 100000;
        records[n].type = n % 3 ? GM_EVENT_ALLOC : GM_EVENT_HINT;
    }
}

static void put_random_records(void *records_)
{
    const struct gm_record *records = records_;
    scene_put(0, 0); /* takes a lane */
    struct gm_thread *thread = gm_tls.thread;
    for (unsigned n = 1; thread->mask + 1 < RING; n++) /* as large as it may be */
        scene_put(0, n);
    pack(thread);
    uint64_t before = thread->head;
    for (unsigned n = 0; n < RANDOM_RECORDS;) {
        for (unsigned i = RING - n % 7; i > 1 && n < RANDOM_RECORDS; i--)
            thread->records[thread->head++ & thread->mask] = records[n++];
        __atomic_store_n(&thread->lane->head, thread->head, __ATOMIC_RELEASE);
        pack(thread);
    }
    if (thread->lane->tail != before + RANDOM_RECORDS)
        _exit(1);
}

static void random_records_survive_packing(void **unused)
{
    (void)unused;
    static struct gm_record records[RANDOM_RECORDS];
    make_random_records(records);
    gm_config.ring_records = RING;
    assert_int_equal(scene_play(put_random_records, records), 0);
    char error[256];
    struct gm_trace *trace = gm_trace_open(scene_path(TRACE), error, sizeof(error));
    assert_non_null(trace);
    struct gm_stream *stream = gm_stream_open(trace);
    struct gm_entry entry;
    do
        assert_true(gm_stream_next(stream, &entry));
    while (entry.record->address != records[0].address || entry.record->aux != records[0].aux);
    for (unsigned n = 0; n < RANDOM_RECORDS; n++) {
        if (n)
            assert_true(gm_stream_next(stream, &entry));
        assert_memory_equal(entry.record, &records[n], sizeof(records[n]));
    }
    assert_false(gm_stream_next(stream, &entry));
    gm_stream_close(stream);
    gm_trace_close(trace);
}

static void record_while_packing_is_held_up(void *unused)
{
    (void)unused;
    scene_put(0, 0);
    gm_lock_take(gm_pack_lock(gm_tls.thread));
    for (uint64_t n = 1; n < 200; n++) /* 239 records with the details: 62 slots are left */
        scene_put(0, n);
    gm_lock_release(gm_pack_lock(gm_tls.thread));
    for (uint64_t n = 200; n < 300; n++) { /* the last record must find room */
        pack(gm_tls.thread);
        scene_put(0, n);
    }
}

static void a_full_ring_that_drops_counts_exactly_what_is_missing(void **unused)
{
    (void)unused;
    gm_config.drop_on_full = true;
    assert_int_equal(scene_play(record_while_packing_is_held_up, NULL), 0);
    struct scene_found found = scene_read(TRACE);
    assert_sound(&found); /* no detail has come to stand behind another record */
    assert_int_equal(found.lost, 0);
    assert_int_equal(found.header.counters[GM_COUNT_DROPPED], 239 - 62);
    assert_int_equal(found.stored, 1 + 62 + 100 + 20);
    assert_true(found.header.flags & GM_HEADER_DROP_ON_FULL);
}

static void dropping_is_left_to_a_drainer_that_exists(void **unused)
{
    (void)unused;
    gm_config.drop_on_full = true;
    scene_without_drainer = true;
    all_of_four_threads_are_there();
}

/* ---- kills ----------------------------------------------------------------------------------- */

static void *put_for_ever(void *number)
{
    unsigned thread = (unsigned)(uintptr_t)number;
    for (uint64_t n = 0;; n++) {
        scene_put(thread, n);
        atomic_store_explicit(&shared->committed[thread][0], n + 1, memory_order_release);
    }
    return NULL;
}

static void two_threads_for_ever(void *unused)
{
    (void)unused;
    scene_threads(2, put_for_ever);
}

static void kill_at(uint64_t moment)
{
    memset((void *)shared, 0, sizeof(*shared));
    pid_t child = scene_start(two_threads_for_ever, NULL);
    while (atomic_load(shared->committed[0]) + atomic_load(shared->committed[1]) < moment)
        sched_yield();
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    struct scene_found found = scene_read(TRACE);
    assert_sound(&found);
    assert_int_equal(found.lost, 0);
    assert_int_equal(found.ending, GM_ENDING_CUT);
    for (unsigned thread = 0; thread < 2; thread++) {
        uint64_t known = atomic_load(&shared->committed[thread][0]);
        assert_int_equal(found.count[thread], found.next[thread]); /* none missing in between */
        assert_between(found.count[thread], known, known + 1);
    }
}

static void a_kill_at_any_moment_loses_no_committed_record(void **unused)
{
    (void)unused;
    srandom(42);
    for (unsigned attempt = 0; attempt < 200; attempt++)
        kill_at(1 + (uint64_t)random() % (attempt % 2 ? 100 : 20000));
}

/* ---- disks and limits ------------------------------------------------------------------------ */

/* The first of both threads' rings is soon full, and the next ones, too. */
static void a_kill_while_rings_grow_loses_no_committed_record(void **unused)
{
    (void)unused;
    gm_config.ring_records = 16384;
    for (unsigned attempt = 0; attempt < 60; attempt++)
        kill_at(1 + (uint64_t)random() % (attempt % 2 ? 200 : 4000));
}

static void grow_and_leave(void *unused)
{
    (void)unused;
    scene_put_many(0, 20000);
    if (gm_tls.thread->mask + 1 != 16384)
        _exit(1);
}

static void a_ring_grows_with_its_records(void **unused)
{
    (void)unused;
    gm_config.ring_records = 16384;
    assert_int_equal(scene_play(grow_and_leave, NULL), 0);
    struct scene_found found = scene_read(TRACE);
    assert_whole(&found, 20000);
    assert_int_equal(found.lanes, 1);
}

static void limit_file_size(rlim_t bytes)
{
    struct rlimit limit = {bytes, RLIM_INFINITY};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
        _exit(98);
}

static bool over_limit_is_pending(void)
{
    sigset_t pending;
    sigpending(&pending);
    return sigismember(&pending, SIGXFSZ) == 1;
}

static void record_beyond_the_limit(void *unused)
{
    (void)unused;
    sigset_t before, after;
    memset(&before, 0, sizeof(before)); /* the kernel's set is smaller than libc's */
    memset(&after, 0, sizeof(after));
    sigprocmask(SIG_BLOCK, NULL, &before);
    limit_file_size(256 << 10); /* SIGXFSZ has its default action: death */
    scene_put_many(0, 50000);
    sigprocmask(SIG_BLOCK, NULL, &after);
    if (memcmp(&before, &after, sizeof(before)) != 0 || over_limit_is_pending())
        _exit(1);
}

/* The rest is found, and the counters tell exactly what is not. */
static void assert_counted(const struct scene_found *found, uint64_t records)
{
    assert_sound(found);
    assert_true(found->header.counters[GM_COUNT_WRITE_FAILED] > 0);
    assert_int_equal(found->header.counters[GM_COUNT_WRITE_FAILED], found->lost);
    assert_int_equal(found->stored + found->lost, records);
}

static void a_file_size_limit_does_not_kill_the_host(void **unused)
{
    (void)unused;
    for (int drainer = 0; drainer < 2; drainer++) {
        scene_without_drainer = !drainer;
        assert_int_equal(scene_play(record_beyond_the_limit, NULL), 0);
        struct scene_found found = scene_read(TRACE);
        assert_counted(&found, 60000);
    }
}

static void record_with_a_signal_of_its_own_waiting(void *unused)
{
    (void)unused;
    sigset_t over_limit;
    sigemptyset(&over_limit);
    sigaddset(&over_limit, SIGXFSZ);
    sigprocmask(SIG_BLOCK, &over_limit, NULL);
    raise(SIGXFSZ);
    limit_file_size(256 << 10);
    scene_put_many(0, 50000);
    if (!over_limit_is_pending())
        _exit(1);
}

static void a_signal_of_the_hosts_own_stays_pending(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(record_with_a_signal_of_its_own_waiting, NULL), 0);
}

static void *put_hundred(void *number)
{
    scene_put_many((unsigned)(uintptr_t)number + 1, 100);
    return NULL;
}

/* A block that does not fit leaves no bytes behind that a new thread's ring would be made of. */
static void come_upon_a_limit_that_goes_away(void *unused)
{
    (void)unused;
    scene_without_drainer = true; /* so that the end of the file stays where it is seen */
    scene_put(0, 0);
    for (uint64_t n = 1; gm_file.end % GM_TRACE_PAGE < GM_TRACE_PAGE - 256; n++)
        scene_put(0, n);
    /* The next block is cut where the head of a new lane would stand. */
    limit_file_size((gm_file.end / GM_TRACE_PAGE + 1) * GM_TRACE_PAGE + 200);
    scene_put_many(0, 200);
    if (gm_file.header->counters[GM_COUNT_WRITE_FAILED] == 0)
        _exit(1);
    limit_file_size(RLIM_INFINITY);
    scene_threads(2, put_hundred);
}

static void a_failed_write_leaves_nothing_behind(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(come_upon_a_limit_that_goes_away, NULL), 0);
    struct scene_found found = scene_read(TRACE);
    assert_int_equal(found.damaged, 0);
    assert_false(found.truncated);
    assert_int_equal(found.wrong, 0);
    assert_int_equal(found.lost, found.header.counters[GM_COUNT_WRITE_FAILED]);
    assert_int_equal(found.count[1], 100);
    assert_int_equal(found.count[2], 100);
}

/* There is room for the first thread's lane and not for a second. */
static void two_threads_where_one_lane_fits(void *unused)
{
    (void)unused;
    scene_put(0, 0);
    limit_file_size(gm_file.end + 1024);
    scene_threads(1, put_hundred);
}

static void a_thread_without_a_lane_is_counted_and_the_trace_stays_whole(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(two_threads_where_one_lane_fits, NULL), 0);
    struct scene_found found = scene_read(TRACE);
    assert_sound(&found);
    assert_int_equal(found.records, 1);
    assert_int_equal(found.header.counters[GM_COUNT_NO_LANE], 100);
}

static void record_much(void *unused)
{
    (void)unused;
    scene_put_many(0, 50000);
}

static void a_full_disk_is_counted_and_harms_nobody(void **unused)
{
    (void)unused;
    const char *folder = scene_path("");
    if (mount("tmpfs", folder, "tmpfs", 0, "size=512k") != 0)
        skip(); /* needs privilege; the file size limit above takes the same way */
    int status = scene_play(record_much, NULL);
    struct scene_found found = scene_read(TRACE);
    umount2(folder, MNT_DETACH); /* before anything can fail */
    assert_int_equal(status, 0);
    assert_counted(&found, 60000);
}

static void no_room_at_all(void *unused)
{
    (void)unused;
    limit_file_size(2000);
    scene_put_many(0, 10);
}

static void a_trace_that_cannot_be_begun_leaves_no_file(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(no_room_at_all, NULL), 0);
    assert_int_equal(scene_files(), 0);
}

/* ---- file systems ---------------------------------------------------------------------------- */

enum { EXT4 = 0xef53, TMPFS = 0x01021994, NFS = 0x6969 };
#define BTRFS 0x9123683eu
#define OVERLAY 0x794c7630u

static void what_copies_on_write_is_not_safe(void **unused)
{
    (void)unused;
    static const struct {
        uint32_t type;
        unsigned files, block, fragment;
        bool safe;
    } cases[] = {
        {EXT4, 100, 4096, 4096, true},        {0x58465342, 100, 4096, 4096, true},   /* XFS */
        {TMPFS, 0, 4096, 4096, true},         {0x858458f6, 0, 4096, 4096, true},     /* ramfs */
        {BTRFS, 0, 4096, 4096, false},        {0x2fc12fc1, 100, 131072, 512, false}, /* ZFS */
        {0xca451a4e, 100, 4096, 4096, false}, {0xf2f52010, 100, 4096, 4096, false},
        {NFS, 100, 1048576, 1048576, true},   {0x65735546, 100, 4096, 4096, true}, /* FUSE */
        {0x3434, 100, 4096, 4096, false},     {0x0bd00bd0, 100, 4096, 4096, true}, /* Lustre */
        {OVERLAY, 100, 4096, 4096, true},     {OVERLAY, 0, 4096, 4096, false},     /* over btrfs */
        {OVERLAY, 100, 131072, 512, false},                                        /* over ZFS */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct statfs status = {.f_type = cases[i].type,
                                .f_files = cases[i].files,
                                .f_bsize = cases[i].block,
                                .f_frsize = cases[i].fragment};
        assert_int_equal(gm_place_is_safe(&status), cases[i].safe);
    }
}

/* ---- names ----------------------------------------------------------------------------------- */

static void put_ten(void *unused)
{
    (void)unused;
    scene_put_many(0, 10);
}

static void put_twenty(void *unused)
{
    (void)unused;
    scene_put_many(0, 20);
}

static void a_file_that_is_no_trace_is_kept(void **unused)
{
    (void)unused;
    FILE *file = fopen(scene_path(TRACE), "w");
    assert_non_null(file);
    fputs("thesis", file);
    fclose(file);
    assert_int_equal(scene_play(put_ten, NULL), 0);
    struct stat status;
    assert_int_equal(stat(scene_path(TRACE), &status), 0);
    assert_int_equal(status.st_size, 6);
    assert_int_equal(scene_read("t.1.trace").records, 10);
}

static void a_trace_of_the_dead_is_replaced(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(put_ten, NULL), 0);
    assert_int_equal(scene_play(put_twenty, NULL), 0);
    assert_int_equal(scene_files(), 1);
    assert_int_equal(scene_read(TRACE).records, 20);
}

static void a_trace_of_the_same_run_is_kept(void **unused)
{
    (void)unused;
    strcpy(gm_config.run_id, "run-1");
    assert_int_equal(scene_play(put_ten, NULL), 0);
    assert_int_equal(scene_play(put_twenty, NULL), 0);
    assert_int_equal(scene_read(TRACE).records, 10);
    struct scene_found second = scene_read("t.1.trace");
    assert_int_equal(second.records, 20);
    assert_int_equal(second.header.generation, 1);
    strcpy(gm_config.run_id, "run-2"); /* which has nothing to do with the first */
    assert_int_equal(scene_play(put_ten, NULL), 0);
    assert_int_equal(scene_read(TRACE).records, 10);
    assert_int_equal(scene_files(), 2);
}

/* Whose processes cannot be seen from here: another machine, or a container on this one. */
static void keep_a_trace_with(size_t offset, const void *field, size_t size)
{
    assert_int_equal(scene_play(put_ten, NULL), 0);
    int descriptor = open(scene_path(TRACE), O_RDWR);
    assert_int_equal(pwrite(descriptor, field, size, (off_t)offset), size);
    close(descriptor);
    assert_int_equal(scene_play(put_twenty, NULL), 0);
    assert_int_equal(scene_files(), 2);
    assert_int_equal(scene_read("t.1.trace").records, 20);
}

static void a_trace_of_another_host_is_kept(void **unused)
{
    (void)unused;
    keep_a_trace_with(offsetof(struct gm_trace_header, host), "elsewhere", 10);
}

/* Containers can have one name: all those in the network of their host do. */
static void a_trace_of_a_container_of_the_same_name_is_kept(void **unused)
{
    (void)unused;
    const uint32_t another = 1;
    keep_a_trace_with(offsetof(struct gm_trace_header, pid_namespace), &another, sizeof(another));
}

/* Two ends of a pipe: who reads waits until all writers are gone. */
static int gate[2];

static void pass_gate(void)
{
    char byte;
    close(gate[1]);
    if (read(gate[0], &byte, 1) != 0)
        _exit(1);
}

static void wait_until_ready(uint32_t processes)
{
    while (atomic_load(&shared->ready) < processes)
        sched_yield();
}

static void put_ten_and_wait(void *unused)
{
    put_ten(unused);
    atomic_fetch_add(&shared->ready, 1);
    pass_gate();
}

static void a_trace_of_the_living_is_kept(void **unused)
{
    (void)unused;
    int status;
    assert_int_equal(pipe(gate), 0);
    pid_t first = scene_start(put_ten_and_wait, NULL);
    wait_until_ready(1);
    assert_int_equal(scene_play(put_twenty, NULL), 0);
    close(gate[1]);
    close(gate[0]);
    assert_int_equal(waitpid(first, &status, 0), first);
    assert_int_equal(status, 0);
    assert_int_equal(scene_read(TRACE).records, 10);
    assert_int_equal(scene_read("t.1.trace").records, 20);
}

/* As where /proc is mounted with hidepid: the folders of other users' processes are not there. */
static void a_trace_of_who_cannot_be_seen_is_kept(void **unused)
{
    (void)unused;
    assert_int_equal(pipe(gate), 0);
    atomic_store(&shared->ready, 0);
    pid_t waiting = scene_start(put_ten_and_wait, NULL);
    wait_until_ready(1);
    char folder_of[64];
    snprintf(folder_of, sizeof(folder_of), "/proc/%d", (int)waiting);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", folder_of, "tmpfs", 0, NULL) != 0) {
        kill(waiting, SIGKILL);
        waitpid(waiting, NULL, 0);
        skip(); /* needs privilege */
    }
    int status = scene_play(put_twenty, NULL);
    umount2(folder_of, MNT_DETACH);
    kill(waiting, SIGKILL);
    waitpid(waiting, NULL, 0);
    assert_int_equal(status, 0);
    assert_int_equal(scene_read(TRACE).records, 10);
    assert_int_equal(scene_files(), 2);
}

static void a_fifo_is_no_place_for_a_trace(void **unused)
{
    (void)unused;
    assert_int_equal(mkfifo(scene_path(TRACE), 0600), 0);
    assert_int_equal(scene_play(put_ten, NULL), 0);
    assert_int_equal(scene_files(), 1);
}

/* A file name of which the first bytes are that of another file, at a depth where a path of the
 * recorder's ends. The trace cannot be begun. */
static void begin_where_the_path_is_cut(void *unused)
{
    char name[200] = "", long_name[256];
    size_t depth = strlen(scene_path("")), kept = sizeof(gm_file.path) - 1;
    memset(name, 'd', sizeof(name) - 1);
    if (chdir(scene_path("")) != 0)
        _exit(1);
    for (; kept - depth > sizeof(name) + 1; depth += sizeof(name))
        if (mkdir(name, 0700) != 0 || chdir(name) != 0)
            _exit(2);
    memset(long_name, 'n', 250);
    memcpy(gm_config.output, long_name, 250);
    gm_config.output[250] = 0;
    long_name[kept - depth] = 0; /* the slash stands already in the depth of the folder */
    close(open(long_name, O_CREAT | O_WRONLY, 0600));
    no_room_at_all(unused);
    if (access(long_name, F_OK) != 0)
        _exit(3);
    unlink(long_name);
    unlink(gm_config.output);
    for (; depth > strlen(scene_path("")); depth -= sizeof(name))
        if (chdir("..") != 0 || rmdir(name) != 0)
            _exit(4);
}

static void a_path_that_is_too_long_is_nobody_elses(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(begin_where_the_path_is_cut, NULL), 0);
}

static void wait_and_put_ten(void *unused)
{
    pass_gate();
    put_ten(unused);
    atomic_fetch_add(&shared->ready, 1);
    pause(); /* stay alive: the dead may be replaced */
}

static void of_many_that_replace_one_name_at_once_none_is_lost(void **unused)
{
    (void)unused;
    enum { CROWD = 8 };
    for (unsigned round = 0; round < 25; round++) {
        pid_t children[CROWD];
        assert_int_equal(scene_play(put_ten, NULL), 0);
        assert_int_equal(pipe(gate), 0);
        for (unsigned n = 0; n < CROWD; n++)
            children[n] = scene_start(wait_and_put_ten, NULL);
        close(gate[0]);
        close(gate[1]); /* go */
        wait_until_ready(CROWD);
        unsigned files = scene_files();
        for (unsigned n = 0; n < CROWD; n++) {
            kill(children[n], SIGKILL);
            waitpid(children[n], NULL, 0);
        }
        assert_int_equal(files, CROWD); /* the old one is gone and no other */
        assert_int_equal(scene_read(TRACE).records, 10);
        end(NULL);
        begin(NULL);
    }
}

/* ---- forks ----------------------------------------------------------------------------------- */

static void fork_and_go_on(void *unused)
{
    (void)unused;
    scene_put_many(0, 1000);
    pid_t child = fork();
    if (child == 0) {
        snprintf(gm_config.output, sizeof(gm_config.output), "%s", scene_path("child.trace"));
        scene_put_many(1, 1000);
        scene_leave();
    }
    for (uint64_t n = 1000; n < 2000; n++)
        scene_put(0, n);
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        _exit(1);
}

static void a_forked_child_starts_over_and_the_parent_goes_on(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(fork_and_go_on, NULL), 0);
    struct scene_found parent = scene_read(TRACE), child = scene_read("child.trace");
    assert_whole(&parent, 2000);
    assert_whole(&child, 1000);
    assert_int_equal(child.header.parent_pid, parent.header.pid);
}

static void fork_inside_a_call(void *unused)
{
    (void)unused;
    struct gm_call call;
    struct gm_record record = scene_record(0, 0);
    fake_stack = record.stack;
    gm_call_begin(&call, record.api, __builtin_frame_address(0));
    pid_t child = fork();
    if (child == 0)
        snprintf(gm_config.output, sizeof(gm_config.output), "%s", scene_path("child.trace"));
    gm_call_record(&call, &record, NULL);
    gm_call_end(&call);
    if (child == 0) {
        scene_put(1, 1);
        scene_leave();
    }
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        _exit(1);
}

static void a_child_forked_inside_a_call_is_not_harmed(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(fork_inside_a_call, NULL), 0);
    assert_int_equal(scene_read(TRACE).records, 1);
    assert_int_equal(scene_read("child.trace").records, 1);
}

/* ---- descriptors ----------------------------------------------------------------------------- */

static void close_all_descriptors(void *unused)
{
    (void)unused;
    scene_put_many(0, 1000);
    /* Not in the middle of a write: what that loses is counted. */
    gm_lock_take(gm_pack_lock(gm_tls.thread));
    for (int descriptor = 3; descriptor < 2000; descriptor++)
        close(descriptor);
    gm_lock_release(gm_pack_lock(gm_tls.thread));
    for (uint64_t n = 1000; n < 2000; n++)
        scene_put(0, n);
}

static void a_closed_descriptor_is_opened_again(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(close_all_descriptors, NULL), 0);
    struct scene_found found = scene_read(TRACE);
    assert_whole(&found, 2000);
}

static void put_another_file_there(void *unused)
{
    (void)unused;
    scene_put_many(0, 1000);
    /* As a host without threads would do it: nobody writes now. */
    gm_lock_take(gm_pack_lock(gm_tls.thread));
    int own = open(scene_path("own"), O_RDWR | O_CREAT, 0600), stolen = gm_file.descriptor;
    if (own < 0 || write(own, "mine", 4) != 4 || dup2(own, stolen) != stolen)
        _exit(1);
    gm_lock_release(gm_pack_lock(gm_tls.thread));
    for (uint64_t n = 1000; n < 2000; n++)
        scene_put(0, n);
    struct stat status;
    if (fstat(stolen, &status) != 0 || status.st_size != 4) /* neither written to nor closed */
        _exit(2);
}

static void a_host_that_takes_the_descriptor_keeps_its_file(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(put_another_file_there, NULL), 0);
    struct scene_found found = scene_read(TRACE);
    assert_whole(&found, 2000);
}

/* ---- a host that closes between the look at the descriptor and its use ------------------------- */

/* The system call before which a host closes the trace's descriptor, once; 0: none. */
static _Atomic long closes_before;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);

static int fallocate_error; /* 0: the system's own answer */
static _Atomic uint32_t opens;

long __wrap_syscall(long number, ...)
{
    long argument[6], expected = number;
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(list, long);
    va_end(list);
    if (number != 0 && argument[0] == gm_file.descriptor &&
        atomic_compare_exchange_strong(&closes_before, &expected, 0))
        close(gm_file.descriptor);
    opens += number == SYS_openat;
    if (number == SYS_fallocate && fallocate_error) {
        errno = fallocate_error;
        return -1;
    }
    return __real_syscall(number, argument[0], argument[1], argument[2], argument[3], argument[4],
                          argument[5]);
}

/* The modules of a stack, all of which a dlclose may have changed: the exit code says what was wrong. */
static void look_up_a_stack(void *unused)
{
    (void)unused;
    void *const memory = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    const uint64_t addresses[] = {(uintptr_t)look_up_a_stack,
                                  (uintptr_t)dlsym(RTLD_DEFAULT, "getenv"),
                                  (uintptr_t)dlsym(RTLD_DEFAULT, "_cmocka_run_group_tests"),
                                  (uintptr_t)memory, (uintptr_t)getauxval(AT_SYSINFO_EHDR)};
    uint64_t offset;
    uint16_t first[4];
    scene_put(0, 0);
    for (int i = 0; i < 3; i++)
        first[i] = gm_module_of(addresses[i], &offset);
    first[3] = gm_module_of(addresses[4], &offset);
    gm_modules_changed();
    opens = 0;
    gm_modules_check(addresses, 5);
    if (opens != 1)
        _exit(1);
    for (int i = 0; i < 3; i++)
        if (!first[i] || gm_module_of(addresses[i], &offset) != first[i])
            _exit(2);
    if (!first[3] || gm_module_of(addresses[4], &offset) != first[3] || opens != 1)
        _exit(3);
    if (gm_module_of(addresses[3], &offset) != 0 || offset != addresses[3] || opens != 2)
        _exit(4);
    gm_modules_check(addresses, 5);
    if (opens != 2)
        _exit(5);
}

static void the_modules_of_a_stack_are_looked_up_in_one_reading(void **state)
{
    (void)state;
    assert_int_equal(scene_play(look_up_a_stack, NULL), 0);
}

enum { TIMES_CLOSED = 5 };

/* Records until the call came, time after time; in the end the ring is as large as it may be. */
static void close_before(void *call)
{
    uint64_t n = 0;
    for (int times = 0; times < TIMES_CLOSED; times++) {
        atomic_store(&closes_before, *(const long *)call);
        for (uint64_t end = n + 5000; n < end; n++)
            scene_put(0, n);
        if (atomic_load(&closes_before) != 0)
            _exit(1);
    }
}

static void nothing_is_lost_where_it_is_closed_at_once(void **unused)
{
    (void)unused;
    long call = SYS_pwrite64;
    assert_int_equal(scene_play(close_before, &call), 0);
    struct scene_found found = scene_read(TRACE);
    assert_whole(&found, TIMES_CLOSED * 5000);
}

static void add_lanes(void *call)
{
    scene_put(0, 0);
    atomic_store(&closes_before, *(const long *)call);
    scene_threads(SCENE_THREADS - 1, put_hundred);
    if (atomic_load(&closes_before) != 0)
        _exit(1);
}

static void a_thread_gets_its_lane_where_it_is_closed_at_once(void **unused)
{
    (void)unused;
    long call = SYS_fallocate;
    assert_int_equal(scene_play(add_lanes, &call), 0);
    struct scene_found found = scene_read(TRACE);
    assert_whole(&found, 1 + (SCENE_THREADS - 1) * 100);
    assert_int_equal(found.header.counters[GM_COUNT_NO_LANE], 0);
}

static void put_thousand(void *unused)
{
    (void)unused;
    for (uint64_t n = 0; n < 1000; n++)
        scene_put(0, n);
}

static void where_fallocate_is_refused_zeros_are_written(void **unused)
{
    static const int errors[] = {EPERM, EINVAL, EACCES, ENOSYS, EOPNOTSUPP, ENODEV};
    (void)unused;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        fallocate_error = errors[i];
        assert_int_equal(scene_play(put_thousand, NULL), 0);
        struct scene_found found = scene_read(TRACE);
        assert_whole(&found, 1000);
        unlink(scene_path(TRACE));
    }
    fallocate_error = 0;
}

static void where_there_is_no_room_for_a_file_there_is_none(void **unused)
{
    static const int errors[] = {ENOSPC, EDQUOT, EFBIG, EIO};
    (void)unused;
    for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++) {
        fallocate_error = errors[i];
        scene_play(put_thousand, NULL);
        assert_int_equal(scene_files(), 0);
    }
    fallocate_error = 0;
}

static void set_the_counter_back(void *unused)
{
    (void)unused;
    scene_put(0, 0);
    gm_clock_is_tsc = true; /* whatever this machine has */
    gm_lock_take(&gm_file.lock);
    gm_file.header->clock_latest[gm_file.header->clock_latest_index].ticks =
        gm_ticks_before() + (UINT64_C(1) << 40);
    gm_trace_update_clock();
    gm_trace_update_clock();
    gm_lock_release(&gm_file.lock);
}

static void a_counter_that_is_set_back_is_noticed(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(set_the_counter_back, NULL), 0);
    struct scene_found found = scene_read(TRACE);
    assert_int_equal(found.header.counters[GM_COUNT_CLOCK_BACK], 1);
}

/* As the drainer on another CPU, when this one stands still for longer than clocks may disagree. */
static void write_the_next_pair(int signal)
{
    (void)signal;
    for (uint64_t since = gm_ticks_before(); gm_ticks_before() - since < 4 * GM_CLOCK_SKEW;)
        ;
    gm_trace_update_clock();
}

static void end_while_pairs_are_written(void *unused)
{
    (void)unused;
    scene_put(0, 0);
    gm_clock_is_tsc = true; /* whatever this machine has */
    signal(SIGALRM, write_the_next_pair);
    const struct itimerval often = {{0, 50}, {0, 50}}, never = {0};
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < 2000000; i++)
        gm_trace_mark_end(GM_END_NONE, 0);
    setitimer(ITIMER_REAL, &never, NULL);
}

static void who_ends_the_process_takes_its_time_last(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(end_while_pairs_are_written, NULL), 0);
    struct scene_found found = scene_read(TRACE);
    assert_int_equal(found.header.counters[GM_COUNT_CLOCK_BACK], 0);
}

static void remove_the_file_and_close(void *unused)
{
    (void)unused;
    scene_without_drainer = true;
    scene_put_many(0, 1000);
    unlink(scene_path(TRACE));
    close(gm_file.descriptor);
    for (uint64_t n = 1000; n < 2000; n++)
        scene_put(0, n);
    if (gm_file.header->counters[GM_COUNT_WRITE_FAILED] == 0)
        _exit(1);
}

static void a_file_that_is_gone_is_given_up(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(remove_the_file_and_close, NULL), 0);
    assert_int_equal(scene_files(), 0);
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *put_one(void *number)
{
    scene_put(0, (uintptr_t)number);
    return NULL;
}

static void thread_after_thread(void *unused)
{
    (void)unused;
    for (uintptr_t n = 0; n < 5000; n++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, put_one, (void *)n) != 0)
            _exit(1);
        pthread_join(thread, NULL);
    }
}

static void threads_one_after_the_other_share_lanes(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(thread_after_thread, NULL), 0);
    struct scene_found found = scene_read(TRACE);
    assert_int_equal(found.damaged, 0);
    assert_int_equal(found.wrong, 0);
    assert_int_equal(found.lost, 0);
    assert_int_equal(found.records, 5000);
    assert_between(found.lanes, 1, 50); /* a joined thread may take a moment to be gone */
}

static void record_in_handler(int unused)
{
    (void)unused;
    scene_put(2, atomic_fetch_add(&shared->committed[2][0], 1)); /* errno is kept, too */
}

static void record_under_a_timer(void *unused)
{
    (void)unused;
    struct sigaction action = {.sa_handler = record_in_handler, .sa_flags = SA_RESTART};
    timer_t timer;
    const struct itimerspec often = {{0, 50000}, {0, 50000}};
    sigaction(SIGALRM, &action, NULL);
    if (timer_create(CLOCK_MONOTONIC, NULL, &timer) != 0 ||
        timer_settime(timer, 0, &often, NULL) != 0)
        _exit(1);
    scene_put_many(0, 2 * MANY);
    timer_delete(timer);
}

static void a_signal_handler_records_or_is_counted(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(record_under_a_timer, NULL), 0);
    struct scene_found found = scene_read(TRACE);
    assert_sound(&found);
    assert_int_equal(found.count[0], 2 * MANY);
    assert_int_equal(found.count[2] + found.header.counters[GM_COUNT_REENTRANT],
                     atomic_load(shared->committed[2]));
    assert_true(atomic_load(shared->committed[2]) > 0);
}

/* A handler that does not come back while other threads go on: none of them may wait for it. */
static _Thread_local sigjmp_buf leave;
static _Thread_local volatile sig_atomic_t may_leave;

static void leave_call(int unused)
{
    (void)unused;
    if (may_leave)
        siglongjmp(leave, 1);
}

static void *put_until_left(void *number)
{
    volatile uint64_t n = 0;
    if (sigsetjmp(leave, 1) == 0) {
        may_leave = 1;
        while (n < MANY)
            scene_put((unsigned)(uintptr_t)number, n++);
    }
    may_leave = 0;
    return NULL;
}

static void leave_calls_by_longjmp(void *unused)
{
    (void)unused;
    struct sigaction action = {.sa_handler = leave_call};
    scene_without_drainer = true; /* so that threads pack themselves nearly all the time */
    alarm(60);
    sigaction(SIGUSR1, &action, NULL);
    for (unsigned round = 0; round < 40; round++) {
        pthread_t thread;
        pthread_create(&thread, NULL, put_until_left, NULL);
        for (volatile unsigned wait = 0; wait < 1000 * round; wait++)
            ;
        pthread_kill(thread, SIGUSR1);
        pthread_join(thread, NULL);
    }
    scene_put_many(1, MANY);
}

static void a_handler_that_leaves_keeps_nobody_waiting(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(leave_calls_by_longjmp, NULL), 0);
    struct scene_found found = scene_read(TRACE);
    assert_int_equal(found.damaged, 0);
    assert_int_equal(found.count[1], MANY);
}

/* ---- whose a lane is -------------------------------------------------------------------------- */

static void *put_with_a_name(void *number)
{
    char name[16] = "worker_0";
    name[7] = (char)('0' + (uintptr_t)number);
    prctl(PR_SET_NAME, (uintptr_t)number == 3 ? "fifteen_letters" : name);
    shared->committed[(uintptr_t)number][1] = (uint64_t)syscall(SYS_gettid);
    scene_put_many((unsigned)(uintptr_t)number, 500); /* packed, too */
    prctl(PR_SET_NAME, "renamed");
    scene_put((unsigned)(uintptr_t)number, 500);
    return NULL;
}

static void threads_with_names(void *unused)
{
    (void)unused;
    for (uintptr_t number = 0; number < 4; number++) { /* each after the end of the one before */
        pthread_t thread;
        if (pthread_create(&thread, NULL, put_with_a_name, (void *)number) != 0)
            _exit(99);
        pthread_join(thread, NULL);
    }
}

/* Once per thread, before all that it records, whether its lane is new or another's before. */
static void each_thread_is_told_once_by_name(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(threads_with_names, NULL), 0);
    static const char *const names[] = {"worker_0", "worker_1", "worker_2", "fifteen_letters"};
    char error[256];
    struct gm_trace *trace = gm_trace_open(scene_path(TRACE), error, sizeof(error));
    assert_non_null(trace);
    struct gm_stream *stream = gm_stream_open(trace);
    struct gm_entry entry;
    unsigned told = 0;
    while (gm_stream_next(stream, &entry)) {
        if (entry.record->type != GM_EVENT_THREAD) {
            assert_int_equal(entry.record->address >> 56, told - 1);
            continue;
        }
        assert_in_range(told, 0, 3);
        struct gm_text name = gm_trace_string(trace, (uint32_t)entry.record->aux);
        assert_int_equal(name.size, strlen(names[told]));
        assert_memory_equal(name.bytes, names[told], name.size);
        assert_int_equal(entry.record->address, told);
        assert_int_equal(entry.record->size, shared->committed[told][1]);
        told++;
    }
    assert_int_equal(told, 4);
    gm_stream_close(stream);
    gm_trace_close(trace);
    struct scene_found found = scene_read(TRACE);
    assert_whole(&found, 4 * 501);
    assert_int_equal(found.lanes, 1);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void fill_strings(void *unused)
{
    (void)unused;
    static char text[5000];
    scene_put(0, 0);
    memset(text, 'x', sizeof(text));
    uint32_t cut = gm_string_intern(text, sizeof(text)), last = 0;
    if (!cut || cut != gm_string_intern(text, GM_STRING_LENGTH_MAX) ||
        gm_file.header->counters[GM_COUNT_STRING_CUT] != 1 || gm_string_intern("", 0) != 0)
        _exit(1);
    for (uint32_t n = 0;; n++) {
        memcpy(text, &n, sizeof(n)); /* any bytes */
        uint32_t reference = gm_string_intern(text, 3000 + n % 1000);
        if (!reference)
            break;
        if (reference <= last || reference != gm_string_intern(text, 3000 + n % 1000))
            _exit(2);
        last = reference;
    }
    if (gm_file.header->string_bytes > GM_STRINGS_MAX ||
        gm_file.header->string_bytes < GM_STRINGS_MAX - 2 * GM_STRING_LENGTH_MAX ||
        gm_file.header->counters[GM_COUNT_STRING_LIMIT] != 1 ||
        gm_file.header->counters[GM_COUNT_GROW_FAILED] != 0)
        _exit(3);
    scene_put(0, 1);
}

static void the_string_table_ends_at_its_bound(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(fill_strings, NULL), 0);
    char error[256];
    struct gm_trace *trace = gm_trace_open(scene_path(TRACE), error, sizeof(error));
    assert_non_null(trace);
    char name[16] = "";
    prctl(PR_GET_NAME, name);
    uint64_t reference = 2 + strlen(name) + 2; /* behind that of the thread */
    assert_int_equal(gm_trace_string(trace, reference).size, GM_STRING_LENGTH_MAX);
    reference += GM_STRING_LENGTH_MAX + 2;
    for (uint32_t n = 0; reference < trace->header.string_bytes; n++) {
        uint64_t size = 3000 + n % 1000, left = GM_STRINGS_PER_EXTENT;
        left -= reference % GM_STRINGS_PER_EXTENT;
        reference += size + 2 > left ? left : 0; /* none crosses an extent */
        struct gm_text text = gm_trace_string(trace, reference);
        assert_int_equal(text.size, size);
        assert_memory_equal(text.bytes, &n, sizeof(n));
        reference += size + 2;
    }
    assert_int_equal(trace->damaged, 0);
    gm_trace_close(trace);
    assert_int_equal(scene_read(TRACE).records, 2);
}

/* Marks until there is no room for more, and then names of code. */
static void fill_marks(void *unused)
{
    (void)unused;
    char text[3000] = "";
    uint32_t marks = 0;
    scene_put(0, 0);
    for (uint32_t n = 0; gm_string_intern_mark(text, sizeof(text)); n++) {
        memcpy(text, &n, sizeof(n));
        marks++;
    }
    const uint64_t *counters = gm_file.header->counters;
    if ((marks + 1) * (sizeof(text) + 2) < GM_MARK_STRINGS_MAX ||
        gm_file.header->string_bytes > GM_STRINGS_MAX / 2 + GM_TABLE_EXTENT * 16 ||
        counters[GM_COUNT_MARK_LIMIT] != 1 || counters[GM_COUNT_STRING_LIMIT] != 0)
        _exit(1);
    uint32_t library = gm_string_intern("/library.so", 11);
    if (!library || gm_string_intern_mark("/library.so", 11) != library ||
        gm_string_intern_mark(text, sizeof(text)) != 0 || counters[GM_COUNT_MARK_LIMIT] != 2)
        _exit(2);
    scene_put(0, 1);
}

static void marks_never_push_out_names_of_code(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(fill_marks, NULL), 0);
    assert_int_equal(scene_read(TRACE).records, 2);
}

/* The file cannot grow for a moment: new entries are refused, and counted as that; then they are
 * taken, and so is one that was refused before. */
static void intern_while_the_file_cannot_grow(void *unused)
{
    (void)unused;
    uint32_t n = 1, name = 0;
    struct rlimit before;
    const uint64_t *counters;
    char text[4000] = "";
    scene_put(0, 0);
    counters = gm_file.header->counters;
    getrlimit(RLIMIT_FSIZE, &before);
    limit_file_size(GM_TRACE_PAGE);
    while (gm_node_intern(0, 0, n, GM_NODE_NATIVE))
        n++;
    if (counters[GM_COUNT_GROW_FAILED] != 1 || counters[GM_COUNT_STACK_LIMIT] != 0)
        _exit(1);
    do
        memcpy(text, &(uint32_t){++name}, sizeof(name));
    while (gm_string_intern(text, sizeof(text)));
    if (counters[GM_COUNT_GROW_FAILED] != 2 || counters[GM_COUNT_STRING_LIMIT] != 0)
        _exit(1);
    setrlimit(RLIMIT_FSIZE, &before);
    for (unsigned tries = 0; !gm_string_intern(text, sizeof(text));
         tries++) { /* not at once, may be */
        if (tries > 60000)
            _exit(2);
        usleep(1000);
    }
    if (gm_node_intern(0, 0, n, GM_NODE_NATIVE) != n || counters[GM_COUNT_STACK_LIMIT] != 0)
        _exit(3);
    scene_put(0, 1);
}

static void a_file_that_cannot_grow_for_a_moment_ends_no_table(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(intern_while_the_file_cannot_grow, NULL), 0);
    struct scene_found found = scene_read(TRACE);
    assert_whole(&found, 2);
}

static void fill_nodes(void *unused)
{
    (void)unused;
    scene_put(0, 0);
    uint32_t parent = 0;
    for (uint32_t n = 1; n < GM_NODES_MAX; n++) {
        uint32_t id = gm_node_intern(parent, 0, n, GM_NODE_NATIVE);
        if (id != n || id != gm_node_intern(parent, 0, n, GM_NODE_NATIVE))
            _exit(1);
        parent = n % 100 ? id : 0;
    }
    if (gm_node_intern(0, 7, 7, GM_NODE_LEAF) != 0 ||
        gm_node_intern(0, 0, 1, GM_NODE_NATIVE) != 1 ||
        gm_file.header->counters[GM_COUNT_STACK_LIMIT] != 1 ||
        gm_file.header->node_count != GM_NODES_MAX)
        _exit(2);
    for (uint32_t n = 1; n < GM_FRAMES_MAX; n++)
        if (gm_frame_intern(2, 2, n) != n)
            _exit(3);
    if (gm_frame_intern(3, 3, 3) != 0 || gm_frame_intern(2, 2, 5) != 5 ||
        gm_file.header->counters[GM_COUNT_FRAME_LIMIT] != 1 ||
        gm_file.header->counters[GM_COUNT_STACK_LIMIT] != 1)
        _exit(4);
    for (uint32_t n = 1; n < GM_MODULES_MAX; n++) {
        uint16_t number;
        struct gm_module *module = gm_module_append(&number);
        if (!module || number != n || gm_module_entry(number) != module)
            _exit(5);
        module->start = n;
        gm_module_publish();
    }
    uint16_t number;
    if (gm_module_append(&number) || gm_file.header->module_count != GM_MODULES_MAX)
        _exit(6);
    scene_put(0, 1);
}

static void stacks_frames_and_modules_end_at_their_bounds(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(fill_nodes, NULL), 0);
    char error[256];
    struct gm_trace *trace = gm_trace_open(scene_path(TRACE), error, sizeof(error));
    assert_non_null(trace);
    for (uint32_t n = 1; n < GM_NODES_MAX; n++)
        assert_true(gm_trace_node(trace, n)->address == n && gm_trace_node(trace, n)->parent < n);
    for (uint32_t n = 1; n < GM_FRAMES_MAX; n++)
        assert_true(gm_trace_script_frame(trace, n)->line == n);
    for (uint32_t n = 1; n < GM_MODULES_MAX; n++)
        assert_true(gm_trace_module(trace, n)->start == n);
    gm_trace_close(trace);
    struct scene_found found = scene_read(TRACE);
    assert_whole(&found, 2);
}

static uint32_t ids[SCENE_THREADS][20000];

static void *intern_the_same(void *number)
{
    uintptr_t thread = (uintptr_t)number;
    scene_put((unsigned)thread, 0);
    for (uint32_t n = 0; n < 20000; n++) {
        char text[32];
        int size = snprintf(text, sizeof(text), "string %u", n);
        uint32_t string = gm_string_intern(text, (size_t)size);
        ids[thread][n] = gm_node_intern(0, 0, string, GM_NODE_NATIVE);
    }
    return NULL;
}

static void four_threads_intern_the_same(void *unused)
{
    (void)unused;
    scene_threads(4, intern_the_same);
    for (unsigned thread = 1; thread < 4; thread++)
        if (memcmp(ids[thread], ids[0], sizeof(ids[0])) != 0)
            _exit(1);
    if (gm_file.header->node_count != 20001)
        _exit(2);
}

static void threads_that_intern_the_same_get_the_same(void **unused)
{
    (void)unused;
    assert_int_equal(scene_play(four_threads_intern_the_same, NULL), 0);
}

/* ---- configuration --------------------------------------------------------------------------- */

static void bad_values_leave_the_defaults(void **unused)
{
    (void)unused;
    static char long_output[700] = "GPUMEM_OUTPUT=", long_run[100] = "GPUMEM_RUN=";
    memset(long_output + strlen(long_output), 'x', 600);
    memset(long_run + strlen(long_run), 'x', 60);
    static char *const bad[] = {"GPUMEM_RING=",
                                "GPUMEM_RING=many",
                                "GPUMEM_RING=-1",
                                "GPUMEM_RING=1",
                                "GPUMEM_RING=3071",
                                "GPUMEM_RING=9999999G",
                                "GPUMEM_RING=64KB",
                                "GPUMEM_RING=4096G",
                                "GPUMEM_RING=99999999999999999999",
                                "GPUMEM_DEPTH=0",
                                "GPUMEM_DEPTH=257",
                                "GPUMEM_DEPTH=x",
                                "GPUMEM_DEPTH=",
                                "GPUMEM_STACKS=",
                                "GPUMEM_STACKS=both",
                                "GPUMEM_STACKS=native,both",
                                "GPUMEM_ON_FULL=",
                                "GPUMEM_ON_FULL=dropping",
                                "GPUMEM_TORCH=maybe",
                                "GPUMEM_OUTPUT=",
                                "GPUMEM_RUNAWAY=1",
                                "GPUMEM_RIN=1M",
                                "GPUMEM_RING",
                                long_output,
                                long_run};
    gm_config.ring_records = 8192;
    gm_config.command_line_size = 0;
    struct gm_config before = gm_config;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char *const environment[] = {bad[i], NULL};
        gm_config_read(NULL, environment);
        if (memcmp(&before, &gm_config, sizeof(before)) != 0)
            fail_msg("%s", bad[i]);
    }
}

static void good_values_are_taken(void **unused)
{
    (void)unused;
    static char *const good[] = {
        "GPUMEM_RING=1M",        "GPUMEM_DEPTH=1", "GPUMEM_STACKS=python", "GPUMEM_ON_FULL=drop",
        "GPUMEM_OUTPUT=x.trace", "GPUMEM_RUN=r",   "GPUMEM_TORCH=0",       NULL};
    struct gm_config before = gm_config;
    gm_config_read(NULL, good);
    struct gm_config now = gm_config;
    gm_config = before;
    assert_int_equal(now.ring_records, 16384); /* of 48 bytes: 768 KiB, the power below */
    assert_int_equal(now.depth, 1);
    assert_true(now.python_stacks && !now.native_stacks && now.drop_on_full && !now.torch);
    assert_string_equal(now.output, "x.trace");
    assert_string_equal(now.run_id, "r");
}

static void names_of_traces_are_expanded(void **unused)
{
    (void)unused;
    static const struct {
        const char *output, *path;
    } cases[] = {
        {"gpumem.%e.%p.trace", "gpumem.prog.4242.trace"},
        {"%h/%q{RANK}.trace", "node7/3.trace"},
        {"%q{EMPTY}|%q{UNSET}|%q{}", "||"},
        {"100%%.%%p", "100%.%p"},
        {"%x%", "%x%"},
        {"%q{RANK", "%q{RANK"},
        {"%qRANK}", "%qRANK}"},
        {"%", "%"},
        {"%%%p%", "%4242%"},
    };
    static char *values[] = {"RANK=3", "RANKS=4", "EMPTY=", NULL};
    char path[64], **before = environ;
    environ = values;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        strcpy(gm_config.output, cases[i].output);
        gm_environment_look(gm_config.output);
        assert_true(gm_config_path(path, sizeof(path), "prog", "node7", 4242));
        assert_string_equal(path, cases[i].path);
    }
    environ = before;
    strcpy(gm_config.output, "%p");
    assert_true(gm_config_path(path, 5, "prog", "node7", 4242));
    assert_false(gm_config_path(path, 4, "prog", "node7", 4242));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    const struct CMUnitTest tests[] = {
        TEST(full_rings_lose_nothing_with_the_drainer),
        TEST(full_rings_lose_nothing_without_a_drainer),
        TEST(every_field_survives_packing_at_its_extremes),
        TEST(random_records_survive_packing),
        TEST(a_ring_is_looked_at_by_what_waits_in_it),
        TEST(the_drainer_comes_from_a_nap_and_from_sleep),
        TEST(who_has_no_cpu_to_spare_packs_at_half_a_ring),
        TEST(a_full_ring_that_drops_counts_exactly_what_is_missing),
        TEST(dropping_is_left_to_a_drainer_that_exists),
        TEST(a_kill_at_any_moment_loses_no_committed_record),
        TEST(a_kill_while_rings_grow_loses_no_committed_record),
        TEST(a_ring_grows_with_its_records),
        TEST(a_file_size_limit_does_not_kill_the_host),
        TEST(a_signal_of_the_hosts_own_stays_pending),
        TEST(a_failed_write_leaves_nothing_behind),
        TEST(a_thread_without_a_lane_is_counted_and_the_trace_stays_whole),
        TEST(a_full_disk_is_counted_and_harms_nobody),
        TEST(a_trace_that_cannot_be_begun_leaves_no_file),
        TEST(what_copies_on_write_is_not_safe),
        TEST(a_file_that_is_no_trace_is_kept),
        TEST(a_trace_of_the_dead_is_replaced),
        TEST(a_trace_of_the_same_run_is_kept),
        TEST(a_trace_of_another_host_is_kept),
        TEST(a_trace_of_a_container_of_the_same_name_is_kept),
        TEST(a_trace_of_the_living_is_kept),
        TEST(a_trace_of_who_cannot_be_seen_is_kept),
        TEST(a_fifo_is_no_place_for_a_trace),
        TEST(a_path_that_is_too_long_is_nobody_elses),
        TEST(of_many_that_replace_one_name_at_once_none_is_lost),
        TEST(a_forked_child_starts_over_and_the_parent_goes_on),
        TEST(a_child_forked_inside_a_call_is_not_harmed),
        TEST(a_closed_descriptor_is_opened_again),
        TEST(nothing_is_lost_where_it_is_closed_at_once),
        TEST(a_thread_gets_its_lane_where_it_is_closed_at_once),
        TEST(a_host_that_takes_the_descriptor_keeps_its_file),
        TEST(where_fallocate_is_refused_zeros_are_written),
        TEST(where_there_is_no_room_for_a_file_there_is_none),
        TEST(a_counter_that_is_set_back_is_noticed),
        TEST(who_ends_the_process_takes_its_time_last),
        TEST(a_file_that_is_gone_is_given_up),
        TEST(threads_one_after_the_other_share_lanes),
        TEST(a_signal_handler_records_or_is_counted),
        TEST(a_handler_that_leaves_keeps_nobody_waiting),
        TEST(each_thread_is_told_once_by_name),
        TEST(the_string_table_ends_at_its_bound),
        TEST(marks_never_push_out_names_of_code),
        TEST(a_file_that_cannot_grow_for_a_moment_ends_no_table),
        TEST(stacks_frames_and_modules_end_at_their_bounds),
        TEST(the_modules_of_a_stack_are_looked_up_in_one_reading),
        TEST(threads_that_intern_the_same_get_the_same),
        TEST(bad_values_leave_the_defaults),
        TEST(good_values_are_taken),
        TEST(names_of_traces_are_expanded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
