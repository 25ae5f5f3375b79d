/* Sick twins: small, slow, or spread. Each line that ends with `sick: CODE` must be named by that finding, a warning or
 * an error, or by a note, too, where it ends with `tidy: CODE`, because such a program gives all back. `leak`: as one;
 * `cause`: by the finding of another line that was refused. `growing` of marks is as good as `retained`, but names a line
 * that allocates for several callers; and so is a leak. */
#include "programs.h"
#include <gpumem/gpumem.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

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
        check(cudaMalloc(&kept[i], 100 * KIB)); /* tidy: retained */
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
        check(cudaMalloc(&kept[epoch], 32 * MIB)); /* tidy: retained */
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
            check(cudaMalloc(&kept[count++], 2 * MIB)); /* tidy: retained */
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
        kept[i] = through_a_wrapper(MIB); /* tidy: retained, without marks */
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
        check(cudaMalloc(&sessions[i], MIB)); /* tidy: retained */
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
        check(cudaMalloc(&weights[epoch], 64 * MIB)); /* tidy: retained */
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
    while (cudaMalloc(&kept[count], 64 * MIB) == cudaSuccess) { /* sick: cause */
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
        check(cudaMallocAsync(&kept[i], MIB, 0)); /* tidy: retained */
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
        check(cudaMalloc(&kept, 512 * KIB)); /* tidy: retained */
        work(MIB);
        step_done("step");
    }
    check(cudaDeviceReset());
}

/* ---- what is still held at the end ----------------------------------------------------------- */

/* Never freed: a static array, as a global list would be. */
static void *held[4096];

static void losses_in_a_list(void)
{
    for (int i = 0; i < 2000; i++) {
        work(2 * MIB);
        check(cudaMalloc(&held[i], 512)); /* sick: leak */
        step_done("step");
    }
}

static void small_beside_a_model(void)
{
    void *model;
    check(cudaMalloc(&model, 3072 * MIB));
    for (int i = 0; i < 300; i++) {
        check(cudaMalloc(&held[i], 100 * KIB)); /* sick: retained */
        work(4 * MIB);
        step_done("step");
    }
    release(&model);
}

static void outputs_of_five_epochs(void)
{
    for (int epoch = 0; epoch < 5; epoch++) {
        for (int step = 0; step < 50; step++)
            work(8 * MIB);
        check(cudaMalloc(&held[epoch], 32 * MIB)); /* sick: retained */
        step_done("epoch");
    }
}

static void one_in_a_hundred(void)
{
    for (int i = 0; i < 3000; i++) {
        work(256 * KIB);
        if (i % 100 == 0)
            check(cudaMalloc(&held[i / 100], MIB)); /* sick: retained */
        step_done("step");
    }
}

static void bursts(void)
{
    size_t count = 0;
    for (int i = 0; i < 600; i++) {
        work(MIB);
        for (int k = 0; i % 20 == 19 && k < 3; k++)
            check(cudaMalloc(&held[count++], 512 * KIB)); /* sick: retained */
        step_done("step");
    }
}

/* A logger is switched on when half of the steps are over. */
static void in_the_second_half(void)
{
    for (int i = 0; i < 400; i++) {
        work(2 * MIB);
        if (i >= 200)
            check(cudaMalloc(&held[i], 256 * KIB)); /* sick: retained */
        step_done("step");
    }
}

static void behind_a_ramp_up(void)
{
    void *buffers[32];
    for (int i = 0; i < 32; i++) {
        check(cudaMalloc(&buffers[i], 8 * MIB));
        work(MIB);
        step_done("step");
    }
    for (int i = 0; i < 300; i++) {
        work(MIB);
        check(cudaMalloc(&held[i], 200 * KIB)); /* sick: retained */
        step_done("step");
    }
    release_all(buffers, 32);
}

/* A cache of eight, which gives back what it evicts, and a history, which does not. */
static void beside_a_bounded_cache(void)
{
    void *cache[8] = {NULL};
    for (int i = 0; i < 320; i++) {
        if (cache[i % 8])
            release(&cache[i % 8]);
        check(cudaMalloc(&cache[i % 8], 4 * MIB));
        check(cudaMalloc(&held[i], 128 * KIB)); /* sick: retained */
        step_done("request");
    }
    release_all(cache, 8);
}

