/* See ring_full.h. */
#include "ring/ring_full.h"
#include "base/config.h"
#include "base/count.h"
#include "base/own_thread.h"
#include "base/ticks.h"
#include "ring/drain.h"
#include "ring/pack.h"
#include "ring/sink.h"

/* At half a ring: not if who packs just now is in the way. */
static bool try_to_grow(struct gm_thread *thread)
{
    if (!gm_lane_may_grow(thread) || !gm_lock_try(gm_pack_lock(thread)))
        return false;
    bool grown = gm_lane_grow(thread);
    gm_lock_release(gm_pack_lock(thread));
    return grown;
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
    if (gm_clock_ticks_to_ns(now - before) > short_ns)
        return false;
    uint32_t cpus = gm_own_cpu_count(), busy = 0, count = gm_thread_count();
    for (uint32_t number = 0; number < count && busy < cpus; number++) {
        uint64_t then = __atomic_load_n(&gm_thread_at(number)->half_full, __ATOMIC_RELAXED);
        busy += then > now || gm_clock_ticks_to_ns(now - then) <= short_ns;
    }
    return busy == cpus;
}

static void relieve(struct gm_thread *thread)
{
    if (gm_sink->merges_lanes || gm_config.drop_on_full || !all_cpus_record(thread)) {
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
    for (unsigned tries = 0;; tries++) {
        uint64_t tail = __atomic_load_n(&thread->lane->tail, __ATOMIC_ACQUIRE);
        if (thread->head - tail > thread->mask / 2 && try_to_grow(thread))
            continue;
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
            stand_aside(tries); /* see struct gm_sink, ready */
        /* Whoever has the lock is packing some lane and will be done; then this one is ours to
         * pack. */
        gm_lock_take(gm_pack_lock(thread));
        if (thread->head - thread->lane->tail > thread->mask && !gm_lane_grow(thread))
            gm_pack(thread);
        gm_lock_release(gm_pack_lock(thread));
    }
}
