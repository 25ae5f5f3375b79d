/* Programs that go wrong with memory, each in one way. */
#include "programs.h"
#include <cuda.h>
#include <gpumem/gpumem.h>
#include <stdlib.h>

/* A malformed batch leaves by an early return. */
static bool judge_batch(int number)
{
    void *scores;
    check(cudaMalloc(&scores, 3 * MIB)); /* marked: growing; leak */
    if (number % 7 == 3)
        return false;
    check(cudaFree(scores));
    return true;
}

static void early_return(void)
{
    for (int number = 0; number < 120; number++) {
        judge_batch(number);
        work(MIB);
        step_done("batch");
    }
}

/* Keeps an entry for each new shape; a destructor frees them all. */
static void unbounded_cache(void)
{
    enum { SHAPES = 80 };
    void *plans[SHAPES];
    for (int shape = 0; shape < SHAPES; shape++) {
        check(cudaMalloc(&plans[shape], draw(1, 3) * MIB)); /* finding: retained; marked: growing */
        work(MIB);
        step_done("shape");
    }
    for (int shape = 0; shape < SHAPES; shape++)
        release(&plans[shape]);
}

/* What is kept on purpose does not hide what grows beside it. */
static void cache_beside_purpose(void)
{
    enum { SHAPES = 80 };
    void *plans[SHAPES], *kept[SHAPES];
    for (int shape = 0; shape < SHAPES; shape++) {
        gpumem_ignore_begin();
        check(cudaMalloc(&kept[shape], MIB));
        gpumem_ignore_end();
        check(cudaMalloc(&plans[shape], draw(1, 3) * MIB)); /* finding: retained; marked: growing */
        work(MIB);
        step_done("shape");
    }
    for (int shape = 0; shape < SHAPES; shape++) {
        release(&plans[shape]);
        release(&kept[shape]);
    }
}

/* Requests end and give their pages back, but a cancelled one forgets them. */
static void cancelled_requests(void)
{
    enum { TOKENS = 20 };
    for (int request = 0; request < 60; request++) {
        void *pages[TOKENS];
        for (int token = 0; token < TOKENS; token++) {
            check(cudaMalloc(&pages[token], 256 * KIB)); /* marked: growing; leak */
            work(64 * KIB);
        }
        for (int token = 0; token < TOKENS && request % 5 != 2; token++)
            release(&pages[token]);
        step_done("request");
    }
}

/* Appends each result to all earlier ones, in a new buffer. */
static void history(void)
{
    void *all = NULL;
    for (size_t step = 1; step <= 64; step++) {
        void *longer;
        check(cudaMalloc(&longer, step * MIB)); /* finding: retained; marked: growing */
        check(cudaFree(all));
        all = longer;
        work(2 * MIB);
        step_done("step");
    }
    release(&all);
}

/* Batches from ordinary memory. */
static void pageable_batches(void)
{
    void *batch = calloc(1, 2 * MIB), *target;
    check(cudaMalloc(&target, 2 * MIB));
    for (int step = 0; step < 40; step++) {
        size_t bytes = 2 * MIB;
        check(cudaMemcpy(target, batch, bytes, cudaMemcpyDefault)); /* finding: pageable-copies */
        work(MIB);
        step_done("step");
    }
    release(&target);
    free(batch);
}

/* A pinned buffer for each batch, freed at the end. */
static void pinned_batches(void)
{
    enum { BATCHES = 64 };
    void *buffers[BATCHES], *target;
    check(cudaMalloc(&target, MIB));
    for (int i = 0; i < BATCHES; i++) {
        check(cudaMallocHost(&buffers[i], MIB)); /* finding: pinned-growth; marked: growing */
        check(cudaMemcpyAsync(target, buffers[i], MIB, cudaMemcpyHostToDevice, 0));
        step_done("batch");
    }
    for (int i = 0; i < BATCHES; i++)
        check(cudaFreeHost(buffers[i]));
    release(&target);
}