/* One plan for each shape, and each request has another. */
static void plans_for_each_shape(void)
{
    for (int i = 0; i < 200; i++) {
        check(cudaMalloc(&held[i], 64 * KIB + (size_t)i * 4096)); /* sick: retained */
        work(draw(1, 4) * MIB);
        step_done("request");
    }
}

static void sizes_at_random(void)
{
    for (int i = 0; i < 400; i++) {
        check(cudaMalloc(&held[i], draw(1, 512) * KIB)); /* sick: retained */
        work(draw(1, 4) * MIB);
        step_done("step");
    }
}

/* The longer one comes, the shorter one is forgotten. */
static void grown_without_a_free(void)
{
    void *state;
    check(cudaMalloc(&state, MIB));
    for (size_t i = 1; i < 80; i++) {
        void *longer;
        check(cudaMalloc(&longer, (i + 1) * 256 * KIB)); /* sick: retained */
        check(cudaMemcpy(longer, state, 256 * KIB, cudaMemcpyDeviceToDevice));
        state = longer;
        step_done("token");
    }
}

/* Two buffers change places, and each eighth time one gets lost. */
static void lost_in_a_swap(void)
{
    void *front, *back;
    check(cudaMalloc(&front, MIB));
    for (int i = 0; i < 240; i++) {
        check(cudaMalloc(&back, MIB)); /* sick: retained */
        if (i % 8)
            release(&front);
        front = back;
        step_done("frame");
    }
}

static void checkpoints_in_memory(void)
{
    void *weights;
    check(cudaMalloc(&weights, 48 * MIB));
    for (int step = 0; step < 400; step++) {
        work(2 * MIB);
        if (step % 25 == 0) {
            check(cudaMalloc(&held[step / 25], 48 * MIB)); /* sick: retained */
            check(cudaMemcpy(held[step / 25], weights, 48 * MIB, cudaMemcpyDeviceToDevice));
        }
        step_done("step");
    }
    release(&weights);
}

/* Eight outputs of each evaluation stay, as of a list that nobody empties. */
static void evaluations(void)
{
    size_t count = 0;
    for (int epoch = 0; epoch < 12; epoch++) {
        for (int step = 0; step < 30; step++)
            work(4 * MIB);
        for (int batch = 0; batch < 8; batch++) {
            work(2 * MIB);
            check(cudaMalloc(&held[count++], MIB)); /* sick: retained */
        }
        step_done("epoch");
    }
}

/* Each seventh request is not valid, and the way out frees nothing. */
static void way_out_of_an_error(void)
{
    for (int i = 0; i < 210; i++) {
        void *request;
        check(cudaMalloc(&request, 2 * MIB)); /* sick: retained */
        work(MIB);
        if (i % 7 != 3)
            release(&request);
        step_done("request");
    }
}

struct session {
    void *keys, *values, *logits;
};

/* Its destructor forgot one of three. */
static void destructor_forgets(void)
{
    for (int i = 0; i < 200; i++) {
        struct session session;
        check(cudaMalloc(&session.keys, MIB));
        check(cudaMalloc(&session.values, MIB));
        check(cudaMalloc(&session.logits, 256 * KIB)); /* sick: retained */
        work(512 * KIB);
        release(&session.keys);
        release(&session.values);
        step_done("session");
    }
}

/* Two come, one goes. */
static void consumer_too_slow(void)
{
    size_t head = 0, tail = 0;
    for (int i = 0; i < 250; i++) {
        for (int k = 0; k < 2; k++)
            check(cudaMalloc(&held[head++], 512 * KIB)); /* sick: retained */
        release(&held[tail++]);
        work(MIB);
        step_done("round");
    }
}

static void one_line_each_second_round(void)
{
    for (int i = 0; i < 300; i++) {
        work(2 * MIB);
        if (i % 2)
            check(cudaMalloc(&held[i], 300 * KIB)); /* sick: retained */
        else
            check(cudaMalloc(&held[i], 200 * KIB)); /* sick: retained */
        step_done("step");
    }
}

