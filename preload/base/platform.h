/*
 * The few things the preload asks of the machine: clocks, raw system calls, a lock of its own.
 */
#ifndef GPUMEM_PRELOAD_BASE_PLATFORM_H
#define GPUMEM_PRELOAD_BASE_PLATFORM_H

#include <errno.h>
#include <gpumem/trace.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define gm_likely(condition) __builtin_expect(!!(condition), 1)
#define gm_unlikely(condition) __builtin_expect(!!(condition), 0)

/* For what stands in every hook: the compiler's own limits would keep it out of most of them. */
#define GM_IN_HOOK static inline __attribute__((always_inline))

/* Library-internal symbols are never reached through the PLT: the host could interpose them. */
#define GM_EXPORT __attribute__((visibility("default")))

static inline uint64_t gm_clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

extern bool gm_clock_is_tsc; /* set once, before the first record */

/*
 * Record clock. Events of one address on two threads are ordered by it, so a time taken after a
 * call must not be read early: the fence keeps the counter behind the call's own loads. A time
 * taken before a call needs none, since nothing the call does is visible before the read has
 * retired.
 */
static inline uint64_t gm_ticks_before(void)
{
#if defined(__x86_64__)
    if (gm_likely(gm_clock_is_tsc))
        return __builtin_ia32_rdtsc();
#endif
    return gm_clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t gm_ticks_after(void)
{
#if defined(__x86_64__)
    __builtin_ia32_lfence();
#endif
    return gm_ticks_before();
}

/*
 * Path of what the kernel says of this process: "maps", "exe", "fd/5". By the calling thread,
 * because /proc/self is the first one, and has neither memory nor files once that has ended before
 * the others.
 */
#define GM_OWN_PROC_MAX 64 /* bytes; `name` has at most 20 */

static inline const char *gm_own_proc(char path[GM_OWN_PROC_MAX], const char *name)
{
    static const char folder[] = "/proc/self/task/";
    char digits[10], *to = path;
    size_t at = sizeof(digits);
    uint32_t number = (uint32_t)syscall(SYS_gettid);
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    for (const char *from = folder; *from;)
        *to++ = *from++;
    while (at < sizeof(digits))
        *to++ = digits[at++];
    *to++ = '/';
    for (; *name; name++)
        *to++ = *name;
    *to = 0;
    return path;
}

/*
 * Whether the process has rights that its user has not (set-user-id, capabilities). Its environment
 * is then that user's, and must not say where files are written or which library is opened: nothing
 * is read of it, and nothing done.
 */
static inline bool gm_is_secure(void)
{
    return getauxval(AT_SECURE) != 0;
}

static inline void gm_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* The line at `address` is about to be written. Never faults. */
static inline void gm_prefetch_for_writing(const void *address)
{
#if defined(__x86_64__)
    /* The builtin asks for a line to be read, unless told of a newer processor. */
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)address));
#else
    __builtin_prefetch(address, 1);
#endif
}

/*
 * Makes the signals wait that may: not those that a fault of the code itself raises. Returns which
 * waited before. The kernel's own 64-bit set: libc's leaves some signals out.
 */
static inline uint64_t gm_signals_block(void)
{
    const uint64_t waiting = ~(1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGILL - 1) |
                               1ull << (SIGFPE - 1) | 1ull << (SIGTRAP - 1) | 1ull << (SIGSYS - 1));
    uint64_t before = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &waiting, &before, sizeof(before));
    return before;
}

static inline void gm_signals_restore(uint64_t before)
{
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
}

/*
 * A lock for slow paths (file growth, new table entries, packing). Its holder never calls into the
 * host, never allocates and never blocks on anything but the file. No signal handler interrupts it:
 * one that never returned, or that waited for another thread, would make all wait that come after.
 * So it cannot deadlock with the host's locks.
 */
struct gm_lock {
    _Atomic uint32_t state; /* 0 free, 1 held, 2 held with waiters */
    uint64_t signals;       /* the holder's, to be restored */
};

static inline bool gm_lock_catch(struct gm_lock *lock)
{
    uint32_t free = 0;
    return atomic_compare_exchange_strong_explicit(&lock->state, &free, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline bool gm_lock_try(struct gm_lock *lock)
{
    uint64_t signals = gm_signals_block();
    bool caught = gm_lock_catch(lock);
    if (caught)
        lock->signals = signals;
    else
        gm_signals_restore(signals);
    return caught;
}

static inline void gm_lock_take(struct gm_lock *lock)
{
    uint64_t signals = gm_signals_block();
    bool caught = gm_lock_catch(lock);
    for (int spin = 0; !caught && spin < 100; spin++) {
        gm_pause();
        caught = gm_lock_catch(lock);
    }
    while (!caught && atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0)
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
    lock->signals = signals;
}

static inline void gm_lock_release(struct gm_lock *lock)
{
    uint64_t signals = lock->signals;
    if (atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2)
        syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    gm_signals_restore(signals);
}

#endif
