/*
 * A random CUDA program: random_program SEED [STEPS]. It uses all families of both layers from
 * several threads, frees in legal but unusual ways, makes mistakes on purpose, and leaves some
 * memory behind. Each family is a file; this one gives the turns and has the shared functions.
 *
 * The threads take turns, in a random but repeatable order, so the order of events is that of
 * the oracle and peaks are exact. Every API result is logged: the run with the preload must print
 * the same. Addresses are not logged; they differ between any two runs.
 *
 * Compiled with RACING, each thread is a program of its own, with its own objects and streams, and
 * nobody waits for a turn or resets a device under the others. Output and peaks are then random,
 * totals are not; and ThreadSanitizer has something to check.
 */
#include "random.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OBJECTS_MAX 512
#define STEP_MAKES_MAX 32 /* more than one step keeps */
#define THREADS_MAX 4

STATE struct object objects[OBJECTS_MAX];
STATE int object_count;
STATE cudaStream_t streams[DEVICES_MAX][STREAMS];
STATE uint64_t seed;
int device_count;
const char random_variable[64];
static int thread_count;

/* ---- the common part ------------------------------------------------------------------------- */

/* xorshift64*: the sequence is part of the program, so it must not change with the libc. */
static uint64_t next_random(void)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return seed * 0x2545f4914f6cdd1du;
}

unsigned pick(unsigned n)
{
    return (unsigned)(next_random() >> 33) % n;
}

size_t random_size(void)
{
    return ((size_t)1 << pick(22)) + pick(4096);
}

int log_result(const char *call, int result)
{
    printf("%d %.*s\n", result, (int)strcspn(call, "("), call);
    return result;
}

int log_wait(const char *call, int result)
{
    return log_result(call, result == (int)CUDA_ERROR_UNKNOWN ? 0 : result);
}

int current_device(void)
{
    int device = 0;
    cudaGetDevice(&device);
    return device;
}

cudaStream_t created_stream(void)
{
    return streams[current_device()][pick(STREAMS)];
}

cudaStream_t random_stream(void)
{
    return pick(5) ? created_stream() : NULL;
}

void create_streams_of(int device)
{
    for (int i = 0; i < STREAMS; i++) {
        streams[device][i] = NULL; /* also where none can be made */
        LOG(cudaStreamCreate(&streams[device][i]));
    }
}

static void create_streams(void)
{
    for (int device = 0; device < device_count; device++) {
        /* Refused, the streams would be of another device, and outlive its end as handles of nothing. */
        while (LOG(cudaSetDevice(device)) == (int)cudaErrorMemoryAllocation)
            ;
        create_streams_of(device);
    }
}

void keep_on(int device, struct object object)
{
    if (object_count == OBJECTS_MAX)
        return;
    object.device = device;
    objects[object_count++] = object;
}

void keep(struct object object)
{
    keep_on(current_device(), object);
}

void forget(int index)
{
    objects[index] = objects[--object_count];
}

int find_sized(enum family family, size_t size)
{
    if (object_count == 0)
        return -1;
    for (int tries = 0, at = (int)pick((unsigned)object_count); tries < object_count; tries++) {
        const int index = (at + tries) % object_count;
        if (objects[index].family == family && objects[index].size >= size)
            return index;
    }
    return -1;
}

int find(enum family family)
{
    return find_sized(family, 0);
}

/* ---- frees ----------------------------------------------------------------------------------- */

void free_object(int index)
{
    const struct object object = objects[index];
    int result = 0;
    switch (object.family) {
    case LINEAR:
        result = free_linear(object);
        break;
    case PINNED:
        result = pick(2) ? LOG(cudaFreeHost(object.pointer)) : LOG(cuMemFreeHost(object.pointer));
        break;
    case REGISTERED:
        result = pick(2) ? LOG(cudaHostUnregister(object.pointer))
                         : LOG(cuMemHostUnregister(object.pointer));
        break;
    case ARRAY:
        result = free_array(object);
        break;
    case MIPMAPPED:
        result = free_mipmapped(object);
        break;
    case POOL:
        result = pick(2) ? LOG(cuMemPoolDestroy(object.pointer))
                         : LOG(cudaMemPoolDestroy(object.pointer));
        break;
    case HANDLE:
        drop_handle(index);
        return;
    case MAPPING:
        unmap(index);
        return;
    case TEAM:
        drop_team(index);
        return;
    case EXECUTABLE:
        drop_executable(index);
        return;
    case CONTEXT:
        result = destroy_context(object.pointer);
        break;
    case OPENED:
    case IMPORT:
        result = free_shared(&objects[index]);
        break;
    case MODULE:
    case LIBRARY:
        result = unload(object);
        break;
    case FAMILIES:
        return;
    }
    if (result == 0)
        forget(index);
}

