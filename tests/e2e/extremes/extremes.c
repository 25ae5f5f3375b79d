/* Programs that demand as much of a reader as a real program may: extremes KIND NUMBER. */
#include <cuda.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MUST(call)                                                                                 \
    do                                                                                             \
        if ((call) != CUDA_SUCCESS) {                                                              \
            fputs("extremes: " #call "\n", stderr);                                                \
            abort();                                                                               \
        }                                                                                          \
    while (0)

#define PER_THREAD 1000000 /* below the period of the simulator's addresses in its no-op mode */

static void *leak(void *number)
{
    CUdeviceptr address;
    for (size_t i = 0; i < (size_t)number; i++)
        MUST(cuMemAlloc(&address, 64));
    return NULL;
}

static void on_threads(void *(*work)(void *), size_t threads, size_t each)
{
    pthread_t handles[64];
    for (size_t i = 0; i < threads; i++)
        if (pthread_create(&handles[i], NULL, work, (void *)each) != 0)
            abort();
    for (size_t i = 0; i < threads; i++)
        pthread_join(handles[i], NULL);
}

/* From one line; nothing is ever freed. */
static void leaks(size_t number)
{
    for (; number > PER_THREAD; number -= PER_THREAD)
        on_threads(leak, 1, PER_THREAD);
    on_threads(leak, 1, number);
}

static void *churn(void *number)
{
    CUdeviceptr kept[100] = {0};
    for (size_t i = 0; i < (size_t)number; i++) {
        if (kept[i % 100])
            MUST(cuMemFree(kept[i % 100]));
        MUST(cuMemAlloc(&kept[i % 100], 64 + i % 7777));
    }
    return NULL;
}

static void threads(size_t number)
{
    on_threads(churn, 64, number);
}

static void contexts(size_t number)
{
    for (size_t i = 0; i < number; i++) {
        CUcontext context;
        CUdevice device;
        CUdeviceptr address;
        MUST(cuDeviceGet(&device, 0));
        MUST(cuCtxCreate(&context, NULL, 0, device));
        for (int lives = 0; lives < 20; lives++)
            MUST(cuMemAlloc(&address, 64));
        MUST(cuCtxDestroy(context));
    }
}

/* Launches of a graph that allocates and frees 50 times. */
static void launches(size_t number)
{
    CUgraph graph;
    CUgraphExec executable;
    CUgraphNode node, before = NULL;
    CUDA_MEM_ALLOC_NODE_PARAMS parameters = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
        .bytesize = 512};
    MUST(cuGraphCreate(&graph, 0));
    for (int i = 0; i < 50; i++) {
        MUST(cuGraphAddMemAllocNode(&node, graph, &before, before != NULL, &parameters));
        MUST(cuGraphAddMemFreeNode(&before, graph, &node, 1, parameters.dptr));
    }
    MUST(cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (size_t i = 0; i < number; i++)
        MUST(cuGraphLaunch(executable, NULL));
    MUST(cuStreamSynchronize(NULL));
}

/* ---- stacks ---------------------------------------------------------------------------------- */

typedef void step(size_t path, int left);
static step step_0, step_1, step_2, step_3;

static void descend(size_t path, int left)
{
    static step *const steps[] = {step_0, step_1, step_2, step_3};
    if (left)
        steps[path % 4](path / 4, left - 1);
    else
        leak((void *)1);
    __asm__ volatile("");
}

static void step_0(size_t path, int left)
{
    descend(path, left);
    __asm__ volatile("" ::"r"(0));
}

static void step_1(size_t path, int left)
{
    descend(path, left);
    __asm__ volatile("" ::"r"(1));
}

static void step_2(size_t path, int left)
{
    descend(path, left);
    __asm__ volatile("" ::"r"(2));
}

static void step_3(size_t path, int left)
{
    descend(path, left);
    __asm__ volatile("" ::"r"(3));
}

static void stacks(size_t number)
{
    for (size_t i = 0; i < number; i++)
        descend(i, 9);
}

/* Two frames per step, deeper than the recorder's limit. */
static void deep(size_t number)
{
    for (size_t i = 0; i < number; i++)
        descend(i * 2654435761u, 130);
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(size_t);
    } kinds[] = {{"leaks", leaks},       {"threads", threads}, {"contexts", contexts},
                 {"launches", launches}, {"stacks", stacks},   {"deep", deep}};
    CUcontext context;
    CUdevice device;
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    for (size_t i = 0; count == 3 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kinds[i].name, arguments[1]) == 0) {
            kinds[i].run((size_t)atol(arguments[2]));
            return 0;
        }
    fputs("usage: extremes KIND NUMBER\n", stderr);
    return 2;
}
