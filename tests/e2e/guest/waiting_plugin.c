/* A plugin whose constructor waits for its own threads: without a guest it waits for nothing that
 * the loader holds. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void *call_cuda(void *unused)
{
    void *address;
    (void)unused;
    printf("allocated: %d\n", (int)cudaMalloc(&address, 512));
    printf("freed: %d\n", (int)cudaFree(address));
    return NULL;
}

static void *start_program(void *unused)
{
    char *const arguments[] = {"true", NULL};
    int status = 0;
    (void)unused;
    pid_t child = vfork();
    if (child == 0) {
        execv("/bin/true", arguments);
        _exit(1);
    }
    waitpid(child, &status, 0);
    printf("started: %d\n", status);
    return NULL;
}

__attribute__((constructor)) static void wait_for_threads(void)
{
    void *(*const bodies[])(void *) = {call_cuda, start_program};
    for (int i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, bodies[i], NULL);
        pthread_join(thread, NULL);
    }
}