/* Ten calls in a line, each of another place of the code. */
#define KEEP(slot, bytes) check(cudaMalloc(&held[i * 60 + (slot)], (bytes)))
#define KEEP_TEN(slot)                                                                             \
    KEEP(slot, 16 * KIB);                                                                          \
    KEEP((slot) + 1, 8 * KIB);                                                                     \
    KEEP((slot) + 2, 4 * KIB);                                                                     \
    KEEP((slot) + 3, 16 * KIB);                                                                    \
    KEEP((slot) + 4, 8 * KIB);                                                                     \
    KEEP((slot) + 5, 4 * KIB);                                                                     \
    KEEP((slot) + 6, 16 * KIB);                                                                    \
    KEEP((slot) + 7, 8 * KIB);                                                                     \
    KEEP((slot) + 8, 4 * KIB);                                                                     \
    KEEP((slot) + 9, 16 * KIB)

static void sixty_places(void)
{
    for (size_t i = 0; i < 60; i++) {
        work(4 * MIB);
        KEEP_TEN(0); /* sick: retained */
        KEEP_TEN(10);
        KEEP_TEN(20);
        KEEP_TEN(30);
        KEEP_TEN(40);
        KEEP_TEN(50);
        step_done("step");
    }
}

/* No leak is told of a program that was cut off. */
static void sixty_places_and_an_abort(void)
{
    for (size_t i = 0; i < 60; i++) {
        work(4 * MIB);
        KEEP_TEN(0);
        KEEP_TEN(10);
        KEEP_TEN(20);
        KEEP_TEN(30);
        KEEP_TEN(40);
        KEEP_TEN(50); /* sick: retained */
        step_done("step");
    }
    abort();
}

static void *new_tensor(size_t bytes)
{
    return through_a_wrapper(bytes);
}

static void *forward(size_t bytes)
{
    void *hidden = new_tensor(2 * bytes);
    release(&hidden);
    return new_tensor(bytes); /* sick: retained, without marks */
}

static void behind_three_wrappers(void)
{
    for (int i = 0; i < 150; i++) {
        void *scratch = new_tensor(MIB);
        held[i] = forward(512 * KIB);
        release(&scratch);
        work(MIB);
        step_done("step");
    }
    abort();
}

/* ---- other memory than cudaMalloc's ---------------------------------------------------------- */

static void managed_memory(void)
{
    for (int i = 0; i < 160; i++) {
        work(MIB);
        check(cudaMallocManaged(&held[i], 512 * KIB, cudaMemAttachGlobal)); /* sick: retained */
        step_done("step");
    }
}

static void rows_of_a_pitch(void)
{
    for (int i = 0; i < 160; i++) {
        size_t pitch;
        work(MIB);
        check(cudaMallocPitch(&held[i], &pitch, 1000, 512)); /* sick: retained */
        step_done("frame");
    }
}

static void textures(void)
{
    struct cudaChannelFormatDesc format =
        cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    for (int i = 0; i < 160; i++) {
        cudaArray_t array;
        work(MIB);
        check(cudaMallocArray(&array, &format, 256, 256, 0)); /* sick: retained */
        step_done("frame");
    }
}

static void pinned_memory(void)
{
    for (int i = 0; i < 160; i++) {
        work(MIB);
        check(cudaMallocHost(&held[i], 512 * KIB)); /* sick: leak */
        step_done("batch");
    }
}

static void registered_memory(void)
{
    for (int i = 0; i < 160; i++) {
        void *batch = aligned_alloc(4096, 512 * KIB);
        work(MIB);
        check(cudaHostRegister(batch, 512 * KIB, cudaHostRegisterDefault)); /* sick: leak */
        step_done("batch");
    }
}

static void in_stream_order(void)
{
    for (int i = 0; i < 200; i++) {
        void *temporary;
        check(cudaMallocAsync(&temporary, 2 * MIB, 0));
        check(cudaMallocAsync(&held[i], 256 * KIB, 0)); /* sick: retained */
        check(cudaFreeAsync(temporary, 0));
        step_done("step");
    }
}

