/* Sick twins: small, slow, or spread. Each line that ends with `sick: CODE` must be named by that finding, of any
 * severity; `growing` of marks is as good as `retained`, but names a line that allocates for several callers. */
#include "programs.h"
#include <gpumem/gpumem.h>
#include <stdlib.h>

static void release_all(void **memory, size_t count)
{
    for (size_t i = 0; i < count; i++)
        release(&memory[i]);
}

static void slow_beside_a_model(void)
{
    enum { ROUNDS = 300 };
    void *model, *kept[ROUNDS];
    check(cudaMalloc(&model, 3072 * MIB));
    for (int i = 0; i < ROUNDS; i++) {
        check(cudaMalloc(&kept[i], 100 * KIB)); /* sick: retained */
        work(4 * MIB);
        step_done("step");
    }
    release_all(kept, ROUNDS);
    release(&model);
}

static void once_an_epoch(void)
{
    enum { EPOCHS = 5 };
    void *kept[EPOCHS];
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        for (int step = 0; step < 50; step++)
            work(8 * MIB);
        check(cudaMalloc(&kept[epoch], 32 * MIB)); /* sick: retained */
        step_done("epoch");
    }
    release_all(kept, EPOCHS);
}

static void every_tenth_round(void)
{
    void *kept[40];
    size_t count = 0;
    for (int i = 0; i < 400; i++) {
        work(2 * MIB);
        if (i % 10 == 0)
            check(cudaMalloc(&kept[count++], 2 * MIB)); /* sick: retained */
        step_done("step");
    }
    release_all(kept, count);
}

static void *through_a_wrapper(size_t bytes)
{
    void *memory;
    check(cudaMalloc(&memory, bytes));
    return memory;
}

static void one_of_two_users(void)
{
    enum { ROUNDS = 80 };
    void *kept[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        void *scratch = through_a_wrapper(4 * MIB);
        kept[i] = through_a_wrapper(MIB); /* sick: retained, without marks */
        release(&scratch);
        step_done("step");
    }
    release_all(kept, ROUNDS);
}

/* Closes the first half of its sessions only. */
static void half_of_the_sessions(void)
{
    enum { SESSIONS = 120 };
    void *sessions[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) {
        check(cudaMalloc(&sessions[i], MIB)); /* sick: retained */
        work(MIB);
        if (i % 2)
            release(&sessions[i]);
        step_done("session");
    }
    for (int i = 0; i < SESSIONS; i += 2)
        release(&sessions[i]);
}

static void weights_loaded_again(void)
{
    enum { EPOCHS = 12 };
    void *weights[EPOCHS];
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        check(cudaMalloc(&weights[epoch], 64 * MIB)); /* sick: retained */
        for (int step = 0; step < 20; step++)
            work(2 * MIB);
        step_done("epoch");
    }
    release_all(weights, EPOCHS);
}

static void fills_the_device(void)
{
    void *kept[400], *model;
    size_t count = 0;
    check(cudaMalloc(&model, 512 * MIB));
    while (cudaMalloc(&kept[count], 64 * MIB) == cudaSuccess) { /* sick: retained */
        work(4 * MIB);
        count++;
        step_done("step");
    }
    exit(3);
}

static void one_temporary(void)
{
    void *model, *scores;
    check(cudaMalloc(&model, 512 * MIB));
    for (int step = 0; step < 20; step++)
        work(8 * MIB);
    check(cudaMalloc(&scores, 60000 * MIB)); /* sick: out-of-memory */
}

static void pinned_in_each_round(void)
{
    void *target;
    check(cudaMalloc(&target, MIB));
    for (int i = 0; i < 200; i++) {
        void *staging;
        check(cudaMallocHost(&staging, 4 * MIB)); /* sick: churn */
        check(cudaMemcpyAsync(target, staging, MIB, cudaMemcpyHostToDevice, 0));
        check(cudaFreeHost(staging));
        step_done("step");
    }
    release(&target);
}

static void registered_in_each_round(void)
{
    void *batch = aligned_alloc(4096, 4 * MIB);
    for (int i = 0; i < 200; i++) {
        check(cudaHostRegister(batch, 4 * MIB, cudaHostRegisterDefault)); /* sick: churn */
        check(cudaHostUnregister(batch));
        step_done("step");
    }
    free(batch);
}

static void results_to_the_heap(void)
{
    void *results = malloc(4 * MIB), *from;
    check(cudaMalloc(&from, 4 * MIB));
    for (int i = 0; i < 200; i++) {
        size_t bytes = 4 * MIB;
        check(cudaMemcpy(results, from, bytes, cudaMemcpyDefault)); /* sick: pageable-copies */
        step_done("step");
    }
    release(&from);
    free(results);
}

static void grows_in_stream_order(void)
{
    void *kept[100];
    for (int i = 0; i < 100; i++) {
        void *temporary;
        check(cudaMallocAsync(&temporary, 2 * MIB, 0));
        check(cudaMallocAsync(&kept[i], MIB, 0)); /* sick: retained */
        check(cudaFreeAsync(temporary, 0));
        step_done("step");
    }
    for (int i = 0; i < 100; i++)
        check(cudaFreeAsync(kept[i], 0));
}

/* The context is reset at the end, which is no free. */
static void ends_by_a_reset(void)
{
    for (int i = 0; i < 150; i++) {
        void *kept;
        check(cudaMalloc(&kept, 512 * KIB)); /* sick: retained */
        work(MIB);
        step_done("step");
    }
    check(cudaDeviceReset());
}

const struct program sick_programs[] = {
    {"slow_beside_a_model", slow_beside_a_model},
    {"once_an_epoch", once_an_epoch},
    {"every_tenth_round", every_tenth_round},
    {"one_of_two_users", one_of_two_users},
    {"half_of_the_sessions", half_of_the_sessions},
    {"weights_loaded_again", weights_loaded_again},
    {"fills_the_device", fills_the_device},
    {"one_temporary", one_temporary},
    {"pinned_in_each_round", pinned_in_each_round},
    {"registered_in_each_round", registered_in_each_round},
    {"results_to_the_heap", results_to_the_heap},
    {"grows_in_stream_order", grows_in_stream_order},
    {"ends_by_a_reset", ends_by_a_reset},
    {NULL, NULL},
};
