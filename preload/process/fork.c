/*
 * Children of fork and _Fork. As a rule they need none of this: the page that says "recording" is
 * wiped, and a child's first call starts over. But a signal handler may fork, and its child return
 * from it into the call that it interrupted, or into the recorder.
 *
 * Not covered: such a child made by the bare system call.
 */
#include "base/process_state.h"
#include "loader/libc_dlsym.h"
#include "process/process.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sys/types.h>

typedef pid_t fork_function(void);

static fork_function *next_fork;

__attribute__((constructor)) static void watch_forks(void)
{
    next_fork = (fork_function *)gm_real_dlsym(RTLD_NEXT, "_Fork");
    if (!next_fork)
        dlerror(); /* older than the function: not the program's error */
    pthread_atfork(NULL, NULL, gm_process_forked);
}

GM_EXPORT pid_t _Fork(void);

/* The one that a signal handler may call, which runs no fork handlers. In C libraries before 2.34
 * fork is: nobody there calls this one, but who asks whether it exists. */
pid_t _Fork(void)
{
    if (!next_fork)
        return fork();
    pid_t child = next_fork();
    if (child == 0) {
        gm_process_wipe_page();
        gm_process_forked();
    }
    return child;
}