static void from_a_pool(void)
{
    struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                          .location = {.type = cudaMemLocationTypeDevice}};
    cudaMemPool_t pool;
    check(cudaMemPoolCreate(&pool, &properties));
    for (int i = 0; i < 200; i++) {
        void *temporary;
        check(cudaMallocFromPoolAsync(&temporary, MIB, pool, 0));
        check(cudaMallocFromPoolAsync(&held[i], 256 * KIB, pool, 0)); /* sick: retained */
        check(cudaFreeAsync(temporary, 0));
        step_done("step");
    }
}

static void workspaces_of_streams(void)
{
    for (int i = 0; i < 120; i++) {
        cudaStream_t stream;
        check(cudaStreamCreate(&stream));
        check(cudaMalloc(&held[i], MIB)); /* sick: retained */
        work(512 * KIB);
        check(cudaStreamDestroy(stream));
        step_done("request");
    }
}

static void *worker(void *slot)
{
    void *scratch;
    check(cudaMalloc(&scratch, 512 * KIB));
    check(cudaMalloc(slot, MIB)); /* sick: retained */
    release(&scratch);
    return NULL;
}

/* A thread for each request leaves its arena. */
static void arenas_of_threads(void)
{
    for (int i = 0; i < 80; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, worker, &held[i]) != 0)
            exit(1);
        pthread_join(thread, NULL);
        work(MIB);
        step_done("request");
    }
}

static void *tidy_worker(void *rounds)
{
    for (int i = 0; i < *(int *)rounds; i++)
        work(MIB);
    return NULL;
}

static void beside_a_tidy_thread(void)
{
    int rounds = 400;
    pthread_t thread;
    if (pthread_create(&thread, NULL, tidy_worker, &rounds) != 0)
        exit(1);
    for (int i = 0; i < 200; i++) {
        void *batch;
        check(cudaMalloc(&batch, 2 * MIB));
        check(cudaMalloc(&held[i], 256 * KIB)); /* sick: retained */
        release(&batch);
        step_done("step");
    }
    pthread_join(thread, NULL);
}

/* ---- other ends ------------------------------------------------------------------------------ */

static void aborts_while_it_grows(void)
{
    signal(SIGABRT, SIG_DFL);
    for (int i = 0; i < 200; i++) {
        check(cudaMalloc(&held[i], MIB)); /* sick: retained */
        work(2 * MIB);
        step_done("step");
    }
    abort();
}

static void ends_by_the_system_call(void)
{
    for (int i = 0; i < 200; i++) {
        check(cudaMalloc(&held[i], MIB)); /* sick: retained */
        work(2 * MIB);
        step_done("step");
    }
    _exit(0);
}

/* A temporary is refused, which is not the cause. */
static void slow_growth_fills_the_device(void)
{
    void *model;
    check(cudaMalloc(&model, 4096 * MIB));
    for (size_t i = 0;; i++) {
        void *temporary;
        check(cudaMalloc(&held[i % 4096], 8 * MIB)); /* sick: cause */
        if (cudaMalloc(&temporary, draw(128, 512) * MIB) != cudaSuccess)
            exit(3);
        release(&temporary);
        work(16 * MIB);
        step_done("step");
    }
}

/* The batch of the evaluation is what does not fit; training did. */
static void evaluates_too_much_at_once(void)
{
    void *model, *scores;
    check(cudaMalloc(&model, 1024 * MIB));
    for (int step = 0; step < 30; step++)
        work(256 * MIB);
    for (int batch = 0; batch < 3; batch++) {
        void *logits;
        check(cudaMalloc(&logits, 512 * MIB));
        release(&logits);
    }
    if (cudaMalloc(&scores, 9000 * MIB) != cudaSuccess) /* sick: out-of-memory */
        exit(3);
}

static void does_not_fit_at_all(void)
{
    for (int layer = 0; layer < 200; layer++)
        if (cudaMalloc(&held[layer], 96 * MIB) != cudaSuccess) /* sick: out-of-memory */
            exit(3);
}

/* ---- the host -------------------------------------------------------------------------------- */

static void batches_from_the_heap(void)
{
    void *batch = malloc(8 * MIB), *to;
    check(cudaMalloc(&to, 8 * MIB));
    for (int i = 0; i < 100; i++) {
        check(cudaMemcpy(to, batch, 8 * MIB, cudaMemcpyHostToDevice)); /* sick: pageable-copies */
        work(MIB);
        step_done("step");
    }
    release(&to);
    free(batch);
}

