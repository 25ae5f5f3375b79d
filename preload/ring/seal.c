/* See seal.h. */
#include "ring/seal.h"
#include "base/change.h"
#include "ring/sink.h"
#include "writer/tables.h"
#include "writer/trace_file.h"
#include <gpumem/checksum.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <time.h>

/*
 * Makes all threads see that the process ends before they take up their next record, and shows
 * which are at one now. False where the kernel will not, and there is more than one thread.
 */
static bool tell_threads(void)
{
    if (gm_thread_count() <= 1)
        return true;
    syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0 ||
           syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
}

static bool is_at_rest(const struct gm_thread *thread)
{
    return !__atomic_load_n(&thread->committing, __ATOMIC_ACQUIRE);
}

static bool is_changing(void)
{
    return atomic_load(&gm_changes) != 0;
}

#define YIELDS 100 /* tries that cost nothing if the other thread runs, */
#define SLEEPS                                                                                     \
    100 /* and such that give it time, 20 ms in all: on a busy machine it may wait for a processor */

static void wait_a_moment(int tries)
{
    struct timespec moment = {.tv_nsec = 200000};
    if (tries < YIELDS)
        syscall(SYS_sched_yield);
    else
        syscall(SYS_nanosleep, &moment, NULL);
}

/* Lets records and changes come to their end that were begun before. */
static void let_finish(void)
{
    int tries = 0;
    for (; tries < YIELDS + SLEEPS && is_changing(); tries++)
        wait_a_moment(tries);
    for (uint32_t number = 0; number < gm_thread_count(); number++)
        for (; tries < YIELDS + SLEEPS && !is_at_rest(gm_thread_at(number)); tries++)
            wait_a_moment(tries);
}

static bool seal_lanes(const struct gm_thread *own)
{
    for (uint32_t number = 0; number < gm_thread_count(); number++) {
        struct gm_thread *thread = gm_thread_at(number);
        if (thread != own && !is_at_rest(thread))
            return false;
        if (!thread->has_parts)
            thread->parts = gm_lane_parts(thread->lane);
        thread->has_parts = true;
        struct gm_extent *extent = (struct gm_extent *)thread->lane - 1;
        extent->seal = gm_lane_seal(thread->lane, thread->parts);
    }
    return true;
}

/* Caller holds the lock. Whoever begins a change meanwhile waits for it to unseal. */
static void seal_all(const struct gm_thread *own)
{
    struct gm_trace_header *header = gm_file.header;
    __atomic_store_n(&header->seal, 0, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (!(gm_process_ending & GM_ENDING_SEALED) || is_changing() || !seal_lanes(own))
        return;
    gm_tables_seal();
    gm_sink->seal();
    __atomic_store_n(&header->seal, gm_header_seal(header), __ATOMIC_RELEASE);
}

void gm_seal(void)
{
    __atomic_fetch_or(&gm_process_ending, GM_ENDING_SEALED, __ATOMIC_SEQ_CST);
    if (!tell_threads())
        return;
    let_finish();
    gm_lock_take(&gm_seal_lock);
    seal_all(NULL);
    gm_lock_release(&gm_seal_lock);
}

void gm_seal_take_back(void)
{
    gm_lock_take(&gm_seal_lock);
    __atomic_fetch_and(&gm_process_ending, (uint8_t)~GM_ENDING_SEALED, __ATOMIC_SEQ_CST);
    __atomic_store_n(&gm_file.header->seal, 0, __ATOMIC_RELEASE);
    for (uint32_t number = 0; number < gm_thread_count(); number++)
        gm_thread_at(number)->has_parts = false;
    gm_lock_release(&gm_seal_lock);
}

void gm_seal_tell(uint32_t status)
{
    struct gm_trace_header *header = gm_file.header;
    gm_lock_take(&gm_seal_lock);
    bool was_sealed = header->seal != 0;
    __atomic_store_n(&header->seal, 0, __ATOMIC_RELEASE);
    __atomic_store_n(&header->status, status, __ATOMIC_RELEASE);
    if (was_sealed)
        __atomic_store_n(&header->seal, gm_header_seal(header), __ATOMIC_RELEASE);
    gm_lock_release(&gm_seal_lock);
}

/* ---- one record behind the end --------------------------------------------------------------- */

/* What the slot of the next record and the one behind it add to the parts of their lane. */
static uint64_t next_parts(const struct gm_thread *thread, uint64_t next)
{
    uint64_t sum = 0, count = gm_lane_slots(thread->lane);
    for (uint64_t n = next; n < next + 2; n++)
        if ((n & thread->mask) < count)
            sum += gm_slot_part(&thread->records[n & thread->mask], n & thread->mask);
    return sum;
}

void gm_seal_open(struct gm_thread *thread)
{
    gm_lock_take(&gm_seal_lock);
    __atomic_store_n(&gm_file.header->seal, 0, __ATOMIC_RELEASE);
    thread->parts -= next_parts(thread, thread->head);
    thread->late_from = thread->head;
    gm_lock_release(&gm_seal_lock);
}

void gm_seal_close(struct gm_thread *thread)
{
    gm_lock_take(&gm_seal_lock);
    thread->parts += next_parts(thread, thread->late_from);
    seal_all(thread);
    gm_lock_release(&gm_seal_lock);
}

void gm_seal_forget(void)
{
    gm_lock_forget(&gm_seal_lock);
    atomic_store(&gm_changes, 0);
    gm_process_ending &= (uint8_t)~GM_ENDING_SEALED;
}
