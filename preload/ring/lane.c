/* See lane.h. */
#include "ring/lane.h"
#include "base/change.h"
#include "base/config.h"
#include "base/count.h"
#include "base/room.h"
#include "stack/loader_work.h"
#include "stack/stack.h"
#include "writer/trace_file.h"
#include <gpumem/checksum.h>
#include <sys/mman.h>

/* Of GM_LANES_MAX lanes, once there is one. */
static struct gm_thread *_Atomic *threads;
static _Atomic uint64_t *owners; /* of lanes: claims so far << 32 | tid, 0 none yet */
static _Atomic uint32_t thread_count;
static _Atomic uint32_t next_new;       /* lane that never had an owner, unless thread_count */
static _Atomic uint32_t next_looked_at; /* lane, by who joins next */
static _Atomic uint32_t joined;         /* threads that claimed a lane, ever */

static uint64_t rings_bytes; /* of all rings but first ones; changed under gm_file.lock */

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
 * Takes the lane if its owner has ended. A lane whose owner has the caller's own tid belongs to a
 * former thread of that number. Each claim has a number of its own: it defeats a thread that saw the
 * old owner dead but only now tries to take the lane (ABA).
 */
static bool take_over(uint32_t number, long process, uint32_t tid)
{
    uint64_t owner = atomic_load_explicit(&owners[number], memory_order_relaxed);
    uint32_t owner_tid = (uint32_t)owner;
    if (owner_tid == 0) /* its first owner is about to be written */
        return false;
    if (owner_tid != tid && (syscall(SYS_tgkill, process, owner_tid, 0) == 0 || errno != ESRCH))
        return false;
    uint64_t claim = ((owner >> 32) + 1) << 32 | tid;
    return atomic_compare_exchange_strong(&owners[number], &owner, claim);
}

/* Each search looks at the next few lanes. So joining costs the same however many threads there are,
 * and a lane that is free is found after at most one round. */
#define LOOKED_AT 8u

/* `count`: of the lanes that had an owner. */
static struct gm_thread *find_free(uint32_t tid, uint32_t count)
{
    long process = syscall(SYS_getpid);
    for (uint32_t looks = count < LOOKED_AT ? count : LOOKED_AT; looks > 0; looks--) {
        uint32_t number =
            atomic_fetch_add_explicit(&next_looked_at, 1, memory_order_relaxed) % count;
        if (take_over(number, process, tid))
            return gm_thread_at(number);
    }
    return NULL;
}

/* Bytes of the extent of a lane with a ring of so many records. */
static uint64_t lane_length(uint64_t records)
{
    uint64_t length =
        sizeof(struct gm_extent) + sizeof(struct gm_lane) + records * sizeof(struct gm_record);
    return (length + GM_TRACE_PAGE - 1) & ~(uint64_t)(GM_TRACE_PAGE - 1);
}

static struct gm_lane *lane_in(struct gm_extent *extent)
{
    return (struct gm_lane *)(extent + 1);
}

/* The seal of a lane that nobody writes to. */
static void seal_for_good(struct gm_lane *lane)
{
    ((struct gm_extent *)lane - 1)->seal = gm_lane_seal(lane, gm_lane_parts(lane));
}

/* As many as there are, so that a program with few threads has a small file and one with thousands
 * asks for room now and then. Where there is no room for them all, one. */
#define LANES_AT_ONCE 64u

/* Whole pages, of which a thread touches few: a huge page for them would be zeroed for nothing. */
static char *map_threads(size_t size)
{
    char *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, size, MADV_NOHUGEPAGE);
    return at;
}

static void make_thread(struct gm_thread *thread, struct gm_lane *lane, uint32_t number)
{
    thread->lane = lane;
    thread->records = (struct gm_record *)(lane + 1);
    thread->mask = lane->capacity - 1;
    thread->number = number;
    thread->stack = (struct gm_stack *)(thread + 1);
    atomic_store_explicit(&owners[number], 0, memory_order_relaxed);
    atomic_store_explicit(&threads[number], thread, memory_order_relaxed);
}

/* That many lanes, which belong to nobody yet. */
static bool make_lanes(uint32_t number, uint32_t count)
{
    uint64_t records = gm_config.ring_records < GM_FIRST_RING_RECORDS ? gm_config.ring_records
                                                                      : GM_FIRST_RING_RECORDS;
    size_t size = (sizeof(struct gm_thread) + gm_stack_size() + GM_TRACE_PAGE - 1) &
                  ~(size_t)(GM_TRACE_PAGE - 1);
    char *memory = NULL;
    if (GM_ROOM(&threads, GM_LANES_MAX) && GM_ROOM(&owners, GM_LANES_MAX))
        memory = map_threads(count * size);
    if (!memory)
        return false;
    struct gm_extent *first =
        gm_trace_map_extents(GM_EXTENT_LANE, number, lane_length(records), count);
    if (!first) {
        munmap(memory, count * size);
        return false;
    }
    for (uint32_t n = 0; n < count; n++) {
        struct gm_lane *lane = lane_in(gm_extent_behind(first, n));
        lane->capacity = records;
        make_thread((struct gm_thread *)(void *)(memory + n * size), lane, number + n);
    }
    gm_trace_publish_extents(first, count, GM_LANE_CONSTANT); /* without a capacity: damage */
    gm_file.header->lane_count = number + count;
    atomic_store_explicit(&thread_count, number + count, memory_order_release);
    return true;
}

