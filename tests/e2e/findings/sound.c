/* Sound programs, however much memory they move. */
#include "programs.h"
#include <cuda.h>
#include <gpumem/gpumem.h>
#include <stdlib.h>

#define LAYERS 12

/* ---- training -------------------------------------------------------------------------------- */

static void make_layers(void *layers[LAYERS], size_t bytes)
{
    for (int i = 0; i < LAYERS; i++)
        check(cudaMalloc(&layers[i], bytes));
}

static void release_layers(void *layers[LAYERS])
{
    for (int i = 0; i < LAYERS; i++)
        release(&layers[i]);
}

/* Copies through a pinned buffer of its own. */
static void save_checkpoint(void *layers[LAYERS], size_t bytes)
{
    void *staging;
    check(cudaMallocHost(&staging, bytes));
    for (int i = 0; i < LAYERS; i++)
        check(cudaMemcpy(staging, layers[i], bytes, cudaMemcpyDeviceToHost));
    check(cudaFreeHost(staging));
}

/* Activations that live from the forward pass to the backward pass. */
static void pass(size_t batch)
{
    void *activations[LAYERS];
    for (int i = 0; i < LAYERS; i++)
        check(cudaMalloc(&activations[i], batch * 32 * KIB)); /* note: churn */
    for (int i = LAYERS; i-- > 0;)
        release(&activations[i]);
}

/* Warm-up, batches of any size, gradients that live for four of them, the optimizer's state from
 * the first step on, a validation now and then, checkpoints. */
static void train(void)
{
    enum { BYTES = 4 << 20 };
    void *parameters[LAYERS], *state[LAYERS] = {NULL}, *gradients[LAYERS] = {NULL};
    make_layers(parameters, BYTES);
    work(64 * MIB); /* libraries try their algorithms */
    for (int step = 0; step < 60; step++) {
        pass(draw(8, 64));
        if (step % 4 == 0)
            make_layers(gradients, BYTES);
        if (step == 3)
            make_layers(state, BYTES);
        if (step % 4 == 3)
            release_layers(gradients);
        step_done("step");
        if (step % 10 == 9) {
            for (int batch = 0; batch < 5; batch++)
                work(draw(1, 8) * MIB);
            save_checkpoint(parameters, BYTES);
            step_done("epoch");
        }
    }
    release_layers(parameters);
    release_layers(state);
}

/* Trains a large model, then evaluates it with a small one. */
static void swap_models(void)
{
    void *large[LAYERS], *small[LAYERS];
    make_layers(large, 32 * MIB);
    for (int step = 0; step < 20; step++) {
        pass(64);
        step_done("step");
    }
    release_layers(large);
    make_layers(small, 4 * MIB);
    for (int step = 0; step < 20; step++) {
        work(MIB);
        step_done("judge");
    }
    release_layers(small);
}

/* Two parts of one model, and the second has more layers and the head. */
static void pipeline(void)
{
    void *few[4], *many[LAYERS], *head, *logits;
    check(cudaSetDevice(0));
    for (int i = 0; i < 4; i++)
        check(cudaMalloc(&few[i], 32 * MIB));
    check(cudaSetDevice(1));
    make_layers(many, 32 * MIB);
    check(cudaMalloc(&head, 512 * MIB));
    for (int step = 0; step < 20; step++) {
        for (int device = 0; device < 2; device++) {
            check(cudaSetDevice(device));
            pass(16);
        }
        check(cudaMalloc(&logits, 256 * MIB));
        release(&logits);
        step_done("step");
    }
    for (int i = 0; i < 4; i++)
        release(&few[i]);
    release_layers(many);
    release(&head);
}

/* ---- caches ---------------------------------------------------------------------------------- */

/* The first epoch fills it, the other two use it. */
static void cache_of_an_epoch(void)
{
    enum { SAMPLES = 50 };
    void *cache[SAMPLES] = {NULL};
    for (int i = 0; i < 3 * SAMPLES; i++) {
        if (!cache[i % SAMPLES])
            check(cudaMalloc(&cache[i % SAMPLES], 2 * MIB)); /* note: retained */
        work(MIB);
        step_done("sample");
    }
    for (int i = 0; i < SAMPLES; i++)
        release(&cache[i]);
}

/* Evicts the least recently used of sixteen. */
static void lru_cache(void)
{
    enum { ENTRIES = 16 };
    void *cache[ENTRIES] = {NULL};
    for (int i = 0; i < 200; i++) {
        if (cache[i % ENTRIES])
            release(&cache[i % ENTRIES]);
        check(cudaMalloc(&cache[i % ENTRIES], draw(1, 4) * MIB));
        step_done("request");
    }
    for (int i = 0; i < ENTRIES; i++)
        release(&cache[i]);
}

/* A buffer as large as the largest batch so far. */
static void workspace_of_the_largest(void)
{
    void *workspace = NULL;
    size_t size = 0;
    for (int step = 0; step < 60; step++) {
        size_t wanted = draw(1, 128) * MIB;
        if (wanted > size) {
            check(cudaFree(workspace));
            check(cudaMalloc(&workspace, size = wanted));
        }
        work(MIB);
        step_done("step");
    }
    release(&workspace);
}

/* Requests of any length: each token adds to the request's state, and the end of the request frees
 * all of it. The last request is the longest. */
