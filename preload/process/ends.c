/*
 * Ends of a process that run no destructor: _exit, _Exit, quick_exit and the exec family. Each
 * marks the trace and does what it was called for; without the mark the report would call the trace
 * cut. Async-signal-safe, as the functions behind them are.
 */
#include "base/platform.h"
#include "loader/libc_dlsym.h"
#include "process/process.h"
#include <alloca.h>
#include <dlfcn.h>
#include <stdarg.h>

enum function {
    EXIT_UNDERSCORE,
    EXIT_C,
    EXIT_QUICK,
    EXECVE,
    EXECVPE,
    EXECV,
    EXECVP,
    FEXECVE,
    EXECVEAT,
    FUNCTIONS
};

static const char *const names[FUNCTIONS] = {
    [EXIT_UNDERSCORE] = "_exit", [EXIT_C] = "_Exit",    [EXIT_QUICK] = "quick_exit",
    [EXECVE] = "execve",         [EXECVPE] = "execvpe", [EXECV] = "execv",
    [EXECVP] = "execvp",         [FEXECVE] = "fexecve", [EXECVEAT] = "execveat",
};

static _Atomic(void *) found[FUNCTIONS];

/* The next function of that name: libc's, or another library's that stands before it. */
static void *next_end_function(enum function function)
{
    void *address = atomic_load_explicit(&found[function], memory_order_relaxed);
    if (gm_unlikely(!address)) {
        address = gm_real_dlsym(RTLD_NEXT, names[function]);
        atomic_store_explicit(&found[function], address, memory_order_relaxed);
    }
    return address;
}

/*
 * Before anyone needs them: dlsym takes the loader's lock, and a vfork child that waits for it
 * never reaches its exec if the lock's holder waits for that. Only constructors of other libraries
 * that were loaded with us can come first.
 */
__attribute__((constructor)) static void find_early(void)
{
    for (int function = 0; function < FUNCTIONS; function++)
        if (!next_end_function((enum function)function))
            dlerror(); /* older than the function: not the program's error */
}

typedef void exit_function(int);

GM_EXPORT _Noreturn void _exit(int status)
{
    gm_process_mark_end(GM_END_UNDERSCORE_EXIT, gm_status_of_exit(status));
    ((exit_function *)next_end_function(EXIT_UNDERSCORE))(status);
    __builtin_unreachable();
}

GM_EXPORT _Noreturn void _Exit(int status)
{
    gm_process_mark_end(GM_END_UNDERSCORE_EXIT, gm_status_of_exit(status));
    ((exit_function *)next_end_function(EXIT_C))(status);
    __builtin_unreachable();
}

/* Handlers of at_quick_exit still run after the mark: what they free is recorded behind it. */
GM_EXPORT _Noreturn void quick_exit(int status)
{
    gm_process_mark_end(GM_END_UNDERSCORE_EXIT, gm_status_of_exit(status));
    ((exit_function *)next_end_function(EXIT_QUICK))(status);
    __builtin_unreachable();
}

/* exec returns only when it failed: then the process goes on and the mark is taken back. */
#define EXEC(call)                                                                                 \
    do {                                                                                           \
        bool marked = gm_process_mark_end(GM_END_EXEC, 0);                                         \
        int result = (call);                                                                       \
        if (marked)                                                                                \
            gm_process_mark_end(GM_END_NONE, 0);                                                   \
        return result;                                                                             \
    } while (0)

typedef int execve_function(const char *, char *const[], char *const[]);
typedef int execv_function(const char *, char *const[]);
typedef int fexecve_function(int, char *const[], char *const[]);
typedef int execveat_function(int, const char *, char *const[], char *const[], int);

GM_EXPORT int execve(const char *path, char *const arguments[], char *const environment[])
{
    EXEC(((execve_function *)next_end_function(EXECVE))(path, arguments, environment));
}

GM_EXPORT int execvpe(const char *file, char *const arguments[], char *const environment[])
{
    EXEC(((execve_function *)next_end_function(EXECVPE))(file, arguments, environment));
}

GM_EXPORT int execv(const char *path, char *const arguments[])
{
    EXEC(((execv_function *)next_end_function(EXECV))(path, arguments));
}

GM_EXPORT int execvp(const char *file, char *const arguments[])
{
    EXEC(((execv_function *)next_end_function(EXECVP))(file, arguments));
}

GM_EXPORT int fexecve(int descriptor, char *const arguments[], char *const environment[])
{
    EXEC(((fexecve_function *)next_end_function(FEXECVE))(descriptor, arguments, environment));
}

GM_EXPORT int execveat(int folder, const char *path, char *const arguments[],
                       char *const environment[], int flags)
{
    EXEC(((execveat_function *)next_end_function(EXECVEAT))(folder, path, arguments, environment,
                                                            flags));
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
    EXEC(((execv_function *)next_end_function(EXECV))(path, arguments));
}

GM_EXPORT int execlp(const char *file, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    GATHER(first, list);
    va_end(list);
    EXEC(((execv_function *)next_end_function(EXECVP))(file, arguments));
}

GM_EXPORT int execle(const char *path, const char *first, ...)
{
    va_list list;
    va_start(list, first);
    GATHER(first, list);
    char *const *environment = va_arg(list, char *const *);
    va_end(list);
    EXEC(((execve_function *)next_end_function(EXECVE))(path, arguments, environment));
}