/* With gm_file.lock. False: there are as many as there may be, or there is no room. */
static bool make_more(void)
{
    uint32_t number = gm_thread_count();
    if (atomic_load_explicit(&next_new, memory_order_relaxed) < number)
        return true; /* another thread was faster */
    uint32_t count = number < LANES_AT_ONCE ? number : LANES_AT_ONCE;
    count = count == 0 ? 1 : count > GM_LANES_MAX - number ? GM_LANES_MAX - number : count;
    if (count == 0) {
        gm_count(GM_COUNT_LANE_LIMIT, 1);
        return false;
    }
    gm_change_begin();
    bool made = make_lanes(number, count) || (count > 1 && make_lanes(number, 1));
    gm_change_end();
    if (!made)
        gm_count(GM_COUNT_NO_LANE, 1);
    return made;
}

static struct gm_thread *take_new(uint32_t tid)
{
    uint32_t number = atomic_load_explicit(&next_new, memory_order_relaxed);
    while (number < gm_thread_count())
        if (atomic_compare_exchange_weak(&next_new, &number, number + 1)) {
            atomic_store_explicit(&owners[number], tid, memory_order_relaxed);
            return gm_thread_at(number);
        }
    return NULL;
}

static struct gm_thread *create_lane(uint32_t tid)
{
    struct gm_thread *thread = NULL;
    for (bool has_more = true; has_more && !(thread = take_new(tid));) {
        gm_lock_take(&gm_file.lock);
        has_more = make_more();
        gm_lock_release(&gm_file.lock);
    }
    return thread;
}

/* What a former owner learnt is kept if it did not end in the middle of a call. */
static void take_stack_over(struct gm_thread *thread)
{
    /* The kernel says that the owner is gone; its last call says what it wrote here. */
    if (__atomic_load_n(&thread->depth, __ATOMIC_ACQUIRE) == 0)
        gm_stack_take_over(thread->stack);
    else
        gm_stack_reset(thread->stack);
}

struct gm_thread *gm_thread_claim(void)
{
    uint32_t tid = current_tid();
    gm_count(GM_COUNT_REENTRANT, gm_tls.missed);
    gm_tls.missed = 0;
    struct gm_thread *thread =
        find_free(tid, atomic_load_explicit(&next_new, memory_order_acquire));
    if (!thread)
        thread = create_lane(tid);
    if (!thread)
        return NULL;
    take_stack_over(
        thread); /* of a new one, too: its pages are best written before they are read */
    /* What the former owner reserved but did not commit never was. */
    thread->head = __atomic_load_n(&thread->lane->head, __ATOMIC_ACQUIRE);
    thread->limit = thread->head;
    thread->owner = atomic_fetch_add_explicit(&joined, 1, memory_order_relaxed);
    thread->owner_tid = tid;
    __atomic_store_n(&thread->depth, 0, __ATOMIC_RELAXED);
    thread->around.outermost = 0;
    thread->stack_low = thread->stack_high = 0;
    __atomic_store_n(&thread->committing, false, __ATOMIC_RELAXED);
    gm_loader_thread_came();
    return thread;
}

/* ---- rings that grow ------------------------------------------------------------------------- */

static uint64_t larger_ring(const struct gm_thread *thread)
{
    uint64_t records = (thread->mask + 1) * 16;
    return records < gm_config.ring_records ? records : gm_config.ring_records;
}

bool gm_lane_may_grow(const struct gm_thread *thread)
{
    return thread->mask + 1 < gm_config.ring_records && gm_trace_may_grow() &&
           __atomic_load_n(&rings_bytes, __ATOMIC_RELAXED) + lane_length(larger_ring(thread)) <=
               GM_RINGS_BYTES;
}

/* A ring with all that waits in the thread's; not yet part of the trace. */
static struct gm_lane *make_larger(const struct gm_thread *thread)
{
    uint64_t records = larger_ring(thread);
    struct gm_extent *extent =
        gm_trace_map_extents(GM_EXTENT_LANE, thread->number, lane_length(records), 1);
    if (!extent)
        return NULL;
    struct gm_lane *lane = lane_in(extent);
    struct gm_record *ring = (struct gm_record *)(lane + 1);
    lane->capacity = records;
    lane->head = thread->head;
    lane->tail = thread->lane->tail;
    for (uint64_t n = lane->tail; n < lane->head; n++)
        ring[n & (records - 1)] = thread->records[n & thread->mask];
    return lane;
}

/* With the pack lock nobody moves the tail, and nobody reads records but readers of the file, for
 * whom both rings are right. */
bool gm_lane_grow(struct gm_thread *thread)
{
    gm_lock_take(&gm_file.lock);
    struct gm_lane *lane = gm_lane_may_grow(thread) ? make_larger(thread) : NULL;
    if (lane) {
        gm_trace_publish_extents((struct gm_extent *)lane - 1, 1, GM_LANE_CONSTANT);
        seal_for_good(thread->lane);
        __atomic_store_n(&rings_bytes, rings_bytes + lane_length(lane->capacity), __ATOMIC_RELAXED);
        thread->records = (struct gm_record *)(lane + 1);
        thread->mask = lane->capacity - 1;
        thread->has_parts = false;
        __atomic_store_n(&thread->lane, lane, __ATOMIC_RELEASE);
    }
    gm_lock_release(&gm_file.lock);
    return lane != NULL;
}

void gm_threads_forget(void)
{
    atomic_store_explicit(&thread_count, 0, memory_order_relaxed);
    atomic_store_explicit(&next_new, 0, memory_order_relaxed);
    rings_bytes = 0;
    atomic_store_explicit(&next_looked_at, 0, memory_order_relaxed);
    atomic_store_explicit(&joined, 0, memory_order_relaxed);
}
