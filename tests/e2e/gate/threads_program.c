/* Eight threads that allocate and free at one time: threads_program [leaky|keeping|caching].
 *
 * leaky    each forgets every hundredth
 * keeping  each keeps every tenth to the end, in one list of all, and gives them back
 * caching  each keeps the latest ones, and gives back the oldest for each new one
 */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define THREADS 8
#define ROUNDS 1000
#define EVERY 10
#define CACHED 8
#define SMALL ((size_t)1 << 16)

static const char *mode = "";
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *kept[THREADS * ROUNDS / EVERY];
static size_t kept_count;

static void *take(size_t size)
{
    void *memory;
    if (cudaMalloc(&memory, size) != cudaSuccess)
        abort();
    return memory;
}

static void forget(void)
{
    void *memory;
    if (cudaMalloc(&memory, SMALL) != cudaSuccess)
        abort();
}

static void keep(void)
{
    void *memory = take(SMALL);
    pthread_mutex_lock(&lock);
    kept[kept_count++] = memory;
    pthread_mutex_unlock(&lock);
}

static void cache(void **cached, int round)
{
    void **oldest = &cached[round / EVERY % CACHED];
    cudaFree(*oldest);
    *oldest = take(SMALL);
}

static void *work(void *unused)
{
    void *cached[CACHED] = {NULL};
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        void *memory = take((size_t)1 << 20);
        if (round % 100 == 0 && strcmp(mode, "leaky") == 0)
            forget();
        if (round % EVERY == 0 && strcmp(mode, "keeping") == 0)
            keep();
        if (round % EVERY == 0 && strcmp(mode, "caching") == 0)
            cache(cached, round);
        cudaFree(memory);
    }
    for (int i = 0; i < CACHED; i++)
        cudaFree(cached[i]);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[THREADS];
    mode = count > 1 ? arguments[1] : "";
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, work, NULL) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (size_t i = 0; i < kept_count; i++)
        cudaFree(kept[i]);
    return 0;
}
