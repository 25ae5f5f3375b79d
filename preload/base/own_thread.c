/* See own_thread.h. */
#include "base/own_thread.h"
#include "base/process_state.h"
#include <link.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>

enum { THREADS_MAX = 4 };

/* The kernel wants room for all CPUs it could have. */
static unsigned long cpus[8192 / 64];
static size_t cpus_size; /* bytes that it filled; 0: not known */

/* Thread-local memory of the objects that the process started with, in bytes. */
static size_t tls_size;

static pthread_key_t main_key;
static bool main_key_made;
static _Atomic bool main_left;

/* Those whose wake is called when the main thread leaves. */
static struct gm_own_thread *_Atomic started[THREADS_MAX];

static void wake_all(void)
{
    for (int i = 0; i < THREADS_MAX; i++) {
        struct gm_own_thread *own = atomic_load_explicit(&started[i], memory_order_acquire);
        if (own && own->wake)
            own->wake();
    }
}

static bool is_main(void)
{
    return syscall(SYS_gettid) == syscall(SYS_getpid);
}

static void thread_ends(void *unused)
{
    (void)unused;
    if (!is_main())
        return;
    atomic_store(&main_left, true);
    wake_all();
}

static int add_tls(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size;
    (void)unused;
    for (uint16_t i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_TLS)
            tls_size += info->dlpi_phdr[i].p_memsz + info->dlpi_phdr[i].p_align;
    return 0;
}

void gm_own_prepare(void)
{
    tls_size = 0;
    dl_iterate_phdr(add_tls, NULL);
    long size = syscall(SYS_sched_getaffinity, 0, sizeof(cpus), cpus);
    cpus_size = size > 0 ? (size_t)size : 0;
    main_key_made = pthread_key_create(&main_key, thread_ends) == 0;
    if (main_key_made && is_main())
        pthread_setspecific(main_key, &main_key);
}

uint32_t gm_own_cpu_count(void)
{
    uint32_t count = 0;
    for (size_t i = 0; i < cpus_size / sizeof(cpus[0]); i++)
        count += (uint32_t)__builtin_popcountl(cpus[i]);
    return count ? count : CPU_SETSIZE;
}

/*
 * A process's first thread that has ended before the others has no program any more. Asked without
 * a descriptor, whose number the host's next file might have got.
 */
static bool is_main_gone(void)
{
    char byte;
    struct stat status;
    return readlink("/proc/self/exe", &byte, 1) < 0 && errno == ENOENT &&
           stat("/proc/self/task", &status) == 0;
}

bool gm_own_is_told_to_leave(void)
{
    return atomic_load(&main_left);
}

bool gm_own_must_leave(void)
{
    const int saved_errno = errno;
    if (!atomic_load(&main_left) && is_main_gone())
        atomic_store(&main_left, true);
    errno = saved_errno;
    return atomic_load(&main_left);
}

static bool is_last(void)
{
    struct stat status;
    /* A folder has a link for each folder in it, and two more; the main thread is still counted. */
    return stat("/proc/self/task", &status) == 0 && status.st_nlink <= 2 + 2;
}

/*
 * The C library ends the process with its last thread, on that thread, handlers of exit and all. If
 * that is to be ours, it is as if the host's thread had been the last: with its signals, and
 * recorded.
 */
static void *run_own_thread(void *argument)
{
    struct gm_own_thread *own = argument;
    if (cpus_size)
        syscall(SYS_sched_setaffinity, 0, cpus_size, cpus);
    prctl(PR_SET_NAME, own->name);
    if (own->opens_files) /* a table of its own, with nothing in it; kernels before 5.9 have none */
        syscall(SYS_close_range, 0, ~0u, CLOSE_RANGE_UNSHARE);
    own->run();
    for (int i = 0; i < THREADS_MAX; i++) {
        struct gm_own_thread *me = own;
        atomic_compare_exchange_strong(&started[i], &me, NULL);
    }
    gm_gate_open(&gm_tls);
    if (atomic_load(&main_left) && is_last())
        gm_signals_restore(own->signals);
    return NULL;
}

static bool take_place(struct gm_own_thread *own)
{
    for (int i = 0; i < THREADS_MAX; i++) {
        struct gm_own_thread *none = NULL;
        if (atomic_compare_exchange_strong(&started[i], &none, own))
            return true;
    }
    return false;
}

bool gm_own_start(struct gm_own_thread *own)
{
    const uint64_t host = ~(GM_SIGNAL_BIT(GM_LIBC_CANCEL) | GM_SIGNAL_BIT(GM_LIBC_SET_ID));
    pthread_t thread;
    pthread_attr_t attributes;
    if (gm_own_must_leave() || !take_place(own))
        return false;
    if (pthread_attr_init(&attributes) != 0)
        return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, own->stack_size + tls_size);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &host, &own->signals, sizeof(host));
    bool is_started = pthread_create(&thread, &attributes, run_own_thread, own) == 0;
    gm_signals_restore(own->signals);
    pthread_attr_destroy(&attributes);
    for (int i = 0; !is_started && i < THREADS_MAX; i++) {
        struct gm_own_thread *me = own;
        atomic_compare_exchange_strong(&started[i], &me, NULL);
    }
    return is_started;
}

void gm_own_forget(void)
{
    atomic_store(&main_left, false);
    for (int i = 0; i < THREADS_MAX; i++)
        atomic_store(&started[i], NULL);
    if (main_key_made && is_main())
        pthread_setspecific(main_key, &main_key);
}
