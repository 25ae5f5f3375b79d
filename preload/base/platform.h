/*
 * The few things the preload asks of the machine and the kernel.
 */
#ifndef GPUMEM_PRELOAD_BASE_PLATFORM_H
#define GPUMEM_PRELOAD_BASE_PLATFORM_H

#include <errno.h>
#include <gpumem/trace.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#define gm_likely(condition) __builtin_expect(!!(condition), 1)
#define gm_unlikely(condition) __builtin_expect(!!(condition), 0)

/* For what stands in every hook: the compiler's own limits would keep it out of most of them. */
#define GM_IN_HOOK static inline __attribute__((always_inline))

/* Library-internal symbols are never reached through the PLT: the host could interpose them. */
#define GM_EXPORT __attribute__((visibility("default")))

/*
 * Runs before a sanitizer has set itself up: its own start looks functions up with dlsym, which is
 * ours where we are preloaded. Checks in such a function would use what is not there yet.
 */
#define GM_BEFORE_SANITIZERS __attribute__((no_sanitize("address", "thread")))

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
 * Signals that glibc keeps for itself: nptl(7). By the second one setuid, setgid and their like tell
 * every thread of the new user or group, and wait until each has answered: glibc's own functions
 * never block it, and whoever asks the kernel must not either.
 */
enum { GM_LIBC_CANCEL = 32, GM_LIBC_SET_ID = 33 };

#define GM_SIGNAL_BIT(number) (UINT64_C(1) << ((number)-1))

/*
 * Makes the signals wait that may: not those that a fault of the code itself raises, nor the one by
 * which glibc waits for this thread. Returns which waited before. The kernel's own 64-bit set:
 * libc's leaves some signals out.
 */
static inline uint64_t gm_signals_block(void)
{
    const uint64_t waiting =
        ~(GM_SIGNAL_BIT(SIGSEGV) | GM_SIGNAL_BIT(SIGBUS) | GM_SIGNAL_BIT(SIGILL) |
          GM_SIGNAL_BIT(SIGFPE) | GM_SIGNAL_BIT(SIGTRAP) | GM_SIGNAL_BIT(SIGSYS) |
          GM_SIGNAL_BIT(GM_LIBC_SET_ID));
    uint64_t before = 0;
    syscall(SYS_rt_sigprocmask, SIG_BLOCK, &waiting, &before, sizeof(before));
    return before;
}

static inline void gm_signals_restore(uint64_t before)
{
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof(before));
}

#endif
