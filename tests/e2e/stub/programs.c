/*
 * Programs for the driver beside (driver.c), and for the simulator: stub_programs NAME [ENDING]. What each leaves
 * behind, by the comments of cuda.h, is in stub.py. As a library for Python: run_program.
 */
#include <cuda.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB ((size_t)1 << 20)
#define THREADS 4
#define MUST(call) must((int)(call), #call, __LINE__)

static CUcontext context;

static void must(int result, const char *call, int line)
{
    if (result == 0)
        return;
    printf("line %d: %s: %d\n", line, call, result);
    exit(9);
}

static void begin(void)
{
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
}

static CUdeviceptr hold(size_t size)
{
    CUdeviceptr address;
    MUST(cuMemAlloc(&address, size));
    return address;
}

static void race(void *(*run)(void *))
{
    pthread_t threads[THREADS];
    for (intptr_t i = 0; i < THREADS; i++)
        MUST(pthread_create(&threads[i], NULL, run, (void *)i));
    for (int i = 0; i < THREADS; i++)
        MUST(pthread_join(threads[i], NULL));
}

static void leave(int code)
{
    syscall(SYS_exit_group, code);
}

/* ---- a guest in the process -------------------------------------------------------------------- */

static void *fill_rings(void *unused)
{
    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < 5000; i++)
        MUST(cuMemFree(hold(4096)));
    return unused;
}

/* The C library waits until each thread of the process has answered. */
static void set_ids(void)
{
    alarm(60);
    begin();
    race(fill_rings);
    MUST(setgid(getgid()));
    MUST(setuid(getuid()));
    MUST(setegid(getegid()));
    hold(3 * MIB);
    pid_t child = fork();
    if (child == 0)
        _exit(setgid(getgid()) || setuid(getuid()));
    int status;
    waitpid(child, &status, 0);
    MUST(status);
}

/* As a sandbox: no file can be given room beforehand. */
static void no_fallocate(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
    MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
    begin();
    race(fill_rings);
    hold(3 * MIB);
}

/* ---- refusals and failures --------------------------------------------------------------------- */

static CUfunction kernel(const char *name)
{
    static char image[16];
    CUmodule module;
    CUfunction function;
    MUST(cuModuleLoadData(&module, image));
    MUST(cuModuleGetFunction(&function, module, name));
    return function;
}

static int launch(const char *name)
{
    return (int)cuLaunchKernel(kernel(name), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

/* Whichever is refused, the program gives up. */
static void refused(void)
{
    CUcontext another;
    CUstream stream;
    CUevent event;
    CUlibrary library;
    CUgraph graph;
    CUgraphExec executable;
    begin();
    hold(64 * MIB);
    MUST(launch("kernel"));
    MUST(cuLibraryLoadData(&library, "", NULL, NULL, 0, NULL, NULL, 0));
    MUST(cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 32 * MIB));
    MUST(cuStreamCreate(&stream, 0));
    MUST(cuEventCreate(&event, 0));
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphInstantiate(&executable, graph, 0));
    MUST(cuCtxCreate(&another, NULL, 0, 0));
}

static void failed(void)
{
    CUdeviceptr kept[8];
    void *pinned;
    begin();
    for (int i = 0; i < 8; i++)
        kept[i] = hold(64 * MIB);
    MUST(cuMemHostAlloc(&pinned, MIB, 0));
    MUST(launch("illegal"));
    printf("%d\n", (int)cuCtxSynchronize());
    for (int i = 0; i < 8; i++)
        printf("%d\n", (int)cuMemFree(kept[i]));
    printf("%d\n", (int)cuMemFreeHost(pinned));
}

/* ---- ends by the bare system call -------------------------------------------------------------- */

static void bare_exit(void)
{
    begin();
    MUST(cuMemFree(hold(MIB)));
    leave(0);
}

static void *leave_by_thread(void *code)
{
    leave((int)(intptr_t)code);
    return NULL;
}

static void bare_exit_of_a_thread(void)
{
    pthread_t thread;
    begin();
    hold(3 * MIB);
    MUST(pthread_create(&thread, NULL, leave_by_thread, (void *)7));
    pthread_join(thread, NULL);
}

/* ---- pools ------------------------------------------------------------------------------------- */

#define PINNED CU_MEM_ALLOCATION_TYPE_PINNED
#define MANAGED CU_MEM_ALLOCATION_TYPE_MANAGED

