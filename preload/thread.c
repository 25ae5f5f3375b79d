/* See thread.h. */
#include "thread.h"
#include <string.h>
#include <sys/mman.h>
#include "config.h"
#include "loader.h"
#include "own_thread.h"
#include "process.h"
#include "seal.h"
#include "stack.h"
#include "tables.h"
#include "trace_file.h"

_Thread_local struct gm_tls gm_tls __attribute__((tls_model("initial-exec")));

static struct gm_thread *_Atomic threads[GM_LANES_MAX];
static _Atomic uint32_t thread_count;

uint32_t gm_thread_count(void)
{
    return atomic_load_explicit(&thread_count, memory_order_acquire);
}

struct gm_thread *gm_thread_at(uint32_t number)
{
    return atomic_load_explicit(&threads[number], memory_order_relaxed);
}

static uint32_t current_tid(void)
{
    return (uint32_t)syscall(SYS_gettid);
}

/*
 * A lane whose owner has ended is free. A lane of "this" tid belongs to a former thread of that
 * number; that its claim gets a new number keeps out whoever saw the former thread dead and comes
 * for the lane only now.
 */
static struct gm_thread *take_over(uint32_t tid)
{
    long process = syscall(SYS_getpid);
    for (uint32_t number = 0; number < gm_thread_count(); number++) {
        struct gm_thread *thread = gm_thread_at(number);
        uint64_t owner = atomic_load_explicit(&thread->owner, memory_order_relaxed);
        uint32_t owner_tid = (uint32_t)owner;
        if (owner_tid != tid && (syscall(SYS_tgkill, process, owner_tid, 0) == 0 || errno != ESRCH))
            continue;
        uint64_t claim = ((owner >> 32) + 1) << 32 | tid;
        if (atomic_compare_exchange_strong(&thread->owner, &owner, claim))
            return thread;
    }
    return NULL;
}

static struct gm_thread *create(uint32_t tid)
{
    struct gm_thread *thread = NULL;
    uint64_t length = sizeof(struct gm_extent) + sizeof(struct gm_lane) +
                      (uint64_t)gm_config.ring_records * sizeof(struct gm_record);
    length = (length + GM_TRACE_PAGE - 1) & ~(uint64_t)(GM_TRACE_PAGE - 1);
    size_t private_size = sizeof(*thread) + gm_stack_size();
    gm_lock_take(&gm_file.lock);
    uint32_t number = gm_thread_count();
    void *memory = MAP_FAILED;
    struct gm_extent *extent = NULL;
    if (number < GM_LANES_MAX)
        memory =
            mmap(NULL, private_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory != MAP_FAILED && !(extent = gm_trace_map_extent(GM_EXTENT_LANE, number, length)))
        munmap(memory, private_size);
    if (extent) {
        thread = memory;
        thread->lane = (struct gm_lane *)(extent + 1);
        thread->records = (struct gm_record *)(thread->lane + 1);
        thread->lane->capacity = gm_config.ring_records;
        thread->mask = gm_config.ring_records - 1;
        thread->number = number;
        thread->stack = (struct gm_stack *)(thread + 1);
        atomic_store_explicit(&thread->owner, tid, memory_order_relaxed);
        gm_trace_publish_extent(
            extent, GM_LANE_CONSTANT); /* with its capacity: a lane without one is damage */
        gm_file.header->lane_count = number + 1;
        gm_unseal();
        atomic_store_explicit(&threads[number], thread, memory_order_relaxed);
        atomic_store_explicit(&thread_count, number + 1, memory_order_release);
    }
    gm_lock_release(&gm_file.lock);
    return thread;
}

