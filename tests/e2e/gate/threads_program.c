/* Eight threads that allocate and free at one time: threads_program [leaky]. A leaky one forgets every hundredth. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 8
#define ROUNDS 1000

static bool is_leaky;

static void forget(void)
{
    void *memory;
    if (cudaMalloc(&memory, 1 << 16) != cudaSuccess)
        abort();
}

static void *work(void *unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        void *memory;
        if (cudaMalloc(&memory, 1 << 20) != cudaSuccess)
            abort();
        if (is_leaky && round % 100 == 0)
            forget();
        cudaFree(memory);
    }
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[THREADS];
    is_leaky = count > 1 && strcmp(arguments[1], "leaky") == 0;
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