static CUmemoryPool pool_of(CUmemAllocationType type, CUmemLocationType where)
{
    CUmemPoolProps properties = {.allocType = type, .location = {.type = where}};
    CUmemoryPool pool;
    MUST(cuMemPoolCreate(&pool, &properties));
    return pool;
}

static CUdeviceptr hold_of(CUmemoryPool pool, size_t size)
{
    CUdeviceptr address;
    MUST(cuMemAllocFromPoolAsync(&address, size, pool, NULL));
    return address;
}

static void pools(void)
{
    CUmemLocation host = {.type = CU_MEM_LOCATION_TYPE_HOST},
                  device = {.type = CU_MEM_LOCATION_TYPE_DEVICE};
    CUmemoryPool pool, managed;
    CUdeviceptr address;
    begin();
    hold_of(pool_of(PINNED, CU_MEM_LOCATION_TYPE_HOST), 1024 * MIB);
    hold_of(pool_of(PINNED, CU_MEM_LOCATION_TYPE_HOST_NUMA), 512 * MIB);
    hold_of(managed = pool_of(MANAGED, CU_MEM_LOCATION_TYPE_DEVICE), 100 * MIB);
    MUST(cuMemGetDefaultMemPool(&pool, &host, PINNED));
    hold_of(pool, 256 * MIB);
    MUST(cuMemGetDefaultMemPool(&pool, &device, MANAGED));
    hold_of(pool, 7 * MIB);
    MUST(
        cuMemSetMemPool(&device, MANAGED, managed)); /* not the one that the next call takes from */
    MUST(cuMemAllocAsync(&address, 10 * MIB, NULL));
}

/* The handle of a pool that was destroyed is the next one's, wherever that takes its memory from. */
static void pools_again(void)
{
    begin();
    CUmemoryPool pool = pool_of(PINNED, CU_MEM_LOCATION_TYPE_DEVICE);
    MUST(cuMemFree(hold_of(pool, MIB)));
    MUST(cuMemPoolDestroy(pool));
    hold_of(pool = pool_of(PINNED, CU_MEM_LOCATION_TYPE_HOST_NUMA), 9 * MIB);
    MUST(cuMemPoolDestroy(pool));
    hold_of(pool_of(PINNED, CU_MEM_LOCATION_TYPE_DEVICE), 4 * MIB);
}

static void *make_pools(void *number)
{
    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < 300; i++) {
        CUmemoryPool pool =
            pool_of(PINNED, (i + (intptr_t)number) % 2 ? CU_MEM_LOCATION_TYPE_HOST
                                                       : CU_MEM_LOCATION_TYPE_DEVICE);
        CUdeviceptr address = hold_of(pool, 4096);
        if (i % 30)
            MUST(cuMemFreeAsync(address, NULL));
        MUST(cuMemPoolDestroy(pool));
    }
    return NULL;
}

static void pools_race(void)
{
    begin();
    race(make_pools);
}

/* ---- events that carry no capture -------------------------------------------------------------- */

static CUdeviceptr hold_on(CUstream stream, size_t size)
{
    CUdeviceptr address;
    MUST(cuMemAllocAsync(&address, size, stream));
    return address;
}

