/*
 * A random CUDA program: random_program SEED [STEPS]. It uses all families of both layers from
 * several threads, frees in legal but unusual ways, makes mistakes on purpose, and leaves some
 * memory behind.
 *
 * The threads take turns, in a random but repeatable order, so the order of events is that of
 * the oracle and peaks are exact. Every API result is logged: the run with the preload must print
 * the same. Addresses are not logged; they differ between any two runs.
 *
 * Compiled with RACING, each thread is a program of its own, with its own objects and streams, and
 * nobody waits for a turn or resets a device under the others. What is printed and the peaks are
 * then chance, the totals are not; and a ThreadSanitizer has something to see.
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define OBJECTS_MAX 512
#define THREADS_MAX 4
#define DEVICES_MAX 4
#define STREAMS 3
#define GRANULARITY ((size_t)2 << 20)

#ifdef RACING
#define STATE static _Thread_local
#else
#define STATE static
#endif

enum family {
    LINEAR, /* any device memory: linear, pitched, managed, stream-ordered, of a pool */
    PINNED,
    REGISTERED,
    ARRAY,
    MIPMAPPED,
    POOL,
    HANDLE,  /* VMM physical memory */
    MAPPING, /* VMM range with memory */
    EXECUTABLE,
    CONTEXT,
    FAMILIES
};

struct object {
    enum family family;
    void *pointer; /* address or handle */
    size_t size;
    int device;
    int references;  /* of a HANDLE */
    int in_context;  /* dies with the primary context of `device` */
    CUcontext owner; /* or with this one */
    CUgraph graph;   /* of an EXECUTABLE */
    int pool;        /* stream-ordered: may be freed asynchronously */
};

STATE struct object objects[OBJECTS_MAX];
STATE int object_count;
STATE cudaStream_t streams[DEVICES_MAX][STREAMS];
STATE uint64_t seed;
static int device_count;
static int thread_count;

/* xorshift64*: the sequence is part of the program, so it must not change with the libc. */
static uint64_t next_random(void)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return seed * 0x2545f4914f6cdd1du;
}

static unsigned pick(unsigned n)
{
    return (unsigned)(next_random() >> 33) % n;
}

static size_t random_size(void)
{
    return ((size_t)1 << pick(22)) + pick(4096);
}

#define LOG(call) log_result(#call, (int)(call))

static int log_result(const char *call, int result)
{
    printf("%d %.*s\n", result, (int)strcspn(call, "("), call);
    return result;
}

static int current_device(void)
{
    int device = 0;
    cudaGetDevice(&device);
    return device;
}

static cudaStream_t random_stream(void)
{
    return streams[current_device()][pick(STREAMS)];
}

static void keep(struct object object)
{
    if (object_count < OBJECTS_MAX) {
        object.device = object.device ? object.device : current_device();
        objects[object_count++] = object;
    }
}

static void forget(int index)
{
    objects[index] = objects[--object_count];
}

static int find(enum family family)
{
    if (object_count == 0)
        return -1;
    for (int tries = 0, at = (int)pick((unsigned)object_count); tries < object_count; tries++)
        if (objects[(at + tries) % object_count].family == family)
            return (at + tries) % object_count;
    return -1;
}

/* ---- allocation -------------------------------------------------------------------------------
 */

