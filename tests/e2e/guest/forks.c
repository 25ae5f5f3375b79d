/*
 * A signal handler forks, and its child returns from it into the interrupted code. Run by run.py;
 * without a guest every child ends well.
 */
#include <cuda_runtime_api.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILDREN = 200 };

pid_t _Fork(void); /* of C libraries since 2.34; in older ones that of the guest */
#if !__GLIBC_PREREQ(2, 34)
#define _Fork fork
#endif

static volatile sig_atomic_t children, crashed, hung, is_child;

static void handle(int number)
{
    int status;
    (void)number;
    if (is_child || children >= CHILDREN)
        return;
    pid_t child = _Fork();
    if (child == 0) {
        is_child = 1;
        alarm(60);
        return;
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        return;
    children++;
    if (WIFSIGNALED(status)) {
        crashed += WTERMSIG(status) != SIGALRM;
        hung += WTERMSIG(status) == SIGALRM;
    }
}

/* Always from this line, so that all records but the first are a few stores. */
static void call_cuda(void)
{
    void *address;
    for (int i = 0; i < 100; i++)
        if (cudaMalloc(&address, 64) == cudaSuccess)
            cudaFree(address);
}

int main(void)
{
    const struct itimerval often = {{0, 3000}, {0, 3000}}, never = {{0, 0}, {0, 0}};
    call_cuda();
    signal(SIGPROF, handle);
    setitimer(ITIMER_PROF, &often, NULL);
    while (children < CHILDREN) {
        call_cuda();
        if (is_child)
            _exit(0);
    }
    setitimer(ITIMER_PROF, &never, NULL);
    printf("%d crashed, %d hung\n", (int)crashed, (int)hung);
    return crashed || hung;
}