struct gm_thread *gm_thread_claim(void)
{
    uint32_t tid = current_tid();
    gm_count(GM_COUNT_REENTRANT, gm_tls.missed);
    gm_tls.missed = 0;
    struct gm_thread *thread = take_over(tid);
    if (thread) {
        /* The kernel says that the former owner is gone; its last call says what it wrote here. */
        __atomic_load_n(&thread->depth, __ATOMIC_ACQUIRE);
        gm_stack_reset(thread->stack);
    } else {
        thread = create(tid);
    }
    if (!thread) {
        gm_count(GM_COUNT_NO_LANE, 1);
        return NULL;
    }
    /* What the former owner reserved but did not commit never was. */
    thread->head = __atomic_load_n(&thread->lane->head, __ATOMIC_ACQUIRE);
    thread->limit = thread->head;
    __atomic_store_n(&thread->depth, 0, __ATOMIC_RELAXED);
    thread->around.outermost = 0;
    thread->stack_low = thread->stack_high = 0;
    __atomic_store_n(&thread->committing, false, __ATOMIC_RELAXED);
    gm_loader_thread_came();
    return thread;
}

/*
 * Before the ring is half full nothing is to be done. From there on to its end the drainer is
 * reminded of it and the tail looked at again each eighth of the ring: it may have been packed by
 * then, or the drainer may have left what came after it had looked.
 */
static uint64_t next_look(const struct gm_thread *thread, uint64_t tail)
{
    uint64_t capacity = thread->mask + 1;
    uint64_t half = tail + capacity / 2, next = thread->head + capacity / 8, end = tail + capacity;
    if (thread->head < half)
        return half;
    return next < end ? next : end;
}

/* For the few instructions that another thread may be away from its commit, or until it runs. */
static void stand_aside(unsigned times_before)
{
    const struct timespec shortly = {.tv_nsec = 100000};
    if (times_before < 100)
        syscall(SYS_sched_yield);
    else
        syscall(SYS_nanosleep, &shortly, NULL);
}

/*
 * Whether as many threads record without rest as there are CPUs, this one among them. The drainer
 * would only take one's place, and have the records come there from another's cache; who packs its
 * own has them at hand. (Two threads on two CPUs that do nothing but allocate: 27 ns of wall time
 * per event, 30 with the drainer.)
 */
static bool all_cpus_record(struct gm_thread *thread)
{
    const uint64_t short_ns = 10000000; /* half a ring in it: 800,000 events a second */
    uint64_t now = gm_ticks_before(), before = thread->half_full;
    __atomic_store_n(&thread->half_full, now, __ATOMIC_RELAXED);
    if (gm_trace_ticks_to_ns(now - before) > short_ns)
        return false;
    uint32_t cpus = gm_own_cpu_count(), busy = 0, count = gm_thread_count();
    for (uint32_t number = 0; number < count && busy < cpus; number++) {
        uint64_t then = __atomic_load_n(&gm_thread_at(number)->half_full, __ATOMIC_RELAXED);
        busy += then > now || gm_trace_ticks_to_ns(now - then) <= short_ns;
    }
    return busy == cpus;
}

static void relieve(struct gm_thread *thread)
{
    if (gm_config.flight || gm_config.drop_on_full || !all_cpus_record(thread)) {
        gm_drain_wake();
    } else if (gm_lock_try(gm_pack_lock(thread))) { /* else at the next look */
        gm_pack(thread);
        gm_lock_release(gm_pack_lock(thread));
        thread->limit = next_look(thread, thread->lane->tail);
    }
}

bool gm_thread_look(struct gm_thread *thread)
{
    if (!gm_process_ready(&gm_tls)) /* forked meanwhile: see gm_process_forked */
        return false;
    struct gm_lane *lane = thread->lane;
    for (unsigned tries = 0;; tries++) {
        uint64_t tail = __atomic_load_n(&lane->tail, __ATOMIC_ACQUIRE);
        thread->limit = next_look(thread, tail);
        if (thread->head < thread->limit) {
            if (thread->head - tail > thread->mask / 2)
                relieve(thread);
            return true;
        }
        if (gm_config.drop_on_full && gm_drain_wake()) {
            gm_count(GM_COUNT_DROPPED, 1);
            return false;
        }
        if (tries > 0)
            stand_aside(tries); /* see gm_flight_fold */
        /* Whoever has the lock is packing some lane and will be done; then this one is ours to
         * pack. */
        gm_lock_take(gm_pack_lock(thread));
        if (thread->head - lane->tail > thread->mask)
            gm_pack(thread);
        gm_lock_release(gm_pack_lock(thread));
    }
}

void gm_threads_forget(void)
{
    atomic_store_explicit(&thread_count, 0, memory_order_relaxed);
}