static void external_events(void)
{
    CUstream capturing, outside, joined;
    CUevent event;
    CUgraph graph;
    begin();
    MUST(cuStreamCreate(&capturing, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&outside, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&joined, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuStreamBeginCapture(capturing, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuEventRecordWithFlags(event, capturing, CU_EVENT_RECORD_EXTERNAL));
    MUST(cuStreamWaitEvent(outside, event, 0));
    hold_on(outside, 64 * MIB);
    hold_on(capturing, 3 * MIB); /* nodes of a graph that nobody launches */
    MUST(cuEventRecordWithFlags(event, capturing, 0));
    MUST(cuStreamWaitEvent(joined, event, 0));
    hold_on(joined, 5 * MIB);
    MUST(cuStreamWaitEvent(capturing, event, CU_EVENT_WAIT_EXTERNAL));
    hold_on(outside, 2 * MIB);
    MUST(cuEventRecordWithFlags(event, joined, 0));
    MUST(cuStreamWaitEvent(capturing, event, 0));
    MUST(cuStreamEndCapture(capturing, &graph));
    MUST(cuMemFreeAsync(hold_on(joined, 7 * MIB), joined));
}

/* Of two captures the second waits for what the first has recorded, and goes on when that has ended. */
static void external_waits(void)
{
    CUstream first, second;
    CUevent event;
    CUgraph graph;
    begin();
    MUST(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuStreamBeginCapture(first, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuStreamBeginCapture(second, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuEventRecordWithFlags(event, first, 0));
    MUST(cuStreamWaitEvent(second, event, CU_EVENT_WAIT_EXTERNAL));
    MUST(cuStreamEndCapture(first, &graph));
    hold_on(second, 5 * MIB); /* a node still */
    hold_on(first, 3 * MIB);
    MUST(cuStreamEndCapture(second, &graph));
}

/* ---- contexts ---------------------------------------------------------------------------------- */

static CUgreenCtx enter_green(void)
{
    CUdevResource resource;
    CUdevResourceDesc description;
    CUgreenCtx green;
    CUcontext converted;
    MUST(cuDeviceGetDevResource(0, &resource, CU_DEV_RESOURCE_TYPE_SM));
    MUST(cuDevResourceGenerateDesc(&description, &resource, 1));
    MUST(cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM));
    MUST(cuCtxFromGreenCtx(&converted, green));
    MUST(cuCtxSetCurrent(converted));
    return green;
}

/* The last reference to the primary context takes its memory with it; one of two does not. */
static void green(void)
{
    MUST(cuInit(0));
    CUgreenCtx first = enter_green();
    hold(32 * MIB);
    CUgreenCtx second = enter_green();
    hold(64 * MIB);
    MUST(cuGreenCtxDestroy(first));
    MUST(cuMemFree(hold(MIB)));
    MUST(cuGreenCtxDestroy(second));
}

static void green_beside(void)
{
    MUST(cuInit(0));
    enter_green();
    CUdeviceptr kept = hold(32 * MIB), of_primary;
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    of_primary = hold(64 * MIB);
    MUST(cuDevicePrimaryCtxRelease(0));
    MUST(cuMemFree(of_primary));
    MUST(cuMemFree(kept));
    hold(3 * MIB);
}

static void *make_contexts(void *number)
{
    for (int i = 0; i < 300; i++) {
        CUcontext mine, popped;
        MUST(cuCtxCreate(&mine, NULL, 0, 0));
        if ((i + (intptr_t)number) % 3 == 0) {
            MUST(cuCtxPopCurrent(&popped));
            MUST(cuCtxSetCurrent(mine));
        }
        hold(4096);
        if (i % 2)
            MUST(cuCtxPopCurrent(&popped));
        MUST(cuCtxDestroy(mine));
    }
    return NULL;
}

static void contexts_race(void)
{
    MUST(cuInit(0));
    race(make_contexts);
}

/* ---- graphs ------------------------------------------------------------------------------------ */

static void *make_graphs(void *number)
{
    MUST(cuCtxSetCurrent(context));
    for (int i = 0; i < 300; i++) {
        CUgraph graph;
        CUgraphNode node;
        CUgraphExec executable;
        CUDA_MEM_ALLOC_NODE_PARAMS parameters = {
            .poolProps = {.allocType = PINNED, .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
            .bytesize = 4096};
        MUST(cuGraphCreate(&graph, 0));
        MUST(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &parameters));
        MUST(cuGraphInstantiate(&executable, graph, 0));
        MUST(cuGraphDestroy(graph));
        MUST(cuGraphLaunch(executable, NULL));
        if ((intptr_t)number % 2)
            MUST(cuMemFree(parameters.dptr));
        MUST(cuGraphExecDestroy(executable));
        if ((intptr_t)number % 2 == 0)
            MUST(cuMemFree(parameters.dptr));
    }
    return NULL;
}

static void graphs_race(void)
{
    begin();
    race(make_graphs);
}

/* ---- physical memory --------------------------------------------------------------------------- */

static CUmemGenericAllocationHandle physical(size_t size, unsigned short usage)
{
    CUmemAllocationProp properties = {.type = PINNED,
                                      .requestedHandleTypes =
                                          usage ? 0 : CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                      .allocFlags = {.usage = usage}};
    CUmemGenericAllocationHandle handle;
    MUST(cuMemCreate(&handle, size, &properties, 0));
    return handle;
}

static CUdeviceptr mapped(CUmemGenericAllocationHandle handle, size_t size)
{
    CUdeviceptr address;
    MUST(cuMemAddressReserve(&address, size, 0, 0, 0));
    MUST(cuMemMap(address, size, 0, handle, 0));
    return address;
}

static CUmemGenericAllocationHandle shared_with_itself(CUmemGenericAllocationHandle handle)
{
    CUmemGenericAllocationHandle imported;
    int descriptor;
    MUST(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      0));
    int duplicate = dup(descriptor);
    close(descriptor);
    MUST(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)duplicate,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(duplicate);
    return imported;
}

/* "when all outstanding mappings to the memory are unmapped and when all outstanding references to the handle ... are
 * also released" */
static void imported(void)
{
    begin();
    CUmemGenericAllocationHandle handle = physical(256 * MIB, 0),
                                 other = shared_with_itself(handle);
    MUST(cuMemRelease(handle));
    mapped(other, 256 * MIB);
    MUST(cuMemRelease(other));
}

static void imported_and_gone(void)
{
    begin();
    CUmemGenericAllocationHandle handle = physical(256 * MIB, 0),
                                 other = shared_with_itself(handle);
    CUdeviceptr address = mapped(other, 256 * MIB);
    MUST(cuMemRelease(other));
    MUST(cuMemUnmap(address, 256 * MIB));
    MUST(cuMemRelease(handle));
}

static CUarray sparse_array(void)
{
    CUDA_ARRAY3D_DESCRIPTOR shape = {.Width = 1024,
                                     .Height = 1024,
                                     .Format = CU_AD_FORMAT_FLOAT,
                                     .NumChannels = 1,
                                     .Flags = CUDA_ARRAY3D_SPARSE};
    CUarray array;
    MUST(cuArray3DCreate(&array, &shape));
    return array;
}

static void map_tile(CUarray array, unsigned x, CUmemGenericAllocationHandle memory)
{
    CUarrayMapInfo info = {.resourceType = CU_RESOURCE_TYPE_ARRAY,
                           .resource = {.array = array},
                           .subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL,
                           .subresource = {.sparseLevel = {.offsetX = x * 128,
                                                           .extentWidth = 128,
                                                           .extentHeight = 128,
                                                           .extentDepth = 1}},
                           .memOperationType =
                               memory ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP,
                           .memHandleType = CU_MEM_HANDLE_TYPE_GENERIC,
                           .memHandle = {.memHandle = memory},
                           .deviceBitMask = 1};
    MUST(cuMemMapArrayAsync(&info, 1, NULL));
}

/* Three handles, of which tiles keep one: one tile was mapped anew, one unmapped. */
static void tiles(void)
{
    CUmemGenericAllocationHandle memory[3];
    begin();
    CUarray array = sparse_array();
    for (unsigned i = 0; i < 3; i++)
        memory[i] = physical((2 * MIB) << i, CU_MEM_CREATE_USAGE_TILE_POOL);
    map_tile(array, 0, memory[0]);
    map_tile(array, 0, memory[2]);
    map_tile(array, 1, memory[1]);
    map_tile(array, 1, 0);
    for (unsigned i = 0; i < 3; i++)
        MUST(cuMemRelease(memory[i]));
}

static void tiles_of_none(void)
{
    begin();
    CUarray array = sparse_array();
    CUmemGenericAllocationHandle memory = physical(2 * MIB, CU_MEM_CREATE_USAGE_TILE_POOL);
    map_tile(array, 0, memory);
    MUST(cuMemRelease(memory));
    MUST(cuArrayDestroy(array));
}

/* ------------------------------------------------------------------------------------------------ */

#define PROGRAM(name)                                                                              \
    {                                                                                              \
#name, name                                                                                \
    }

static const struct {
    const char *name;
    void (*run)(void);
} programs[] = {
    PROGRAM(set_ids),         PROGRAM(no_fallocate),      PROGRAM(refused),
    PROGRAM(failed),          PROGRAM(bare_exit),         PROGRAM(bare_exit_of_a_thread),
    PROGRAM(pools),           PROGRAM(pools_again),       PROGRAM(pools_race),
    PROGRAM(external_events), PROGRAM(external_waits),    PROGRAM(green),
    PROGRAM(green_beside),    PROGRAM(contexts_race),     PROGRAM(graphs_race),
    PROGRAM(imported),        PROGRAM(imported_and_gone), PROGRAM(tiles),
    PROGRAM(tiles_of_none),
};

int run_program(const char *name, const char *ending)
{
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
        if (strcmp(programs[i].name, name) == 0) {
            programs[i].run();
            fflush(stdout);
            if (strcmp(ending, "_exit") == 0)
                _exit(0);
            if (strcmp(ending, "quick_exit") == 0)
                quick_exit(0);
            if (strcmp(ending, "system call") == 0)
                leave(0);
            return 0;
        }
    return 2;
}

int main(int count, char **arguments)
{
    return count > 1 ? run_program(arguments[1], count > 2 ? arguments[2] : "") : 2;
}
