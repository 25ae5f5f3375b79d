/*
 * The loop of the benchmarks: pairs of allocation and free from 8 call sites at a given stack
 * depth.
 *
 *     loop_malloc PAIRS DEPTH THREADS SHAPE      malloc/free, as heap profilers see it
 *     loop_cuda   PAIRS DEPTH THREADS SHAPE      cuMemAlloc/cuMemFree, answered by the simulator's
 * no-op path
 *
 * SHAPE is "same" (the stack above the leaf never changes), "leaves" (the three innermost frames
 * are random), "random" (all frames are) or "hold": the stacks of "same", but each thread keeps a
 * million blocks, and a pair frees one of them at random and allocates another. The blocks stay
 * at the end, so a thread has a million allocations and PAIRS pairs. With "hold", loop_cuda needs
 * the simulator's ordinary path, because the no-op path may answer with an address that is held.
 *
 * Prints four numbers:
 *   - ns per event, an event being an allocation or a free: wall time over the events of all
 *     threads together;
 *   - ns of CPU per event of the threads named "gpumem", that is the recorder's drainer;
 *   - KiB of memory resident at the end, and of these, how many are of mapped files.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef LOOP_CUDA
#include <cuda.h>
#endif
#include "bench.h"

static long pairs;
static int depth;
static int shape;
static pthread_barrier_t start;

enum { SAME, LEAVES, RANDOM, HOLD };
enum { HELD = 1000000, WARM = 1000 };

struct state {
    uint64_t seed;
    uint64_t sink;
    uintptr_t *held; /* HOLD: the blocks, as addresses */
    int filled;
};

static inline unsigned draw_number(struct state *state)
{
    state->seed = state->seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state->seed >> 40);
}

/* HOLD: the place of the next block: an empty one while there is any, then a random one. */
static inline uintptr_t *next_held(struct state *state)
{
    if (state->filled < HELD)
        return &state->held[state->filled++];
    return &state->held[draw_number(state) % HELD];
}

/* One of eight call sites of each kind; distinct instructions, so distinct return addresses. */
#ifdef LOOP_CUDA
#define PAIR(n)                                                                                    \
    __attribute__((noinline)) static void pair_##n(struct state *state)                            \
    {                                                                                              \
        CUdeviceptr address;                                                                       \
        cuMemAlloc(&address, 64 + 16 * (n));                                                       \
        state->sink += address;                                                                    \
        cuMemFree(address);                                                                        \
    }
#define RENEW(n)                                                                                   \
    __attribute__((noinline)) static void renew_##n(struct state *state)                           \
    {                                                                                              \
        uintptr_t *place = next_held(state);                                                       \
        CUdeviceptr address;                                                                       \
        if (*place && cuMemFree(*place) != 0)                                                      \
            abort();                                                                               \
        if (cuMemAlloc(&address, 64 + 16 * (n)) != 0)                                              \
            abort();                                                                               \
        *place = address;                                                                          \
    }
#else
#define PAIR(n)                                                                                    \
    __attribute__((noinline)) static void pair_##n(struct state *state)                            \
    {                                                                                              \
        void *volatile address = malloc(64 + 16 * (n));                                            \
        state->sink += (uintptr_t)address;                                                         \
        free(address);                                                                             \
    }
#define RENEW(n)                                                                                   \
    __attribute__((noinline)) static void renew_##n(struct state *state)                           \
    {                                                                                              \
        uintptr_t *place = next_held(state);                                                       \
        if (*place)                                                                                \
            free((void *)*place);                                                                  \
        *place = (uintptr_t)malloc(64 + 16 * (n));                                                 \
        if (!*place)                                                                               \
            abort();                                                                               \
    }
#endif
PAIR(0);
PAIR(1);
PAIR(2);
PAIR(3);
PAIR(4);
PAIR(5);
PAIR(6);
PAIR(7);
RENEW(0);
RENEW(1);
RENEW(2);
RENEW(3);
RENEW(4);
RENEW(5);
RENEW(6);
RENEW(7);

typedef void frame_function(struct state *state, int left, long count);
static frame_function frame_0, frame_1, frame_2, frame_3;
static frame_function *const frames[] = {frame_0, frame_1, frame_2, frame_3};
typedef void site_function(struct state *state);
static site_function *const sites[] = {pair_0, pair_1, pair_2, pair_3,
                                       pair_4, pair_5, pair_6, pair_7};
static site_function *const renewals[] = {renew_0, renew_1, renew_2, renew_3,
                                          renew_4, renew_5, renew_6, renew_7};

