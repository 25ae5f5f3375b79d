/* See waits.h. */
#include "process/waits.h"
#include "base/config.h"
#include "base/platform.h"
#include "loader/libc_dlsym.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <gpumem/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

enum function { WAIT, WAITPID, WAITID, WAIT3, WAIT4, FUNCTIONS };

static const char *const names[FUNCTIONS] = {"wait", "waitpid", "waitid", "wait3", "wait4"};
static _Atomic(void *) found[FUNCTIONS];

/* As the header of a trace has them. */
static char program[256];
static char host[64];

static void *next_wait_function(enum function function)
{
    void *address = atomic_load_explicit(&found[function], memory_order_relaxed);
    if (gm_unlikely(!address)) {
        address = gm_real_dlsym(RTLD_NEXT, names[function]);
        atomic_store_explicit(&found[function], address, memory_order_relaxed);
    }
    return address;
}

void gm_waits_prepare(void)
{
    struct utsname system;
    char path[GM_OWN_PROC_MAX], executable[256];
    for (int function = 0; function < FUNCTIONS; function++)
        if (!next_wait_function((enum function)function))
            dlerror(); /* older than the function: not the program's error */
    ssize_t length = readlink(gm_own_proc(path, "exe"), executable, sizeof(executable) - 1);
    executable[length > 0 ? length : 0] = 0;
    const char *slash = strrchr(executable, '/');
    strcpy(program, slash ? slash + 1 : "unknown");
    if (uname(&system) == 0)
        memcpy(host, system.nodename, strnlen(system.nodename, sizeof(host) - 1));
}

/* ---- the trace of a child -------------------------------------------------------------------- */

static bool read_at(int descriptor, void *to, size_t size, size_t at)
{
    return syscall(SYS_pread64, descriptor, to, size, at) == (long)size;
}

/* A trace of that process, of our run, in which no end is marked and nothing told yet. */
static bool is_process_of(int descriptor, pid_t pid)
{
    char magic[8], run_id[sizeof(gm_config.run_id)];
    uint32_t its_pid, end, status;
    uint64_t seal;
#define READ(what, field)                                                                          \
    read_at(descriptor, &(what), sizeof(what), offsetof(struct gm_trace_header, field))
    return READ(magic, magic) && memcmp(magic, GM_TRACE_MAGIC, sizeof(magic)) == 0 &&
           READ(its_pid, pid) && its_pid == (uint32_t)pid && READ(run_id, run_id) &&
           memcmp(run_id, gm_config.run_id, sizeof(run_id)) == 0 && READ(end, end) &&
           end == GM_END_NONE && READ(seal, seal) && seal == 0 && READ(status, status) &&
           status == 0;
#undef READ
}

/* `status`: what is told, if that file is its trace. False: there is no such file. */
static bool tell_in(int folder, const char *name, pid_t pid, uint32_t status)
{
    int descriptor = (int)syscall(SYS_openat, folder, name,
                                  O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
    if (descriptor < 0)
        return false;
    if (is_process_of(descriptor, pid))
        syscall(SYS_pwrite64, descriptor, &status, sizeof(status),
                offsetof(struct gm_trace_header, status));
    syscall(SYS_close, descriptor);
    return true;
}

/* As the kernel has it. */
struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t size;
    uint8_t type;
    char name[];
};

#define ANY_PROGRAM "\001" /* stands for the name of the program, in one place of a file's name */
#define READS_MAX 64       /* of a folder: some thousand files */

static bool is_between(const char *name, const char *front, const char *back)
{
    size_t length = strlen(name), before = strlen(front), behind = strlen(back);
    return length > before + behind && strncmp(name, front, before) == 0 &&
           strcmp(name + length - behind, back) == 0;
}

/* The name of the program that has ended is not known any more: its trace is found by the rest. */
static void look_in_folder(char *path, pid_t pid, uint32_t status)
{
    char entries[2048] __attribute__((aligned(8)));
    char *slash = strrchr(path, '/'), *front = slash ? slash + 1 : path, *mark;
    mark = strchr(front, *ANY_PROGRAM);
    if (!mark || strchr(path, *ANY_PROGRAM) != mark || strchr(mark + 1, *ANY_PROGRAM))
        return;
    *mark = 0;
    if (slash)
        *slash = 0;
    int folder = (int)syscall(SYS_openat, AT_FDCWD,
                              !slash  ? "."
                              : *path ? path
                                      : "/",
                              O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    long size = folder < 0 ? 0 : 1;
    for (int reads = 0; size > 0 && reads < READS_MAX; reads++) {
        size = syscall(SYS_getdents64, folder, entries, sizeof(entries));
        for (long at = 0; at < size; at += ((struct entry *)(void *)(entries + at))->size) {
            const char *name = ((struct entry *)(void *)(entries + at))->name;
            if (is_between(name, front, mark + 1))
                tell_in(folder, name, pid, status);
        }
    }
    if (folder >= 0)
        syscall(SYS_close, folder);
}

/* `ended`: as waitpid gives it. */
static void record_child_end(pid_t pid, int ended)
{
    char path[GM_OUTPUT_MAX + 256];
    uint32_t status = GM_STATUS_WAITED | gm_status_of_wait(ended);
    int saved_errno = errno;
    if (gm_is_secure() || !program[0])
        return;
    if (gm_config_path(path, sizeof(path), program, host, (uint32_t)pid) &&
        !tell_in(AT_FDCWD, path, pid, status) &&
        gm_config_path(path, sizeof(path), ANY_PROGRAM, host, (uint32_t)pid))
        look_in_folder(path, pid, status);
    errno = saved_errno;
}

static pid_t note_wait(pid_t pid, const int *status)
{
    if (pid > 0 && status && (WIFSIGNALED(*status) || WIFEXITED(*status)))
        record_child_end(pid, *status);
    return pid;
}

/* ---- waiting --------------------------------------------------------------------------------- */

typedef pid_t wait_function(int *);
typedef pid_t waitpid_function(pid_t, int *, int);
typedef int waitid_function(idtype_t, id_t, siginfo_t *, int);
typedef pid_t wait3_function(int *, int, struct rusage *);
typedef pid_t wait4_function(pid_t, int *, int, struct rusage *);

/* A caller that does not ask how the child ended gets its own way all the same. */
#define OWN(status) ((status) ? (status) : &own)

GM_EXPORT pid_t wait(int *status)
{
    int own = 0;
    return note_wait(((wait_function *)next_wait_function(WAIT))(OWN(status)), OWN(status));
}

GM_EXPORT pid_t waitpid(pid_t pid, int *status, int options)
{
    int own = 0;
    return note_wait(((waitpid_function *)next_wait_function(WAITPID))(pid, OWN(status), options),
                     OWN(status));
}

GM_EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    int result = ((waitid_function *)next_wait_function(WAITID))(type, id, info, options);
    bool is_told = result == 0 && info && info->si_pid > 0;
    if (is_told && (info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED))
        record_child_end(info->si_pid, info->si_status);
    else if (is_told && info->si_code == CLD_EXITED)
        record_child_end(info->si_pid, info->si_status << 8);
    return result;
}

GM_EXPORT pid_t wait3(int *status, int options, struct rusage *usage)
{
    int own = 0;
    return note_wait(((wait3_function *)next_wait_function(WAIT3))(OWN(status), options, usage),
                     OWN(status));
}

GM_EXPORT pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    int own = 0;
    return note_wait(
        ((wait4_function *)next_wait_function(WAIT4))(pid, OWN(status), options, usage),
        OWN(status));
}
