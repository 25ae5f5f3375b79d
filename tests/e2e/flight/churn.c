/*
 * Allocates and frees in 4 threads, for ever or PAIRS times, and keeps one allocation now and then.
 * A file that survives any kill counts what was begun and done; flight.py compares the trace with
 * it.
 *
 *     churn FILE KEPT PAIRS: so many kept allocations, and so many pairs, of each thread; PAIRS 0:
 *     without end
 */
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define THREADS 4
#define KEPT_SIZE 512
#define HELD 16 /* of the pairs, allocated at once */

/* Read by flight.py: eight numbers for each thread. */
static struct account {
    _Atomic uint64_t keeps_begun;
    _Atomic uint64_t keeps_done;
    _Atomic uint64_t allocs_begun; /* of pairs */
    _Atomic uint64_t allocs_done;
    _Atomic uint64_t frees_begun;
    _Atomic uint64_t frees_done;
    uint64_t unused[2];
} * accounts;

static long keeps, pairs;

static void keep_allocation(struct account *account)
{
    void *address;
    account->keeps_begun++;
    if (cudaMalloc(&address, KEPT_SIZE) != cudaSuccess)
        abort();
    account->keeps_done++;
}

static void *allocate(struct account *account, size_t size)
{
    void *address;
    account->allocs_begun++;
    if (cudaMalloc(&address, size) != cudaSuccess)
        abort();
    account->allocs_done++;
    return address;
}

static void release(struct account *account, void *address)
{
    account->frees_begun++;
    if (cudaFree(address) != cudaSuccess)
        abort();
    account->frees_done++;
}

static void *churn(void *number)
{
    struct account *account = &accounts[(uintptr_t)number];
    void *held[HELD] = {0};
    long kept = 0, every = pairs > keeps && keeps > 0 ? pairs / keeps : 64;
    for (long i = 0; pairs == 0 || i < pairs; i++) {
        void **slot = &held[i * 7 % HELD];
        if (*slot)
            release(account, *slot);
        *slot = allocate(account, (size_t)(1024 + i % 5 * 1024));
        if (i % every == 0 && kept < keeps) {
            keep_allocation(account);
            kept++;
        }
    }
    for (; kept < keeps; kept++)
        keep_allocation(account);
    for (int i = 0; i < HELD; i++)
        if (held[i])
            release(account, held[i]);
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[THREADS];
    if (count < 4)
        return 2;
    keeps = strtol(arguments[2], NULL, 10);
    pairs = strtol(arguments[3], NULL, 10);
    int file = open(arguments[1], O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 4096) != 0)
        return 2;
    accounts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (accounts == MAP_FAILED)
        return 2;
    close(file);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, churn, (void *)i) != 0)
            return 2;
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
