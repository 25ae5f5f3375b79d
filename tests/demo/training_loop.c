/*
 * A program shaped like a training loop, for the demo: pinned loader, parameters, activations that
 * come and go, one call site that forgets to free, and a request that fails although enough memory
 * is free in holes. It computes nothing; sizes follow the memory of the device, so that it runs on
 * any.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#define STEPS 12
#define LAYERS 8
#define SHARDS 24

static void check(cudaError_t error, const char *what)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    exit(1);
}

struct loader {
    void *staging[2]; /* pinned: copies to the device overlap */
    void *labels;     /* ordinary memory: every copy from it is pageable */
    size_t bytes;
};

struct model {
    void *parameters[LAYERS];
    void *gradients[LAYERS];
    size_t bytes;
};

static void loader_open(struct loader *loader, size_t bytes)
{
    loader->bytes = bytes;
    loader->labels = malloc(bytes / 64);
    for (int i = 0; i < 2; i++)
        check(cudaMallocHost(&loader->staging[i], bytes), "staging buffer");
}

static void loader_close(struct loader *loader)
{
    for (int i = 0; i < 2; i++)
        check(cudaFreeHost(loader->staging[i]), "staging buffer");
    free(loader->labels);
}

static void model_create(struct model *model, size_t bytes)
{
    model->bytes = bytes;
    for (int i = 0; i < LAYERS; i++) {
        check(cudaMalloc(&model->parameters[i], bytes), "parameters");
        check(cudaMalloc(&model->gradients[i], bytes), "gradients");
        check(cudaMemset(model->gradients[i], 0, bytes), "gradients");
    }
}

static void model_destroy(struct model *model)
{
    for (int i = 0; i < LAYERS; i++) {
        check(cudaFree(model->parameters[i]), "parameters");
        check(cudaFree(model->gradients[i]), "gradients");
    }
}

/* The planted leak: every step makes a mask that has no owner. */
static void cache_attention_mask(int step)
{
    void *mask;
    check(cudaMalloc(&mask, (size_t)1 << 20), "attention mask");
    check(cudaMemset(mask, step, (size_t)1 << 20), "attention mask");
}

static void train_step(struct model *model, struct loader *loader, cudaStream_t stream, int step)
{
    void *batch, *labels, *activations[LAYERS];
    check(cudaMalloc(&batch, loader->bytes), "batch");
    check(cudaMalloc(&labels, loader->bytes / 64), "labels");
    check(cudaMemcpyAsync(batch, loader->staging[step % 2], loader->bytes, cudaMemcpyHostToDevice,
                          stream),
          "copy of the batch");
    check(cudaMemcpy(labels, loader->labels, loader->bytes / 64, cudaMemcpyHostToDevice),
          "copy of the labels");
    for (int i = 0; i < LAYERS; i++)
        check(cudaMallocAsync(&activations[i], model->bytes / 2 + (size_t)i * 4096, stream),
              "activations");
    cache_attention_mask(step);
    for (int i = LAYERS; i-- > 0;)
        check(cudaFreeAsync(activations[i], stream), "activations");
    check(cudaStreamSynchronize(stream), "step");
    check(cudaFree(labels), "labels");
    check(cudaFree(batch), "batch");
}

/*
 * Fills the device with shards and drops every other one: half of it is free, in pieces. A request
 * larger than any piece is the classic "out of memory with memory free"; the program goes on
 * without it.
 */
static void load_checkpoint(void)
{
    void *shards[SHARDS], *whole = NULL;
    size_t available, total;
    check(cudaMemGetInfo(&available, &total), "memory info");
    size_t shard = available / (SHARDS + 1) & ~((size_t)(2 << 20) - 1);
    for (int i = 0; i < SHARDS; i++)
        check(cudaMalloc(&shards[i], shard), "shard");
    for (int i = 0; i < SHARDS; i += 2)
        check(cudaFree(shards[i]), "shard");
    if (cudaMalloc(&whole, shard * 4) == cudaErrorMemoryAllocation)
        printf("checkpoint: not loaded whole, going on in shards\n");
    else
        check(cudaFree(whole), "checkpoint");
    cudaGetLastError(); /* it was expected: forget it */
    for (int i = 1; i < SHARDS; i += 2)
        check(cudaFree(shards[i]), "shard");
}

int main(void)
{
    struct cudaDeviceProp properties;
    struct loader loader;
    struct model model;
    cudaStream_t stream;
    check(cudaGetDeviceProperties(&properties, 0), "device");
    printf("training on %s\n", properties.name);
    check(cudaStreamCreate(&stream), "stream");
    loader_open(&loader, (size_t)16 << 20);
    model_create(&model, (size_t)24 << 20);
    for (int step = 0; step < STEPS; step++)
        train_step(&model, &loader, stream, step);
    load_checkpoint();
    model_destroy(&model);
    loader_close(&loader);
    check(cudaStreamDestroy(stream), "stream");
    printf("done: %d steps\n", STEPS);
    return 0;
}
