/* A program whose allocations a test decides, line by line on stdin: "a SLOT BYTES" allocates, "f SLOT"
 * frees, "t SLOT COUNT" allocates and frees a mebibyte so many times on a thread of its own, "h" hands
 * memory from one thread, which allocates it, to another, which frees it, until the program ends. It
 * answers each line with one. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SLOTS 64

static void *slots[SLOTS];

static void *turn(void *count_of)
{
    for (unsigned long i = *(unsigned long *)count_of; i; i--) {
        void *memory = NULL;
        if (cudaMalloc(&memory, 1 << 20) == cudaSuccess)
            cudaFree(memory);
    }
    return NULL;
}

/* One hand over: NULL means that it is empty. */
static void *handed;

static void *give(void *unused)
{
    for (;;) {
        void *memory = NULL;
        cudaMalloc(&memory, 1 << 20);
        while (__atomic_load_n(&handed, __ATOMIC_ACQUIRE))
            sched_yield();
        __atomic_store_n(&handed, memory, __ATOMIC_RELEASE);
    }
    return unused;
}

static void *take(void *unused)
{
    for (;;) {
        void *memory = __atomic_exchange_n(&handed, NULL, __ATOMIC_ACQ_REL);
        if (memory)
            cudaFree(memory);
        else
            sched_yield();
    }
    return unused;
}

static void hand_over(void)
{
    pthread_t threads[2];
    if (pthread_create(&threads[0], NULL, give, NULL) == 0)
        pthread_create(&threads[1], NULL, take, NULL);
}

int main(void)
{
    char line[128];
    printf("%d\n", (int)getpid());
    fflush(stdout);
    while (fgets(line, sizeof(line), stdin)) {
        unsigned slot;
        unsigned long number;
        pthread_t thread;
        if (sscanf(line, "a %u %lu", &slot, &number) == 2 && slot < SLOTS)
            cudaMalloc(&slots[slot], number);
        else if (sscanf(line, "f %u", &slot) == 1 && slot < SLOTS)
            cudaFree(slots[slot]);
        else if (sscanf(line, "t %u %lu", &slot, &number) == 2 &&
                 pthread_create(&thread, NULL, turn, &number) == 0)
            pthread_join(thread, NULL);
        else if (line[0] == 'h')
            hand_over();
        puts("done");
        fflush(stdout);
    }
    return 0;
}