static void allocate_linear(void)
{
    void *address = NULL;
    size_t pitch, size = random_size();
    struct cudaPitchedPtr cube;
    CUdeviceptr driver_address;
    switch (pick(7)) {
    case 0:
        if (LOG(cudaMalloc(&address, size)) == 0)
            keep((struct object){
                .family = LINEAR, .pointer = address, .size = size, .in_context = 1});
        break;
    case 1:
        if (LOG(cudaMallocPitch(&address, &pitch, 1 + pick(3000), 1 + pick(60))) == 0)
            keep((struct object){.family = LINEAR, .pointer = address, .size = 1, .in_context = 1});
        break;
    case 2:
        if (LOG(cudaMalloc3D(&cube,
                             (struct cudaExtent){1 + pick(500), 1 + pick(20), 1 + pick(6)})) == 0)
            keep(
                (struct object){.family = LINEAR, .pointer = cube.ptr, .size = 1, .in_context = 1});
        break;
    case 3:
        if (LOG(cudaMallocManaged(&address, size, cudaMemAttachGlobal)) == 0)
            keep((struct object){
                .family = LINEAR, .pointer = address, .size = size, .in_context = 1});
        break;
    case 4:
        if (LOG(cuMemAlloc(&driver_address, size)) == 0)
            keep((struct object){.family = LINEAR,
                                 .pointer = (void *)driver_address,
                                 .size = size,
                                 .in_context = 1});
        break;
    case 5:
        if (LOG(cuMemAllocPitch(&driver_address, &pitch, 1 + pick(2000), 1 + pick(40), 4)) == 0)
            keep((struct object){
                .family = LINEAR, .pointer = (void *)driver_address, .size = 1, .in_context = 1});
        break;
    default:
        LOG(cudaMalloc(&address, (size_t)1 << 45)); /* no device has that */
    }
}

static void allocate_async(void)
{
    void *address;
    size_t size = random_size();
    int pool = find(POOL);
    CUdeviceptr driver_address;
    if (pool >= 0 && pick(2)) {
        if (LOG(cudaMallocFromPoolAsync(&address, size, objects[pool].pointer, random_stream())) ==
            0)
            keep((struct object){.family = LINEAR, .pointer = address, .size = size, .pool = 1});
    } else if (pick(2)) {
        if (LOG(cudaMallocAsync(&address, size, random_stream())) == 0)
            keep((struct object){.family = LINEAR, .pointer = address, .size = size, .pool = 1});
    } else if (LOG(cuMemAllocAsync(&driver_address, size, random_stream())) == 0) {
        keep((struct object){
            .family = LINEAR, .pointer = (void *)driver_address, .size = size, .pool = 1});
    }
}

static void allocate_host(void)
{
    void *address;
    size_t size = random_size();
    switch (pick(4)) {
    case 0:
        if (LOG(cudaMallocHost(&address, size)) == 0)
            keep((struct object){
                .family = PINNED, .pointer = address, .size = size, .in_context = 1});
        break;
    case 1:
        if (LOG(cuMemHostAlloc(&address, size, CU_MEMHOSTALLOC_PORTABLE)) == 0)
            keep((struct object){
                .family = PINNED, .pointer = address, .size = size, .in_context = 1});
        break;
    case 2:
        if (LOG(cuMemAllocHost(&address, size)) == 0)
            keep((struct object){
                .family = PINNED, .pointer = address, .size = size, .in_context = 1});
        break;
    default:
        size = (size + 4095) & ~(size_t)4095;
        address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (LOG(cudaHostRegister(address, size, cudaHostRegisterDefault)) == 0) {
            keep((struct object){
                .family = REGISTERED, .pointer = address, .size = size, .in_context = 1});
            if (pick(4) == 0)
                LOG(cudaHostRegister(address, size, cudaHostRegisterDefault)); /* refused */
        }
    }
}

static void allocate_array(void)
{
    cudaArray_t array;
    cudaMipmappedArray_t mipmapped;
    CUarray driver_array;
    struct cudaChannelFormatDesc format = {8 << pick(3), 0, 0, 0, cudaChannelFormatKindUnsigned};
    size_t width = 1 + pick(300), height = pick(200), depth = height ? pick(10) : 0;
    CUDA_ARRAY_DESCRIPTOR descriptor = {width, height, CU_AD_FORMAT_FLOAT, 1u << pick(3)};
    switch (pick(4)) {
    case 0:
        if (LOG(cudaMallocArray(&array, &format, width, height, 0)) == 0)
            keep((struct object){.family = ARRAY, .pointer = array, .in_context = 1});
        break;
    case 1:
        if (LOG(cudaMalloc3DArray(&array, &format, (struct cudaExtent){width, height, depth}, 0)) ==
            0)
            keep((struct object){.family = ARRAY, .pointer = array, .in_context = 1});
        break;
    case 2:
        if (LOG(cuArrayCreate(&driver_array, &descriptor)) == 0)
            keep((struct object){.family = ARRAY, .pointer = driver_array, .in_context = 1});
        break;
    default:
        if (LOG(cudaMallocMipmappedArray(&mipmapped, &format, (struct cudaExtent){64, 64, 0},
                                         1 + pick(6), 0)) == 0)
            keep((struct object){.family = MIPMAPPED, .pointer = mipmapped, .in_context = 1});
    }
}