static void free_step(void)
{
    if (object_count > 0)
        free_object((int)pick((unsigned)object_count));
}

static void free_most(void)
{
    while (object_count > 0 && pick(20))
        free_step();
}

/* ---- steps ----------------------------------------------------------------------------------- */

static const struct {
    void (*step)(void);
    unsigned weight;
} families[] = {
    {linear_step, 12},
    {async_step, 5},
    {async_step_per_thread, 5},
    {host_step, 6},
    {array_step, 4},
    {pool_step, 6},
    {vmm_step, 8},
    {multicast_step, 6},
    {graph_step, 6},
    {module_step, 4},
    {context_step, 6},
    {graph_step_per_thread, 5},
    {shared_step, 6},
    {copy_step, 3},
    {copy_step_per_thread, 3},
    {array_copy_step, 2},
    {set_step, 2},
    {array_copy_step_per_thread, 2},
    {hint_step, 3},
    {hint_step_per_thread, 3},
    {set_step_per_thread, 2},
    {work_step, 3},
    {work_step_per_thread, 3},
    {mistake_step, 5},
    {process_step, 1},
    {free_step, 30},
};

static void take_step(void)
{
    unsigned total = 0, at = 0;
    /* What keep() leaves out ends unseen, and whether an address is a known one is then up to chance. */
    if (object_count > OBJECTS_MAX - STEP_MAKES_MAX)
        free_most();
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
        total += families[i].weight;
    for (unsigned left = pick(total); left >= families[at].weight; at++)
        left -= families[at].weight;
    families[at].step();
}

static uint64_t seed_of(uint64_t number)
{
    return 0x9e3779b97f4a7c15u * (1 + number);
}

static long steps;

#ifdef RACING

static uint64_t first_seed;
STATE int thread_number;

static void *run_thread(void *number)
{
    thread_number = (int)(uintptr_t)number;
    seed = seed_of(first_seed * THREADS_MAX + (uintptr_t)number);
    create_streams();
    for (long done = 0; done < steps; done++)
        take_step();
    free_most();
    return NULL;
}

static void prepare(uint64_t number)
{
    first_seed = number;
    thread_count = THREADS_MAX;
}

#else

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static int owner;

/* The next thread is drawn at random, not by a race, because the calling thread decides the current
 * device. */
static void *run_thread(void *number)
{
    pthread_mutex_lock(&turn);
    while (steps > 0) {
        if (owner != (intptr_t)number) {
            pthread_cond_wait(&turn_changed, &turn);
            continue;
        }
        for (unsigned burst = 1 + pick(4); steps > 0 && burst > 0; burst--, steps--)
            take_step();
        owner = (int)pick((unsigned)thread_count);
        pthread_cond_broadcast(&turn_changed);
    }
    pthread_mutex_unlock(&turn);
    return NULL;
}

static void prepare(uint64_t number)
{
    seed = seed_of(number);
    create_streams();
    thread_count = 1 + (int)pick(THREADS_MAX);
}

#endif

/* Does what the compiler's code does before main(), so that cudaMemcpyToSymbol knows the
 * variable. */
void **__cudaRegisterFatBinary(void *image);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterVar(void **handle, const char *host, char *device, const char *name,
                       int external, size_t bytes, int constant, int global);

static void register_variable(void)
{
    static char image[16];
    void **handle = __cudaRegisterFatBinary(image);
    __cudaRegisterVar(handle, random_variable, NULL, "random_variable", 0, sizeof(random_variable),
                      0, 0);
    __cudaRegisterFatBinaryEnd(handle);
}

/* Whatever the end, the remaining memory is live in the totals. */
static int end_program(uint64_t number)
{
    stop_exporter();
    fflush(stdout);
    switch (number % 6) {
    case 3:
        execl("/bin/true", "true", (char *)NULL);
        return 1;
    case 4:
        _exit(0);
    case 5:
        quick_exit(0);
    default:
        return 0;
    }
}

int main(int count, char **arguments)
{
    if (count > 1 && strcmp(arguments[1], "--export") == 0)
        return export_memory();
    pthread_t threads[THREADS_MAX];
    uint64_t number = strtoull(count > 1 ? arguments[1] : "1", NULL, 10);
    steps = strtol(count > 2 ? arguments[2] : "150", NULL, 10);
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    if (number % 4 == 0)
        start_exporter();
    register_variable();
    LOG(cudaGetDeviceCount(&device_count));
    device_count = device_count < DEVICES_MAX ? device_count : DEVICES_MAX;
    prepare(number);
    for (intptr_t i = 0; i < thread_count; i++)
        pthread_create(&threads[i], NULL, run_thread, (void *)i);
    for (int i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    free_most(); /* shared by the threads */
    return end_program(number);
}
