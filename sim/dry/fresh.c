/*
 * What a dry run changes in the process by names that come before others of the same name.
 *
 * Fresh blocks of PyTorch's allocator read as zero in a dry run, so that a program sees the same
 * values each time: kernels do not run, and without this a block holds what its last owner left.
 *
 * A second definition of the function by which libc10_cuda tells PyTorch's profiler of each block
 * (preload/sources/torch.c has the first). libgpumem.so calls the next definition in the loader's
 * list, which is this one; this one calls PyTorch's.
 *
 * A thread that wants Python's lock while Python finalizes never gets it. Before 3.14 Python ends the thread by
 * pthread_exit, which unwinds the frames of its callers; where they are destructors of C++ (autograd's thread lets go of a
 * graph), that is std::terminate, and the program is aborted after its end. 3.14 lets such a thread hang, and so does this.
 *
 * Beside that, each process tells the dry run that it is there, in a file beside the status file, so that it can be ended
 * with it (report/tools/dryrun/watch.c).
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMORY_USAGE "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#define EXPORTED __attribute__((visibility("default")))

typedef void memory_usage(void *, int64_t, size_t, size_t, uint64_t);
typedef void forget(uint64_t, uint64_t);

EXPORTED void gpumem_dry_memory_usage(void *address, int64_t size, size_t allocated,
                                      size_t reserved, uint64_t device) __asm__(MEMORY_USAGE);

/* Of a library that is mapped; NULL: it is not, or has no such name. */
static void *find_fresh(const char *library, const char *name)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    return handle ? dlsym(handle, name) : NULL;
}

void gpumem_dry_memory_usage(void *address, int64_t size, size_t allocated, size_t reserved,
                             uint64_t device)
{
    static memory_usage *original;
    static forget *forget_contents;
    enum { CUDA = 1 };

    if (!original)
        original = (memory_usage *)find_fresh("libc10.so", MEMORY_USAGE);
    if (!forget_contents)
        forget_contents = (forget *)find_fresh("libcuda.so.1", "gpumem_sim_forget");
    if (forget_contents && size > 0 && (int8_t)device == CUDA)
        forget_contents((uintptr_t)address, (uint64_t)size);
    if (original && original != gpumem_dry_memory_usage)
        original(address, size, allocated, reserved, device);
}

EXPORTED _Noreturn void pthread_exit(void *value);
_Noreturn void pthread_exit(void *value)
{
    typedef int is_finalizing(void);
    typedef void exit_thread(void *);
    is_finalizing *asked = (is_finalizing *)dlsym(RTLD_DEFAULT, "Py_IsFinalizing"); /* 3.13 */

    if (!asked)
        asked = (is_finalizing *)dlsym(RTLD_DEFAULT, "_Py_IsFinalizing");
    while (asked && asked())
        pause();
    ((exit_thread *)dlsym(RTLD_NEXT, "pthread_exit"))(value);
    abort();
}

/* ---- who is there ---------------------------------------------------------------------------------- */

/* "PID START": the number may be another process's later, but not with that start (proc(5), stat, field 22). */
static void tell_start(void)
{
    const char *status = getenv("GPUMEM_DRY_STATUS");
    char path[PATH_MAX], stat[1024];
    int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, stat, sizeof(stat) - 1);
    if (file >= 0)
        close(file);
    if (!status || length <= 0 ||
        snprintf(path, sizeof(path), "%s.started", status) >= (int)sizeof(path))
        return;
    stat[length] = 0;
    char *at = strrchr(stat, ')');
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    file = at ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    if (file < 0)
        return;
    at[1 + strcspn(at + 1, " ")] = 0;
    dprintf(file, "%d%s\n", (int)getpid(), at);
    close(file);
}

__attribute__((constructor)) static void tell_starts(void)
{
    tell_start();
    pthread_atfork(NULL, NULL, tell_start);
}