static void create_pool(void)
{
    CUmemoryPool pool;
    CUmemPoolProps properties = {
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = current_device()},
    };
    if (LOG(cuMemPoolCreate(&pool, &properties)) == 0) {
        uint64_t threshold = pick(2) ? UINT64_MAX : 0;
        LOG(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
        keep((struct object){.family = POOL, .pointer = pool});
    }
}

/* ---- virtual memory management ------------------------------------------------------------------
 */

static void create_handle(void)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = current_device()},
    };
    size_t size = GRANULARITY * (1 + pick(4));
    if (pick(8) == 0)
        size += 1; /* refused: not a multiple of the granularity */
    if (LOG(cuMemCreate(&handle, size, &properties, 0)) == 0)
        keep((struct object){
            .family = HANDLE, .pointer = (void *)handle, .size = size, .references = 1});
}

static void map_handle(void)
{
    CUdeviceptr range;
    int index = find(HANDLE);
    if (index < 0)
        return;
    struct object *handle = &objects[index];
    if (LOG(cuMemAddressReserve(&range, handle->size, 0, 0, 0)) != 0)
        return;
    if (LOG(cuMemMap(range, handle->size, 0, (CUmemGenericAllocationHandle)handle->pointer, 0)) !=
        0) {
        LOG(cuMemAddressFree(range, handle->size));
        return;
    }
    CUmemAccessDesc access = {
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = handle->device},
        .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
    };
    LOG(cuMemSetAccess(range, handle->size, &access, 1));
    keep((struct object){.family = MAPPING, .pointer = (void *)range, .size = handle->size});
}

static void drop_handle(int index)
{
    struct object *handle = &objects[index];
    if (LOG(cuMemRelease((CUmemGenericAllocationHandle)handle->pointer)) == 0 &&
        --handle->references == 0)
        forget(index);
}

static void unmap(int index)
{
    CUmemGenericAllocationHandle again;
    CUdeviceptr range = (CUdeviceptr)objects[index].pointer;
    size_t size = objects[index].size;
    if (pick(4) == 0 && LOG(cuMemRetainAllocationHandle(&again, (void *)range)) == 0)
        LOG(cuMemRelease(again));
    if (LOG(cuMemUnmap(range, size)) != 0)
        return;
    LOG(cuMemAddressFree(range, size));
    forget(index);
}

/* ---- graphs -------------------------------------------------------------------------------------
 */

/* Memory that lives inside one launch, plus possibly some that outlives it (freed by address
 * later). */
static void build_graph(void)
{
    CUgraph graph;
    CUgraphNode allocated, freed;
    CUgraphExec executable;
    CUDA_MEM_ALLOC_NODE_PARAMS parameters = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = current_device()}},
        .bytesize = random_size(),
    };
    if (LOG(cuGraphCreate(&graph, 0)) != 0)
        return;
    int built = LOG(cuGraphAddMemAllocNode(&allocated, graph, NULL, 0, &parameters)) == 0 &&
                LOG(cuGraphAddMemFreeNode(&freed, graph, &allocated, 1, parameters.dptr)) == 0;
    if (built && LOG(cuGraphInstantiateWithFlags(&executable, graph, 0)) == 0)
        keep((struct object){.family = EXECUTABLE, .pointer = executable, .graph = graph});
    else
        LOG(cuGraphDestroy(graph));
}

static void capture_graph(void)
{
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    void *address = NULL;
    cudaStream_t stream = random_stream();
    size_t size = random_size();
    if (LOG(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal)) != 0)
        return;
    int good = LOG(cudaMallocAsync(&address, size, stream)) == 0;
    if (good) {
        LOG(cudaMemsetAsync(address, 0, size, stream));
        LOG(cudaFreeAsync(address, stream));
    }
    if (LOG(cudaStreamEndCapture(stream, &graph)) != 0)
        return;
    if (graph && LOG(cudaGraphInstantiate(&executable, graph,
                                          cudaGraphInstantiateFlagAutoFreeOnLaunch)) == 0)
        keep((struct object){.family = EXECUTABLE, .pointer = executable, .graph = graph});
    else if (graph)
        LOG(cudaGraphDestroy(graph));
}

