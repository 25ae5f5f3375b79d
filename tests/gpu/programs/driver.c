/*
 * The families of the driver API that a program without any framework uses, on a genuine driver
 * (or, in the self-test, on the simulated one). It prints the same with and without the preload,
 * and the report must have the totals of its ledger.
 *
 *     driver          all families that the device supports
 *     driver import   opens the memory whose IPC handle comes on standard input
 *     driver hold     holds 256 MiB, prints HOLD, waits for a line and ends without freeing
 *
 * Only entry points that exist since CUDA 11.4 under the names that the header gives them, so that
 * it also starts on older drivers.
 */
#include "ledger.h"
#include <cuda.h>
#include <string.h>
#include <sys/wait.h>

#define MIB ((size_t)1 << 20)

static CUdevice device;
static CUcontext context;
static CUstream stream;
static unsigned char host[MIB];

static int attribute(CUdevice_attribute which)
{
    int value = 0;
    CALL(cuDeviceGetAttribute(&value, which, device));
    return value;
}

static void begin_context(void)
{
    char name[256] = "";
    CALL(cuInit(0));
    CALL(cuDeviceGet(&device, 0));
    CALL(cuDeviceGetName(name, sizeof(name), device));
    printf("device %s\n", name);
    CALL(cuDevicePrimaryCtxRetain(&context, device));
    CALL(cuCtxSetCurrent(context));
    CALL(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
}

static void fill_and_read(const char *what, CUdeviceptr address, unsigned char value)
{
    CALL(cuMemsetD8Async(address, value, sizeof(host), stream));
    CALL(cuMemcpyDtoHAsync(host, address, sizeof(host), stream));
    CALL(cuStreamSynchronize(stream));
    expect_bytes(what, host, sizeof(host), value);
}

static void linear(void)
{
    static const size_t sizes[] = {1, 512, 4096, 65537, MIB + 1, 32 * MIB};
    enum { COUNT = sizeof(sizes) / sizeof(sizes[0]) };
    CUdeviceptr addresses[COUNT], pitched;
    size_t pitch = 0;
    for (int i = 0; i < COUNT; i++) {
        CALL(cuMemAlloc(&addresses[i], sizes[i]));
        ledger_add(DEVICE, sizes[i]);
    }
    CALL(cuMemAllocPitch(&pitched, &pitch, 1000, 37, 16));
    ledger_add(DEVICE, pitch * 37);
    fill_and_read("linear", addresses[COUNT - 1], 0x5a);
    memset(host, 0x17, sizeof(host));
    CALL(cuMemcpyHtoD(addresses[COUNT - 1], host, sizeof(host)));
    CALL(cuMemcpyDtoD(addresses[COUNT - 2], addresses[COUNT - 1], sizeof(host)));
    memset(host, 0, sizeof(host));
    CALL(cuMemcpyDtoH(host, addresses[COUNT - 2], sizeof(host)));
    expect_bytes("copies", host, sizeof(host), 0x17);
    for (int i = 0; i < COUNT; i++) {
        CALL(cuMemFree(addresses[i]));
        ledger_drop(DEVICE, sizes[i]);
    }
    CALL(cuMemFree(pitched));
    ledger_drop(DEVICE, pitch * 37);
}

static void refused(void)
{
    CUdeviceptr address;
    size_t bytes = 0;
    CALL(cuDeviceTotalMem(&bytes, device));
    int result = (int)cuMemAlloc(&address, bytes * 2);
    printf("twice the device: %d\n", result);
    if (result != CUDA_ERROR_OUT_OF_MEMORY)
        stop("cuMemAlloc of twice the device", __LINE__, result);
    ledger.failed++;
}

static void managed(void)
{
    CUdeviceptr address;
    if (!attribute(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY))
        return;
    CALL(cuMemAllocManaged(&address, 3 * MIB, CU_MEM_ATTACH_GLOBAL));
    ledger_add(MANAGED, 3 * MIB);
    fill_and_read("managed", address, 0x33);
    CALL(cuMemFree(address));
    ledger_drop(MANAGED, 3 * MIB);
}

static void arrays(void)
{
    CUarray array;
    CUDA_ARRAY3D_DESCRIPTOR shape = {
        .Width = 64, .Height = 32, .Depth = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 2};
    size_t bytes = (size_t)64 * 32 * 4 * 2 * sizeof(float);
    CALL(cuArray3DCreate(&array, &shape));
    ledger_add(ARRAY, bytes);
    CALL(cuArrayDestroy(array));
    ledger_drop(ARRAY, bytes);
}

static void pinned(void)
{
    void *address, *plain = NULL;
    CALL(cuMemHostAlloc(&address, 5 * MIB, CU_MEMHOSTALLOC_PORTABLE));
    ledger_add(PINNED, 5 * MIB);
    CALL(posix_memalign(&plain, 4096, 2 * MIB));
    CALL(cuMemHostRegister(plain, 2 * MIB, CU_MEMHOSTREGISTER_PORTABLE));
    ledger_add(REGISTERED, 2 * MIB);
    CALL(cuMemHostUnregister(plain));
    ledger_drop(REGISTERED, 2 * MIB);
    free(plain);
    CALL(cuMemFreeHost(address));
    ledger_drop(PINNED, 5 * MIB);
}

static void pools(void)
{
    CUdeviceptr one, other;
    CUmemoryPool pool;
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    if (!attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED))
        return;
    CALL(cuMemAllocAsync(&one, 7 * MIB, stream));
    ledger_add(DEVICE, 7 * MIB);
    CALL(cuMemPoolCreate(&pool, &properties));
    CALL(cuMemAllocFromPoolAsync(&other, 9 * MIB, pool, stream));
    ledger_add(DEVICE, 9 * MIB);
    fill_and_read("pool", other, 0x44);
    CALL(cuMemFreeAsync(one, stream));
    ledger_drop(DEVICE, 7 * MIB);
    CALL(cuMemFree(other)); /* the other family's free is legal too */
    ledger_drop(DEVICE, 9 * MIB);
    CALL(cuStreamSynchronize(stream));
    CALL(cuMemPoolTrimTo(pool, 0));
    CALL(cuMemPoolDestroy(pool));
}

