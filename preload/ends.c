/*
 * Ends of a process that run no destructor: _exit, _Exit, quick_exit and the exec family. Each
 * marks the trace and does what it was called for; without the mark the report would call the trace
 * cut. Async-signal-safe, as the functions behind them are.
 */
#include <alloca.h>
#include <dlfcn.h>
#include <stdarg.h>
#include "process.h"
#include "real.h"
#include "trace_file.h"

/* libc's function of that name, found once. No state but one pointer: signal handlers come here
 * too. */
#define REAL(name, type)                                                                           \
    ({                                                                                             \
        static _Atomic(type *) kept;                                                               \
        type *found = atomic_load_explicit(&kept, memory_order_relaxed);                           \
        if (!found) {                                                                              \
            found = (type *)gm_real_dlsym(RTLD_NEXT, name);                                        \
            atomic_store_explicit(&kept, found, memory_order_relaxed);                             \
        }                                                                                          \
        found;                                                                                     \
    })

typedef void exit_function(int);

GM_EXPORT _Noreturn void _exit(int status)
{
    gm_process_mark_end(GM_END_UNDERSCORE_EXIT);
    REAL("_exit", exit_function)(status);
    __builtin_unreachable();
}

GM_EXPORT _Noreturn void _Exit(int status)
{
    gm_process_mark_end(GM_END_UNDERSCORE_EXIT);
    REAL("_Exit", exit_function)(status);
    __builtin_unreachable();
}

/* Handlers of at_quick_exit still run after the mark: what they free is recorded behind it. */
GM_EXPORT _Noreturn void quick_exit(int status)
{
    gm_process_mark_end(GM_END_UNDERSCORE_EXIT);
    REAL("quick_exit", exit_function)(status);
    __builtin_unreachable();
}

/* exec returns only when it failed: then the process goes on and the mark is taken back. */
#define EXEC(call)                                                                                 \
    do {                                                                                           \
        bool marked = gm_process_mark_end(GM_END_EXEC);                                            \
        int result = (call);                                                                       \
        if (marked)                                                                                \
            gm_trace_mark_end(GM_END_NONE);                                                        \
        return result;                                                                             \
    } while (0)

typedef int execve_function(const char *, char *const[], char *const[]);
typedef int execv_function(const char *, char *const[]);
typedef int fexecve_function(int, char *const[], char *const[]);
typedef int execveat_function(int, const char *, char *const[], char *const[], int);

GM_EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
    EXEC(REAL("execve", execve_function)(path, arguments, environment));
}

GM_EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    EXEC(REAL("execvpe", execve_function)(file, arguments, environment));
}

GM_EXPORT int execv(const char *path, char *const arguments[])
{
    EXEC(REAL("execv", execv_function)(path, arguments));
}

GM_EXPORT int execvp(const char *file, char *const arguments[])
{
    EXEC(REAL("execvp", execv_function)(file, arguments));
}

GM_EXPORT int fexecve(int descriptor, char *const arguments[], char *const environment[])
{
    EXEC(REAL("fexecve", fexecve_function)(descriptor, arguments, environment));
}

GM_EXPORT int execveat(int folder, const char *path, char *const arguments[],
                       char *const environment[], int flags)
{
    EXEC(REAL("execveat", execveat_function)(folder, path, arguments, environment, flags));
}

/* The list forms become vector forms: there is no other way to pass arguments on. */
#define GATHER(first, list)                                                                        \
    size_t count = 1;                                                                              \
    va_list counting;                                                                              \
    va_copy(counting, list);                                                                       \
    while (va_arg(counting, char *))                                                               \
        count++;                                                                                   \
    va_end(counting);                                                                              \
    char **arguments = alloca((count + 1) * sizeof(*arguments));                                   \
    arguments[0] = (char *)(uintptr_t)(first);                                                     \
    for (size_t i = 1; i <= count; i++)                                                            \
    arguments[i] = va_arg(list, char *)

GM_EXPORT int execl(const char *path, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    GATHER(first, list);
    va_end(list);
    EXEC(REAL("execv", execv_function)(path, arguments));
}

GM_EXPORT int execlp(const char *file, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    GATHER(first, list);
    va_end(list);
    EXEC(REAL("execvp", execv_function)(file, arguments));
}

GM_EXPORT int execle(const char *path, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    GATHER(first, list);
    char *const *environment = va_arg(list, char *const *);
    va_end(list);
    EXEC(REAL("execve", execve_function)(path, arguments, environment));
}
