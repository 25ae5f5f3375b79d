/* See drain.h. */
#include "ring/drain.h"
#include "base/config.h"
#include "base/own_thread.h"
#include "ring/lane.h"
#include "ring/pack.h"
#include <linux/futex.h>

static _Atomic uint32_t work;  /* futex: whether rings want packing */
static _Atomic uint32_t state; /* of the thread */
static _Atomic uint32_t rest;  /* of the thread, too; only it writes that */

enum { NO_WORK, WORK, URGENT_WORK };
enum { NONE, STARTING, TRIED, RUNNING };
enum { AWAKE, NAP, ASLEEP };

static void drain_all(void)
{
    for (uint32_t number = 0; number < gm_thread_count(); number++) {
        struct gm_thread *thread = gm_thread_at(number);
        /* Small rests stay in the ring, where they are as safe and a block packs better. */
        const struct gm_lane *lane;
        uint64_t tail, before = UINT64_MAX;
        while ((tail = __atomic_load_n(&(lane = gm_thread_lane(thread))->tail, __ATOMIC_ACQUIRE)) !=
                   before &&
               gm_lane_is_half_full(lane)) {
            gm_lock_take(gm_pack_lock(thread));
            gm_pack(thread);
            gm_lock_release(gm_pack_lock(thread));
            before = tail;
        }
    }
}

/*
 * Who wakes a sleeping thread pays for it, in a virtual machine 20 us: 2.4 ns for each event of
 * half a ring. So after work the drainer only naps for a while, 0.1 ms to 6.4 ms, and is woken from
 * that only if work is found undone a second time. (Not where a ring that fills meanwhile drops.)
 * False when it is to leave.
 */
static bool wait_for_work(unsigned looks)
{
    bool is_nap = looks < 7 && !gm_config.drop_on_full;
    const struct timespec nap = {.tv_nsec = is_nap ? 100000L << looks : 0},
                          sleep = {.tv_sec = GM_OWN_WAIT_MAX / 1000000000};
    atomic_store(&rest, is_nap ? NAP : ASLEEP);
    if (gm_own_is_told_to_leave())
        return false;
    long woken =
        syscall(SYS_futex, &work, FUTEX_WAIT_PRIVATE, NO_WORK, is_nap ? &nap : &sleep, NULL, 0);
    atomic_store(&rest, AWAKE);
    return is_nap || woken == 0 || errno != ETIMEDOUT || !gm_own_must_leave();
}

static void drain(void)
{
    unsigned looks = 0;
    gm_gate_close(&gm_tls); /* nothing this thread does is the host's */
    do {
        if (atomic_exchange(&work, NO_WORK) != NO_WORK) {
            drain_all();
            looks = 0;
        }
    } while (wait_for_work(looks++));
    /* From here on each thread packs its own; one that drops when its ring is full must know. */
    atomic_store_explicit(&state, TRIED, memory_order_relaxed);
}

static void wake_drainer(void)
{
    atomic_store(&work, URGENT_WORK);
    syscall(SYS_futex, &work, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static struct gm_own_thread drainer = {
    .name = "gpumem", .stack_size = 1024 * 1024, .run = drain, .wake = wake_drainer};

/* Publishes work, then reads `rest`; the drainer does the reverse (it stores `rest`, and the kernel
 * checks `work` before it sleeps), so no wake-up is lost. */
static bool must_wake(void)
{
    uint32_t before = NO_WORK;
    if (atomic_compare_exchange_strong(&work, &before, WORK))
        return atomic_load(&rest) == ASLEEP;
    return before == WORK && atomic_load(&rest) == NAP &&
           atomic_compare_exchange_strong(&work, &before, URGENT_WORK);
}

bool gm_drain_wake(void)
{
    uint32_t before = NONE;
    if (atomic_compare_exchange_strong(&state, &before, STARTING)) {
        uint32_t after = gm_own_start(&drainer) ? RUNNING : TRIED;
        before = STARTING; /* unless it has run and left already */
        atomic_compare_exchange_strong(&state, &before, after);
    }
    if (must_wake())
        syscall(SYS_futex, &work, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    return atomic_load_explicit(&state, memory_order_relaxed) == RUNNING;
}

void gm_drain_forget(void)
{
    atomic_store(&state, NONE);
    atomic_store(&work, NO_WORK);
    atomic_store(&rest, AWAKE);
}