static void asynchronous_in_name(void)
{
    void *batch = malloc(8 * MIB), *to;
    check(cudaMalloc(&to, 8 * MIB));
    for (int i = 0; i < 100; i++) {
        size_t bytes = 8 * MIB;
        check(cudaMemcpyAsync(to, batch, bytes, cudaMemcpyDefault, 0)); /* sick: pageable-copies */
        work(MIB);
        check(cudaStreamSynchronize(0));
        step_done("step");
    }
    release(&to);
    free(batch);
}

static void pins_each_batch(void)
{
    void *target;
    check(cudaMalloc(&target, 16 * MIB));
    for (int i = 0; i < 150; i++) {
        void *batch;
        check(cudaHostAlloc(&batch, 16 * MIB, cudaHostAllocDefault)); /* sick: churn */
        check(cudaMemcpyAsync(target, batch, 16 * MIB, cudaMemcpyHostToDevice, 0));
        check(cudaStreamSynchronize(0));
        check(cudaFreeHost(batch));
        step_done("step");
    }
    release(&target);
}

static void registers_each_batch(void)
{
    void *target;
    check(cudaMalloc(&target, 8 * MIB));
    for (int i = 0; i < 150; i++) {
        void *batch = aligned_alloc(4096, 8 * MIB);
        check(cudaHostRegister(batch, 8 * MIB, cudaHostRegisterPortable)); /* sick: churn */
        check(cudaMemcpyAsync(target, batch, 8 * MIB, cudaMemcpyHostToDevice, 0));
        check(cudaStreamSynchronize(0));
        check(cudaHostUnregister(batch));
        free(batch);
        step_done("step");
    }
    release(&target);
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
    {"losses_in_a_list", losses_in_a_list},
    {"small_beside_a_model", small_beside_a_model},
    {"outputs_of_five_epochs", outputs_of_five_epochs},
    {"one_in_a_hundred", one_in_a_hundred},
    {"bursts", bursts},
    {"in_the_second_half", in_the_second_half},
    {"behind_a_ramp_up", behind_a_ramp_up},
    {"beside_a_bounded_cache", beside_a_bounded_cache},
    {"plans_for_each_shape", plans_for_each_shape},
    {"sizes_at_random", sizes_at_random},
    {"grown_without_a_free", grown_without_a_free},
    {"lost_in_a_swap", lost_in_a_swap},
    {"checkpoints_in_memory", checkpoints_in_memory},
    {"evaluations", evaluations},
    {"way_out_of_an_error", way_out_of_an_error},
    {"destructor_forgets", destructor_forgets},
    {"consumer_too_slow", consumer_too_slow},
    {"one_line_each_second_round", one_line_each_second_round},
    {"sixty_places", sixty_places},
    {"sixty_places_and_an_abort", sixty_places_and_an_abort},
    {"behind_three_wrappers", behind_three_wrappers},
    {"managed_memory", managed_memory},
    {"rows_of_a_pitch", rows_of_a_pitch},
    {"textures", textures},
    {"pinned_memory", pinned_memory},
    {"registered_memory", registered_memory},
    {"in_stream_order", in_stream_order},
    {"from_a_pool", from_a_pool},
    {"workspaces_of_streams", workspaces_of_streams},
    {"arenas_of_threads", arenas_of_threads},
    {"beside_a_tidy_thread", beside_a_tidy_thread},
    {"aborts_while_it_grows", aborts_while_it_grows},
    {"ends_by_the_system_call", ends_by_the_system_call},
    {"slow_growth_fills_the_device", slow_growth_fills_the_device},
    {"evaluates_too_much_at_once", evaluates_too_much_at_once},
    {"does_not_fit_at_all", does_not_fit_at_all},
    {"batches_from_the_heap", batches_from_the_heap},
    {"asynchronous_in_name", asynchronous_in_name},
    {"pins_each_batch", pins_each_batch},
    {"registers_each_batch", registers_each_batch},
    {NULL, NULL},
};