/* Puts physical memory to sleep and wakes it under the same address, as vLLM's sleep mode does. */
static void virtual_memory(void)
{
    CUdeviceptr address;
    CUmemGenericAllocationHandle handle;
    size_t bytes = 0;
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    CUmemAccessDesc access = {.location = properties.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    if (!attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED))
        return;
    CALL(cuMemGetAllocationGranularity(&bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    bytes *= 4;
    CALL(cuMemAddressReserve(&address, bytes, 0, 0, 0));
    for (unsigned char round = 0; round < 3; round++) {
        CALL(cuMemCreate(&handle, bytes, &properties, 0));
        ledger_add(VMM, bytes);
        CALL(cuMemMap(address, bytes, 0, handle, 0));
        CALL(cuMemRelease(handle)); /* the mapping keeps it */
        CALL(cuMemSetAccess(address, bytes, &access, 1));
        fill_and_read("virtual memory", address, round);
        CALL(cuMemUnmap(address, bytes));
        ledger_drop(VMM, bytes);
    }
    CALL(cuMemAddressFree(address, bytes));
}

static void graph_nodes(void)
{
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec executable;
    CUDA_MEM_ALLOC_NODE_PARAMS parameters = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}},
        .bytesize = 2 * MIB};
    CALL(cuGraphCreate(&graph, 0));
    CALL(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &parameters));
    CALL(cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (int launch = 0; launch < 3; launch++) {
        CALL(cuGraphLaunch(executable, stream));
        ledger_add(GRAPH, 2 * MIB);
        fill_and_read("graph", parameters.dptr, 0x66);
        CALL(cuMemFreeAsync(parameters.dptr, stream));
        ledger_drop(GRAPH, 2 * MIB);
    }
    CALL(cuStreamSynchronize(stream));
    CALL(cuGraphExecDestroy(executable));
    CALL(cuGraphDestroy(graph));
}