static void token_cache(void)
{
    enum { LONGEST = 64 };
    void *pages[LONGEST];
    for (int request = 0; request < 12; request++) {
        size_t tokens = request < 11 ? draw(8, 48) : LONGEST;
        for (size_t token = 0; token < tokens; token++) {
            check(cudaMalloc(&pages[token], MIB));
            work(256 * KIB);
            step_done("token");
        }
        for (size_t token = 0; token < tokens; token++)
            release(&pages[token]);
        step_done("request");
    }
}

/* Results of a validation stay on the device until it ends; the program ends with one. */
static void joined_results(void)
{
    enum { BATCHES = 30 };
    void *results[BATCHES];
    for (int epoch = 0; epoch < 4; epoch++) {
        for (int step = 0; step < 40; step++) {
            work(2 * MIB);
            step_done("step");
        }
        for (int batch = 0; batch < BATCHES; batch++) {
            check(cudaMalloc(&results[batch], 512 * KIB));
            step_done("validation batch");
        }
        for (int batch = 0; batch < BATCHES; batch++)
            release(&results[batch]);
    }
}

/* ---- many, asynchronous, and from the host --------------------------------------------------- */

/* Copies batches ahead of their use, and rewrites a table of a few values now and then. */
static void prefetch(void)
{
    void *staging[2], *target[2], *table, *values = calloc(1, 100 * KIB);
    for (int i = 0; i < 2; i++) {
        check(cudaMallocHost(&staging[i], 4 * MIB));
        check(cudaMalloc(&target[i], 4 * MIB));
    }
    check(cudaMalloc(&table, 100 * KIB));
    for (int step = 0; step < 200; step++) {
        check(cudaMemcpyAsync(target[step % 2], staging[step % 2], 4 * MIB, cudaMemcpyHostToDevice,
                              0));
        if (step % 20 == 0)
            check(cudaMemcpy(table, values, 100 * KIB, cudaMemcpyHostToDevice));
        step_done("step");
    }
    for (int i = 0; i < 2; i++) {
        check(cudaFreeHost(staging[i]));
        release(&target[i]);
    }
    release(&table);
    free(values);
}

/* Graphs of small objects: thousands live, thousands change. */
static void many_small(void)
{
    enum { OBJECTS = 3000 };
    void *objects[OBJECTS];
    for (int i = 0; i < OBJECTS; i++)
        check(cudaMalloc(&objects[i], draw(1, 64) * KIB));
    for (int i = 0; i < 6000; i++) {
        void **object = &objects[draw(0, OBJECTS - 1)];
        release(object);
        check(cudaMalloc(object, draw(1, 64) * KIB));
        if (i % 100 == 0)
            step_done("hundred");
    }
    for (int i = 0; i < OBJECTS; i++)
        release(&objects[i]);
}

/* Stream-ordered memory, a pool that is trimmed. */
static void stream_ordered(void)
{
    cudaMemPool_t pool;
    check(cudaDeviceGetDefaultMemPool(&pool, 0));
    for (int step = 0; step < 50; step++) {
        void *blocks[8];
        for (int i = 0; i < 8; i++)
            check(cudaMallocAsync(&blocks[i], draw(1, 8) * MIB, 0));
        for (int i = 0; i < 8; i++)
            check(cudaFreeAsync(blocks[i], 0));
        if (step % 10 == 9)
            check(cudaMemPoolTrimTo(pool, 0));
        step_done("step");
    }
}

/* The twin of unbounded_cache, which says that what it keeps is no leak. */
static void cache_on_purpose(void)
{
    enum { SHAPES = 80 };
    void *plans[SHAPES];
    for (int shape = 0; shape < SHAPES; shape++) {
        gpumem_ignore_begin();
        check(cudaMalloc(&plans[shape], draw(1, 3) * MIB));
        gpumem_ignore_end();
        work(MIB);
        step_done("shape");
    }
    for (int shape = 0; shape < SHAPES; shape++)
        release(&plans[shape]);
}

/* The twin of compiles_each_length: kernels for some lengths at first, and one that is replaced now and then. */
static void compiles_some_lengths(void)
{
    enum { LENGTHS = 12, REQUESTS = 200 };
    CUmodule modules[LENGTHS], replaced = NULL;
    for (int i = 0; i < REQUESTS; i++) {
        work(MIB);
        if (i < LENGTHS && cuModuleLoadData(&modules[i], "code"))
            abort();
        if (i % 5 == 0 &&
            ((replaced && cuModuleUnload(replaced)) || cuModuleLoadData(&replaced, "code")))
            abort();
        step_done("request");
    }
}

const struct program sound_programs[] = {
    {"train", train},
    {"swap_models", swap_models},
    {"pipeline", pipeline},
    {"cache_of_an_epoch", cache_of_an_epoch},
    {"lru_cache", lru_cache},
    {"workspace_of_the_largest", workspace_of_the_largest},
    {"token_cache", token_cache},
    {"joined_results", joined_results},
    {"prefetch", prefetch},
    {"many_small", many_small},
    {"stream_ordered", stream_ordered},
    {"cache_on_purpose", cache_on_purpose},
    {"compiles_some_lengths", compiles_some_lengths},
    {NULL, NULL},
};
