/* The main thread keeps 1 MiB, two threads named "loader" one after the other 3 MiB each, one named "fetcher" 5 MiB. */
#include <cuda_runtime.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>

static void *keep(void *megabytes)
{
    void *address;
    prctl(PR_SET_NAME, (size_t)megabytes == 3 ? "loader" : "fetcher");
    return (void *)(size_t)cudaMalloc(&address, (size_t)megabytes << 20);
}

int main(void)
{
    static const size_t megabytes[] = {3, 3, 5};
    void *address, *failed = NULL;
    prctl(PR_SET_NAME, "conductor");
    if (cudaMalloc(&address, 1 << 20) != cudaSuccess)
        return 1;
    for (int i = 0; i < 3 && !failed; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, keep, (void *)megabytes[i]) != 0)
            return 1;
        pthread_join(thread, &failed);
    }
    return failed != NULL;
}