static void capture(void)
{
    CUgraph graph;
    CUgraphExec executable;
    CUdeviceptr address;
    CALL(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CALL(cuMemAllocAsync(&address, 3 * MIB, stream));
    CALL(cuMemsetD8Async(address, 1, 3 * MIB, stream));
    CALL(cuMemFreeAsync(address, stream));
    CALL(cuStreamEndCapture(stream, &graph));
    CALL(cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (int launch = 0; launch < 2; launch++) {
        CALL(cuGraphLaunch(executable, stream));
        ledger_add(GRAPH, 3 * MIB);
        ledger_drop(GRAPH, 3 * MIB);
    }
    CALL(cuStreamSynchronize(stream));
    CALL(cuGraphExecDestroy(executable));
    CALL(cuGraphDestroy(graph));
}

static void graphs(void)
{
    if (!attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED))
        return;
    graph_nodes();
    capture();
    CALL(cuDeviceGraphMemTrim(device));
}

/* The device's own figures for allocations and frees, next to the requested ones. */
static void memory_of_the_device(void)
{
    enum { COUNT = 8 };
    CUdeviceptr addresses[COUNT];
    size_t before = 0, between = 0, after = 0, total = 0, asked = COUNT * 64 * MIB;
    CALL(cuMemGetInfo(&before, &total));
    for (int i = 0; i < COUNT; i++) {
        CALL(cuMemAlloc(&addresses[i], 64 * MIB));
        ledger_add(DEVICE, 64 * MIB);
    }
    CALL(cuMemGetInfo(&between, &total));
    for (int i = 0; i < COUNT; i++) {
        CALL(cuMemFree(addresses[i]));
        ledger_drop(DEVICE, 64 * MIB);
    }
    CALL(cuMemGetInfo(&after, &total));
    printf("NOTE memory {\"asked\": %zu, \"taken\": %zu, \"given_back\": %zu}\n", asked,
           before - between, after - between);
}

/* A process of its own, started before CUDA: the two must not share a driver. */
static int start_importer(const char *self, pid_t *child)
{
    int ends[2];
    if (pipe(ends) != 0 || (*child = fork()) < 0)
        stop("pipe, fork", __LINE__, 0);
    if (*child == 0) {
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl(self, self, "import", (char *)NULL);
        _exit(127);
    }
    close(ends[0]);
    return ends[1];
}

static void share_memory(int importer, pid_t child)
{
    CUdeviceptr address;
    CUipcMemHandle handle;
    int status = 0;
    CALL(cuMemAlloc(&address, 4 * MIB));
    ledger_add(DEVICE, 4 * MIB);
    CALL(cuMemsetD8(address, 0x77, 4 * MIB));
    CALL(cuCtxSynchronize());
    int result = (int)cuIpcGetMemHandle(&handle, address);
    printf("%d cuIpcGetMemHandle\n", result);
    fflush(stdout);
    if (result == 0 && write(importer, &handle, sizeof(handle)) != (ssize_t)sizeof(handle))
        stop("write", __LINE__, 0);
    close(importer);
    waitpid(child, &status, 0);
    printf("importer ended with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    CALL(cuMemFree(address));
    ledger_drop(DEVICE, 4 * MIB);
}

/* Containers can forbid it: the program says so, and that is no failure of ours. */
static void import(void)
{
    CUipcMemHandle handle;
    CUdeviceptr address;
    if (read(STDIN_FILENO, &handle, sizeof(handle)) != (ssize_t)sizeof(handle))
        exit(0);
    begin_context();
    int result = (int)cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    printf("%d cuIpcOpenMemHandle\n", result);
    if (result == 0) {
        ledger_add(EXTERNAL, 0); /* the call has no size */
        CALL(cuMemcpyDtoH(host, address, sizeof(host)));
        expect_bytes("shared", host, sizeof(host), 0x77);
        CALL(cuIpcCloseMemHandle(address));
        ledger_drop(EXTERNAL, 0);
    }
    ledger_print();
}

static void hold_memory(void)
{
    CUdeviceptr address;
    char line[16];
    begin_context();
    CALL(cuMemAlloc(&address, 256 * MIB));
    ledger_add(DEVICE, 256 * MIB);
    printf("NOTE hold %d\n", (int)getpid());
    fflush(stdout);
    if (!fgets(line, sizeof(line), stdin))
        stop("fgets", __LINE__, 0);
    ledger_print();
}

int main(int count, char **arguments)
{
    pid_t child;
    if (count > 1 && strcmp(arguments[1], "import") == 0) {
        import();
        return 0;
    }
    if (count > 1 && strcmp(arguments[1], "hold") == 0) {
        hold_memory();
        return 0;
    }
    int importer = start_importer(arguments[0], &child);
    begin_context();
    linear();
    refused();
    managed();
    arrays();
    pinned();
    pools();
    virtual_memory();
    graphs();
    memory_of_the_device();
    share_memory(importer, child);
    CALL(cuStreamDestroy(stream));
    CALL(cuDevicePrimaryCtxRelease(device));
    ledger_print();
    return 0;
}
