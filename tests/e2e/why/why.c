/*
 * Things that the recorder declines, for why.py: a step through code without unwind data (the program is compiled
 * without), and the Python frames of a thread that runs no Python (the library).
 */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stddef.h>

/* Not inlined and no tail call: a frame of code that nothing is said of. */
__attribute__((noinline)) static int allocate(size_t size)
{
    void *address = NULL;
    int result = cudaMalloc(&address, size);
    __asm__ volatile("" ::: "memory");
    return result;
}

static void *allocate_in_thread(void *unused)
{
    (void)unused;
    allocate(4096);
    return NULL;
}

int start_thread(void);

int start_thread(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, allocate_in_thread, NULL) != 0)
        return 1;
    return pthread_join(thread, NULL);
}

#ifdef PROGRAM
int main(void)
{
    return allocate(8192);
}
#endif