/*
 * Descends to the depth and does the work there: all of it in one visit (SAME), or one pair per
 * visit. The empty asm keeps each call from becoming a jump.
 */
#define FRAME(n)                                                                                   \
    __attribute__((noinline)) static void frame_##n(struct state *state, int left, long count)     \
    {                                                                                              \
        if (left > 0) {                                                                            \
            int varies = shape == RANDOM || (shape == LEAVES && left <= 2);                        \
            if (shape == LEAVES && left == 3)                                                      \
                for (long i = 0; i < count; i++)                                                   \
                    frames[draw_number(state) & 3](state, left - 1, 1);                            \
            else                                                                                   \
                frames[varies ? draw_number(state) & 3 : (unsigned)((n) + 1) & 3](state, left - 1, \
                                                                                  count);          \
        } else {                                                                                   \
            for (long i = 0; i < count; i++)                                                       \
                if (shape == HOLD)                                                                 \
                    renewals[i & 7](state);                                                        \
                else                                                                               \
                    sites[(shape == SAME ? (unsigned)i : draw_number(state)) & 7](state);          \
        }                                                                                          \
        __asm__ volatile("" ::: "memory");                                                         \
    }
FRAME(0);
FRAME(1);
FRAME(2);
FRAME(3);

static void *run_loop(void *result)
{
    struct state state = {.seed = 42};
    /* The harness passes the approximate depth of the whole stack, which includes the frames of
     * main and libc.
     */
    int below = depth > 4 ? depth - 4 : 1;
#ifdef LOOP_CUDA
    open_device();
#endif
    if (shape == HOLD && !(state.held = calloc(HELD, sizeof(*state.held))))
        exit(1);
    frames[0](&state, below, shape == HOLD ? HELD : WARM); /* warm; or all that is held */
    pthread_barrier_wait(&start);
    double began = now_ns();
    if (shape == RANDOM)
        for (long i = 0; i < pairs; i++)
            frames[draw_number(&state) & 3](&state, below, 1);
    else
        frames[0](&state, below, pairs);
    *(double *)result = (now_ns() - began) / (2.0 * (double)pairs);
    return NULL;
}

/* ---- what /proc says about this process ------------------------------------------------------ */

static FILE *open_of_task(const char *task, const char *file)
{
    char path[320];
    snprintf(path, sizeof(path), "/proc/self/task/%s/%s", task, file);
    return fopen(path, "r");
}

static int has_name(const char *task, const char *name)
{
    char found[32] = "";
    FILE *file = open_of_task(task, "comm");
    if (file && fgets(found, sizeof(found), file))
        found[strcspn(found, "\n")] = 0;
    if (file)
        fclose(file);
    return strcmp(found, name) == 0;
}

/* ns on a CPU so far, of all threads of that name. */
static double cpu_of_threads(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    double sum = 0, ran;
    for (struct dirent *task; tasks && (task = readdir(tasks)) != NULL;) {
        FILE *file = has_name(task->d_name, name) ? open_of_task(task->d_name, "schedstat") : NULL;
        if (file && fscanf(file, "%lf", &ran) == 1)
            sum += ran;
        if (file)
            fclose(file);
    }
    if (tasks)
        closedir(tasks);
    return sum;
}

/* A field of /proc/self/status, in KiB. */
static long kib_of(const char *field)
{
    char line[256];
    long value = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, field, strlen(field)) == 0)
            value = atol(line + strlen(field));
    if (file)
        fclose(file);
    return value;
}

int main(int count, char **arguments)
{
    if (count != 5)
        return 2;
    pairs = atol(arguments[1]);
    depth = atoi(arguments[2]);
    int threads = atoi(arguments[3]);
    shape = arguments[4][0] == 's'   ? SAME
            : arguments[4][0] == 'l' ? LEAVES
            : arguments[4][0] == 'h' ? HOLD
                                     : RANDOM;
    pthread_t handles[64];
    double results[64], worst = 0;
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int i = 1; i < threads; i++)
        pthread_create(&handles[i], NULL, run_loop, &results[i]);
    run_loop(&results[0]);
    for (int i = 1; i < threads; i++)
        pthread_join(handles[i], NULL);
    for (int i = 0; i < threads; i++)
        worst = results[i] > worst ? results[i] : worst;
    printf("%.2f %.2f %ld %ld\n", worst / threads,
           cpu_of_threads("gpumem") / (2.0 * (double)pairs * threads), kib_of("VmRSS:"),
           kib_of("RssFile:") + kib_of("RssShmem:"));
    return 0;
}
