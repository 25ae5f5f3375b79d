/*
 * Keeps 50,000 device allocations made by 4 threads, then ends in the way its argument names.
 * loss.py counts how many of them each ending leaves in the trace.
 */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4

static long per_thread = 50000 / THREADS;

static void *keep(void *unused)
{
    (void)unused;
    for (long i = 0; i < per_thread; i++) {
        void *address;
        if (cudaMalloc(&address, 512) != cudaSuccess)
            abort();
    }
    return NULL;
}

static void keep_all(void)
{
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, keep, NULL) != 0)
            abort();
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void end_process(const char *how, char **arguments)
{
    if (strcmp(how, "SIGKILL") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(how, "SIGSEGV") == 0) {
        signal(SIGSEGV, SIG_DFL);
        *(volatile int *)8 = 0;
    }
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "_exit") == 0)
        _exit(0);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(0);
    if (strcmp(how, "exec") == 0) {
        arguments[1] = "clean";
        execv("/proc/self/exe", arguments);
        abort();
    }
}

int main(int count, char **arguments)
{
    const char *how = count > 1 ? arguments[1] : "clean";
    if (strcmp(how, "fork") ==
        0) { /* before CUDA is initialised: a child after it cannot use CUDA */
        pid_t child = fork();
        if (child == 0) {
            per_thread = 30000 / THREADS;
            keep_all();
            _exit(0);
        }
        keep_all();
        waitpid(child, NULL, 0);
        return 0;
    }
    keep_all();
    end_process(how, arguments);
    return 0;
}