/* All memory comes from one function, which the compiler puts into its callers. */
static inline __attribute__((always_inline)) void *acquire(size_t size)
{
    void *memory;
    check(cudaMalloc(&memory, size));
    return memory;
}

/* The same, in a function of its own. */
static __attribute__((noinline)) void *obtain(size_t size)
{
    void *memory = acquire(size);
    return memory ? memory : acquire(size);
}

/* Of the users of the first, one keeps what it got. */
static void inlined_wrapper(void)
{
    enum { STEPS = 60 };
    void *log[STEPS];
    for (int step = 0; step < STEPS; step++) {
        void *scratch = acquire(2 * MIB);
        log[step] = acquire(MIB); /* finding: retained; marked: growing */
        release(&scratch);
        work(MIB);
        step_done("step");
    }
    for (int step = 0; step < STEPS; step++)
        release(&log[step]);
}

/* Two wrappers; of the users of each, one never gives back what it got. */
static void leaks_behind_wrappers(void)
{
    for (int request = 0; request < 12; request++) {
        void *scratch = acquire(2 * MIB), *staging = obtain(2 * MIB);
        check(cudaMemset(acquire(MIB), 0, MIB)); /* leak; marked: growing */
        check(cudaMemset(obtain(MIB), 0, MIB));  /* leak; marked: growing */
        release(&scratch);
        release(&staging);
        step_done("request");
    }
}

/* The same model on two devices; the first device gathers the results of both. */
static void gathering(void)
{
    enum { BATCHES = 16 };
    void *replicas[2], *outputs[BATCHES];
    for (int device = 0; device < 2; device++) {
        check(cudaSetDevice(device));
        check(cudaMalloc(&replicas[device], 512 * MIB));
    }
    check(cudaSetDevice(0));
    for (int i = 0; i < BATCHES; i++)
        check(cudaMalloc(&outputs[i], 64 * MIB)); /* finding: device-imbalance */
    for (int i = 0; i < BATCHES; i++)
        release(&outputs[i]);
    for (int device = 0; device < 2; device++)
        release(&replicas[device]);
}

/* A limit that is too high for the device, which ends the program. */
static void too_large(void)
{
    void *blocks[200];
    size_t count = 0;
    for (int status = 0; status == 0; count += !status)
        status = cudaMalloc(&blocks[count], 64 * MIB); /* finding: out-of-memory; note: retained */
    while (count-- > 0)
        release(&blocks[count]);
}

/* Finds the largest buffer that fits, by failing. */
static void search(void)
{
    void *buffer = NULL;
    size_t size = 16384 * MIB;
    while (cudaMalloc(&buffer, size) != cudaSuccess) /* finding: batch-size-search */
        size = size * 3 / 4;
    for (int step = 0; step < 20; step++)
        work(MIB);
    release(&buffer);
}

/* Compiles a kernel for each length that comes, and keeps them all. */
static void compiles_each_length(void)
{
    enum { LENGTHS = 30 };
    CUmodule modules[LENGTHS];
    for (int i = 0; i < LENGTHS; i++) {
        work(MIB);
        if (cuModuleLoadData(&modules[i], "code")) /* note: growing-code */
            abort();
        work(2 * MIB);
        step_done("request");
    }
    for (int i = 0; i < LENGTHS; i++)
        cuModuleUnload(modules[i]);
}

const struct program sick_programs[] = {
    {"early_return", early_return},
    {"unbounded_cache", unbounded_cache},
    {"cache_beside_purpose", cache_beside_purpose},
    {"cancelled_requests", cancelled_requests},
    {"history", history},
    {"pageable_batches", pageable_batches},
    {"pinned_batches", pinned_batches},
    {"inlined_wrapper", inlined_wrapper},
    {"leaks_behind_wrappers", leaks_behind_wrappers},
    {"gathering", gathering},
    {"too_large", too_large},
    {"search", search},
    {"compiles_each_length", compiles_each_length},
    {NULL, NULL},
};