static void launch_graph(void)
{
    int index = find(EXECUTABLE);
    if (index >= 0 && objects[index].device == current_device())
        LOG(cudaGraphLaunch(objects[index].pointer, random_stream()));
}

/* ---- contexts
 * ------------------------------------------------------------------------------------ */

/* A context of the program's own, with memory in it; destroying it frees that memory implicitly. */
static void use_own_context(void)
{
    CUcontext context, popped;
    CUdeviceptr address = 0; /* an allocation may fail, and garbage freed would be chance */
    void *pinned;
    if (LOG(cuCtxCreate(&context, NULL, 0, current_device())) != 0)
        return;
    LOG(cuMemAlloc(&address, random_size()));
    LOG(cuMemAllocHost(&pinned, random_size()));
    if (pick(2))
        LOG(cuMemFree(address));
    LOG(cuCtxPopCurrent(&popped));
    if (pick(4))
        LOG(cuCtxDestroy(context));
    else
        keep((struct object){.family = CONTEXT, .pointer = context});
}

/* Everything of the primary context dies, but for pools, graphs and VMM. */
#ifndef RACING
static void reset_device(void)
{
    int device = current_device();
    for (int i = object_count; i-- > 0;) {
        int executable = objects[i].family == EXECUTABLE && objects[i].device == device;
        if (executable) {
            LOG(cudaGraphExecDestroy(objects[i].pointer));
            LOG(cudaGraphDestroy(objects[i].graph));
        }
        if (executable || (objects[i].in_context && objects[i].device == device))
            forget(i);
    }
    LOG(cudaDeviceReset());
    for (int i = 0; i < STREAMS; i++)
        LOG(cudaStreamCreate(&streams[device][i]));
}
#endif

/* ---- frees
 * --------------------------------------------------------------------------------------- */

static void free_linear(int index)
{
    struct object object = objects[index];
    int result;
    switch (pick(object.pool ? 4 : 2)) {
    case 0:
        result = LOG(cudaFree(object.pointer));
        break;
    case 1:
        result = LOG(cuMemFree((CUdeviceptr)object.pointer));
        break;
    case 2:
        result = LOG(cudaFreeAsync(object.pointer, random_stream()));
        break;
    default:
        result = LOG(cuMemFreeAsync((CUdeviceptr)object.pointer, random_stream()));
    }
    if (result == 0)
        forget(index);
}

static void free_one(void)
{
    if (object_count == 0)
        return;
    int index = (int)pick((unsigned)object_count), result = 0;
    struct object object = objects[index];
    switch (object.family) {
    case LINEAR:
        free_linear(index);
        return;
    case HANDLE:
        drop_handle(index);
        return;
    case MAPPING:
        unmap(index);
        return;
    case PINNED:
        result = pick(2) ? LOG(cudaFreeHost(object.pointer)) : LOG(cuMemFreeHost(object.pointer));
        break;
    case REGISTERED:
        result = LOG(cudaHostUnregister(object.pointer));
        break;
    case ARRAY:
        result = pick(2) ? LOG(cudaFreeArray(object.pointer)) : LOG(cuArrayDestroy(object.pointer));
        break;
    case MIPMAPPED:
        result = LOG(cudaFreeMipmappedArray(object.pointer));
        break;
    case POOL:
        result = LOG(cuMemPoolDestroy(object.pointer));
        break;
    case EXECUTABLE:
        LOG(cudaGraphExecDestroy(object.pointer));
        LOG(cudaGraphDestroy(object.graph));
        break;
    case CONTEXT:
        result = LOG(cuCtxDestroy(object.pointer));
        break;
    case FAMILIES:
        return;
    }
    if (result == 0)
        forget(index);
}

static void make_a_mistake(void)
{
    size_t free_bytes;
    switch (pick(6)) {
    case 0:
        LOG(cudaFree((void *)(uintptr_t)(0x1000 + pick(1 << 20))));
        break;
    case 1:
        LOG(cudaFree(NULL));
        break;
    case 2:
        LOG(cudaFreeHost((void *)(uintptr_t)0x4000));
        break;
    case 3:
        LOG(cuMemFree(0xdead000));
        break;
    case 4:
        LOG(cudaMalloc(NULL, 64));
        break;
    default:
        LOG(cuMemGetInfo(&free_bytes, NULL));
    }
    cudaGetLastError();
}

static void copy_something(void)
{
    static char host[8192];
    int a = find(LINEAR), b = find(PINNED);
    if (a < 0 || objects[a].size < 64)
        return;
    size_t size = objects[a].size < sizeof(host) ? objects[a].size : sizeof(host);
    LOG(cudaMemcpy(objects[a].pointer, host, size, cudaMemcpyHostToDevice));
    LOG(cudaMemcpyAsync(host, objects[a].pointer, size, cudaMemcpyDefault, random_stream()));
    LOG(cuMemsetD8((CUdeviceptr)objects[a].pointer, 7, size));
    if (b >= 0 && objects[b].size >= size)
        LOG(cudaMemcpyAsync(objects[a].pointer, objects[b].pointer, size, cudaMemcpyHostToDevice,
                            random_stream()));
}

static void step(void)
{
    switch (pick(24)) {
    case 0 ... 4:
        allocate_linear();
        break;
    case 5 ... 7:
        allocate_async();
        break;
    case 8:
    case 9:
        allocate_host();
        break;
    case 10:
        allocate_array();
        break;
    case 11:
        create_handle();
        break;
    case 12:
        map_handle();
        break;
    case 13:
        pick(2) ? build_graph() : capture_graph();
        break;
    case 14:
        launch_graph();
        break;
    case 15:
        copy_something();
        break;
    case 16:
        make_a_mistake();
        break;
    case 17:
        if (pick(6) == 0)
            create_pool();
        else if (pick(8) == 0)
            use_own_context();
#ifndef RACING
        else if (pick(40) == 0)
            reset_device();
#endif
        else
            LOG(cudaSetDevice((int)pick((unsigned)device_count)));
        break;
    default:
        free_one();
    }
}

static void create_streams(void)
{
    for (int device = 0; device < device_count; device++) {
        LOG(cudaSetDevice(device));
        for (int i = 0; i < STREAMS; i++)
            LOG(cudaStreamCreate(&streams[device][i]));
    }
}

static void free_most(void)
{
    while (object_count > 0 && pick(20))
        free_one();
}

static uint64_t seed_of(uint64_t number)
{
    return 0x9e3779b97f4a7c15u * (1 + number);
}

static long steps;

#ifdef RACING

static uint64_t first_seed;

static void *run(void *number)
{
    seed = seed_of(first_seed * THREADS_MAX + (uintptr_t)number);
    create_streams();
    for (long done = 0; done < steps; done++)
        step();
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

/* The next thread is drawn, not raced for: which thread makes a call decides its current device. */
static void *run(void *number)
{
    pthread_mutex_lock(&turn);
    while (steps > 0) {
        if (owner != (intptr_t)number) {
            pthread_cond_wait(&turn_changed, &turn);
            continue;
        }
        for (unsigned burst = 1 + pick(4); steps > 0 && burst > 0; burst--, steps--)
            step();
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

int main(int count, char **arguments)
{
    pthread_t threads[THREADS_MAX];
    uint64_t number = strtoull(count > 1 ? arguments[1] : "1", NULL, 10);
    steps = strtol(count > 2 ? arguments[2] : "150", NULL, 10);
    setvbuf(stdout, NULL, _IOFBF, 1 << 16);
    LOG(cudaGetDeviceCount(&device_count));
    device_count = device_count < DEVICES_MAX ? device_count : DEVICES_MAX;
    prepare(number);
    for (intptr_t i = 0; i < thread_count; i++)
        pthread_create(&threads[i], NULL, run, (void *)i);
    for (int i = 0; i < thread_count; i++)
        pthread_join(threads[i], NULL);
    free_most(); /* what the threads share */
    return 0;
}
