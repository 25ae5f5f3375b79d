/*
 * What gpumem takes the driver to do, one row for each rule, with NVIDIA's sentence from cuda.h that it
 * stands on. The same table holds on the simulated driver and on a genuine one: where a GPU says
 * FAIL, the simulator and the accounting are wrong, not the GPU.
 *
 * The texts are quoted without the marks of doxygen; the kit looks for them in cuda.h. PASS and FAIL are the same with and without the preload. ASKED, a NOTE, is what the text leaves
 * open: nothing depends on the answer yet.
 */
#include "ledger.h"
#include <cuda.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define MIB ((size_t)1 << 20)
#define PIECE (64 * MIB) /* much larger than what the driver takes for itself meanwhile */

enum answer { NO, YES, ABSENT };

static CUdevice device;
static CUcontext primary;
static int maker; /* a socket to a process that was started before CUDA (make_for_another) */

/* ---- what rows are made of ------------------------------------------------------------------- */

/* MUST is for what a row needs, which is not what it asks. */
#define MUST(call)                                                                                 \
    do {                                                                                           \
        int must_result = (int)(call);                                                             \
        if (must_result != 0)                                                                      \
            stop(#call, __LINE__, must_result);                                                    \
    } while (0)

static long long used(void)
{
    size_t free_bytes = 0, total = 0;
    MUST(cuMemGetInfo(&free_bytes, &total));
    return (long long)(total - free_bytes);
}

static bool took(long long before, size_t bytes)
{
    const long long more = used() - before - (long long)bytes;
    return more > -(long long)(PIECE / 4) && more < (long long)(PIECE / 4);
}

static CUmemGenericAllocationHandle make_memory(void)
{
    const CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    CUmemGenericAllocationHandle handle;
    MUST(cuMemCreate(&handle, PIECE, &properties, 0));
    return handle;
}

static CUdeviceptr map_memory(CUmemGenericAllocationHandle handle)
{
    const CUmemAccessDesc access = {{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
                                    CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUdeviceptr address;
    MUST(cuMemAddressReserve(&address, PIECE, 0, 0, 0));
    MUST(cuMemMap(address, PIECE, 0, handle, 0));
    MUST(cuMemSetAccess(address, PIECE, &access, 1));
    return address;
}

static void unmap_memory(CUdeviceptr address)
{
    MUST(cuMemUnmap(address, PIECE));
    MUST(cuMemAddressFree(address, PIECE));
}

static int export_memory(CUmemGenericAllocationHandle handle)
{
    int descriptor = -1;
    MUST(cuMemExportToShareableHandle(&descriptor, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                      0));
    return descriptor;
}

/* ---- virtual memory -------------------------------------------------------------------------- */

static enum answer a_mapping_keeps_memory(void)
{
    const long long before = used();
    CUmemGenericAllocationHandle handle = make_memory();
    CUdeviceptr address = map_memory(handle);
    MUST(cuMemRelease(handle));
    bool kept = took(before, PIECE);
    unmap_memory(address);
    return kept && took(before, 0);
}

static enum answer a_descriptor_keeps_memory(void)
{
    const long long before = used();
    CUmemGenericAllocationHandle handle = make_memory();
    int descriptor = export_memory(handle);
    MUST(cuMemRelease(handle));
    bool kept = took(before, PIECE);
    close(descriptor);
    return kept && took(before, 0);
}

static enum answer an_own_import_is_the_same_memory(void)
{
    const long long before = used();
    CUmemGenericAllocationHandle handle = make_memory(), imported;
    CUdeviceptr first = map_memory(handle), second;
    int descriptor = export_memory(handle), seen = 0;
    MUST(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)descriptor,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(descriptor);
    printf("NOTE \"an import has the handle of the original: %s\"\n",
           imported == handle ? "yes" : "no");
    second = map_memory(imported);
    MUST(cuMemRelease(handle));
    MUST(cuMemcpyHtoD(first, &(int){4711}, sizeof(int)));
    MUST(cuMemcpyDtoH(&seen, second, sizeof(int)));
    unmap_memory(first);
    bool kept = took(before, PIECE);
    unmap_memory(second);
    MUST(cuMemRelease(imported));
    return seen == 4711 && kept && took(before, 0);
}

static enum answer a_retained_handle_is_that_of_the_mapping(void)
{
    CUmemGenericAllocationHandle handle = make_memory(), retained;
    CUdeviceptr address = map_memory(handle);
    MUST(cuMemRetainAllocationHandle(&retained, (void *)(uintptr_t)(address + PIECE / 2)));
    MUST(cuMemRelease(retained));
    MUST(cuMemRelease(handle));
    unmap_memory(address);
    return retained == handle;
}

static enum answer a_part_of_a_mapping_is_not_unmapped(void)
{
    CUmemGenericAllocationHandle handle = make_memory();
    CUdeviceptr address = map_memory(handle);
    bool refused = cuMemUnmap(address, PIECE / 2) == CUDA_ERROR_INVALID_VALUE;
    if (!refused)
        stop("cuMemUnmap of a half", __LINE__, 0); /* what is mapped is not known any more */
    unmap_memory(address);
    MUST(cuMemRelease(handle));
    return refused;
}

/* One descriptor is sent, or received into it if it is -1. */
static void pass_descriptor(int socket, int *descriptor)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {{CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec byte = {&(char){0}, 1};
    struct msghdr message = {.msg_iov = &byte,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    memcpy(CMSG_DATA(&control.header), descriptor, sizeof(int));
    if ((*descriptor >= 0 ? sendmsg(socket, &message, 0) : recvmsg(socket, &message, 0)) != 1)
        stop("sendmsg, recvmsg", __LINE__, 0);
    memcpy(descriptor, CMSG_DATA(&control.header), sizeof(int));
}

static void begin(void)
{
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&primary, device));
    MUST(cuCtxSetCurrent(primary));
}

/* The other process: makes memory when it is told to, writes, passes it on and ends. */
static int make_for_another(void)
{
    if (read(STDIN_FILENO, &(char){0}, 1) != 1)
        return 0;
    begin();
    CUmemGenericAllocationHandle handle = make_memory();
    CUdeviceptr address = map_memory(handle);
    MUST(cuMemcpyHtoD(address, &(int){4711}, sizeof(int)));
    int descriptor = export_memory(handle);
    pass_descriptor(STDIN_FILENO, &descriptor);
    close(descriptor);
    unmap_memory(address);
    MUST(cuMemRelease(handle));
    MUST(cuDevicePrimaryCtxRelease(device));
    return 0;
}

static void start_maker(const char *self)
{
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        stop("socketpair", __LINE__, 0);
    maker = ends[0];
    if (fork() == 0) {
        dup2(ends[1], STDIN_FILENO);
        execl(self, self, "make", (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
}

static enum answer memory_outlives_the_process_that_made_it(void)
{
    const long long before = used();
    CUmemGenericAllocationHandle imported;
    int descriptor = -1, status = -1, seen = 0;
    if (write(maker, "", 1) != 1)
        stop("write", __LINE__, 0);
    pass_descriptor(maker, &descriptor);
    MUST(cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)descriptor,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    close(descriptor);
    CUdeviceptr address = map_memory(imported);
    MUST(cuMemRelease(imported));
    if (wait(&status) < 0 || status != 0)
        stop("the other process", __LINE__, status);
    MUST(cuMemcpyDtoH(&seen, address, sizeof(int)));
    printf("NOTE \"ASKED of %zu bytes that a process which has ended made, cuMemGetInfo shows "
           "%lld\"\n",
           PIECE, used() - before);
    unmap_memory(address);
    return seen == 4711;
}

/* ---- linear memory, pools, graphs ------------------------------------------------------------ */

static enum answer any_free_ends_stream_ordered_memory(void)
{
    CUdeviceptr address;
    MUST(cuMemAllocAsync(&address, MIB, NULL));
    return cuMemFree(address) == CUDA_SUCCESS;
}

static enum answer too_much_is_refused_for_lack_of_memory(void)
{
    CUdeviceptr address;
    size_t free_bytes, total;
    MUST(cuMemGetInfo(&free_bytes, &total));
    return cuMemAlloc(&address, 2 * total) == CUDA_ERROR_OUT_OF_MEMORY;
}

/* Calls that are no allocations; gpumem must have what they were refused. */
static int ask_on_a_full_device(const char *call, int result)
{
    printf("NOTE \"ASKED on a full device %s answers %d\"\n", call, result);
    return result;
}

static enum answer a_full_device_has_no_memory_for_a_context(void)
{
    /* A kernel with 128 KiB of local memory for each thread. */
    static const char code[] =
        ".version 6.4\n.target sm_75\n.address_size 64\n"
        ".visible .entry deep(.param .u64 index)\n"
        "{ .reg .b64 %a<4>; .reg .b32 %v; .local .align 8 .b8 room[131072];\n"
        "  ld.param.u64 %a1, [index]; mov.u64 %a2, room; add.u64 %a3, %a2, %a1;\n"
        "  mov.u32 %v, 1; st.volatile.local.u32 [%a3], %v; ret; }\n";
    CUdeviceptr held[1024];
    size_t count = 0, size, total;
    CUcontext own;
    CUmodule module;
    CUfunction deep;
    CUstream stream;
    unsigned long long index = 8;
    MUST(cuMemGetInfo(&size, &total));
    while (size >= MIB && count < sizeof(held) / sizeof(held[0]))
        if (cuMemAlloc(&held[count], size) == CUDA_SUCCESS)
            count++;
        else
            size /= 2;
#if CUDA_VERSION >= 13000
    int answer = ask_on_a_full_device("cuCtxCreate", cuCtxCreate(&own, NULL, 0, device));
#else
    int answer = ask_on_a_full_device("cuCtxCreate", cuCtxCreate(&own, 0, device));
#endif
    if (answer == CUDA_SUCCESS)
        MUST(cuCtxDestroy(own));
    MUST(cuCtxSetCurrent(primary));
    if (ask_on_a_full_device("cuStreamCreate", cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)) ==
        CUDA_SUCCESS)
        MUST(cuStreamDestroy(stream));
    ask_on_a_full_device("cuCtxSetLimit", cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 4 * PIECE));
    if (ask_on_a_full_device("cuModuleLoadData", cuModuleLoadData(&module, code)) == CUDA_SUCCESS) {
        MUST(cuModuleGetFunction(&deep, module, "deep"));
        ask_on_a_full_device("cuLaunchKernel", cuLaunchKernel(deep, 1, 1, 1, 1, 1, 1, 0, NULL,
                                                              (void *[]){&index}, NULL));
        MUST(cuCtxSynchronize());
        MUST(cuModuleUnload(module));
    }
    while (count > 0)
        MUST(cuMemFree(held[--count]));
    return answer == CUDA_ERROR_OUT_OF_MEMORY;
}

static enum answer ask_about_mig(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_LAZY);
    unsigned current = 0, pending;
    unsigned long long of_card[3] = {0}; /* total, free, used */
    size_t free_bytes, total;
    void *card;
    int (*init)(void) = library ? (int (*)(void))dlsym(library, "nvmlInit_v2") : NULL;
    if (!init || init() != 0)
        return ABSENT;
    int (*by_index)(unsigned, void **) =
        (int (*)(unsigned, void **))dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    int (*mode)(void *, unsigned *, unsigned *) =
        (int (*)(void *, unsigned *, unsigned *))dlsym(library, "nvmlDeviceGetMigMode");
    int (*memory)(void *, unsigned long long *) =
        (int (*)(void *, unsigned long long *))dlsym(library, "nvmlDeviceGetMemoryInfo");
    if (by_index(0, &card) != 0 || mode(card, &current, &pending) != 0 ||
        memory(card, of_card) != 0)
        return ABSENT;
    MUST(cuMemGetInfo(&free_bytes, &total));
    printf("NOTE \"ASKED MIG mode %u: NVML's first device has %llu bytes, CUDA's %zu\"\n", current,
           of_card[0], total);
    return ABSENT;
}

static enum answer memory_of_a_context_ends_with_it(void)
{
    const long long before = used();
    CUcontext own;
    CUdeviceptr address;
#if CUDA_VERSION >= 13000
    MUST(cuCtxCreate(&own, NULL, 0, device));
#else
    MUST(cuCtxCreate(&own, 0, device));
#endif
    MUST(cuMemAlloc(&address, 4 * PIECE));
    MUST(cuCtxDestroy(own));
    MUST(cuCtxSetCurrent(primary));
    return used() - before < (long long)(2 * PIECE);
}

static enum answer a_host_pool_takes_no_device_memory(void)
{
#if CUDA_VERSION >= 12020
    CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_HOST_NUMA, .id = 0}};
    CUmemoryPool pool;
    CUdeviceptr address;
    const long long before = used();
    if (cuMemPoolCreate(&pool, &properties) != CUDA_SUCCESS)
        return ABSENT;
    MUST(cuMemAllocFromPoolAsync(&address, PIECE, pool, NULL));
    MUST(cuStreamSynchronize(NULL));
    bool is_host = took(before, 0);
    MUST(cuMemFreeAsync(address, NULL));
    MUST(cuStreamSynchronize(NULL));
    MUST(cuMemPoolDestroy(pool));
    return is_host;
#else
    return ABSENT;
#endif
}

static enum answer a_node_that_lives_refuses_the_next_launch(void)
{
    CUDA_MEM_ALLOC_NODE_PARAMS parameters = {
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}},
        .bytesize = MIB};
    CUgraph graph;
    CUgraphNode node;
    CUgraphExec executable;
    CUstream stream;
    MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &parameters));
    MUST(cuGraphInstantiateWithFlags(&executable, graph, 0));
    MUST(cuGraphLaunch(executable, stream));
    bool refused = cuGraphLaunch(executable, stream) == CUDA_ERROR_INVALID_VALUE;
    MUST(cuMemFreeAsync(parameters.dptr, stream));
    bool launched = cuGraphLaunch(executable, stream) == CUDA_SUCCESS;
    MUST(cuMemFreeAsync(parameters.dptr, stream));
    MUST(cuStreamSynchronize(stream));
    MUST(cuGraphExecDestroy(executable));
    MUST(cuGraphDestroy(graph));
    MUST(cuStreamDestroy(stream));
    return refused && launched;
}

static enum answer an_external_event_carries_no_capture(void)
{
    CUstream captured, other;
    CUevent event;
    CUgraph graph;
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    MUST(cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
    MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    MUST(cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuEventRecordWithFlags(event, captured, CU_EVENT_RECORD_EXTERNAL));
    MUST(cuStreamWaitEvent(other, event, 0));
    MUST(cuStreamIsCapturing(other, &status));
    MUST(cuStreamEndCapture(captured, &graph));
    MUST(cuGraphDestroy(graph));
    MUST(cuEventDestroy(event));
    MUST(cuStreamDestroy(other));
    MUST(cuStreamDestroy(captured));
    return status == CU_STREAM_CAPTURE_STATUS_NONE;
}

static enum answer ask_what_small_allocations_take(void)
{
    enum { COUNT = 2048, SIZE = 1024 };
    static CUdeviceptr addresses[COUNT];
    const long long before = used();
    for (int i = 0; i < COUNT; i++)
        MUST(cuMemAlloc(&addresses[i], SIZE));
    printf("NOTE \"ASKED %d allocations of %d bytes take %lld bytes\"\n", COUNT, SIZE,
           used() - before);
    for (int i = 0; i < COUNT; i++)
        MUST(cuMemFree(addresses[i]));
    return ABSENT;
}

/* ---- contexts -------------------------------------------------------------------------------- */

static enum answer a_registration_and_its_context(void)
{
    static unsigned char memory[2 * MIB] __attribute__((aligned(4096)));
    CUcontext own;
#if CUDA_VERSION >= 13000
    MUST(cuCtxCreate(&own, NULL, 0, device));
#else
    MUST(cuCtxCreate(&own, 0, device));
#endif
    MUST(cuMemHostRegister(memory, sizeof(memory), 0));
    MUST(cuCtxDestroy(own));
    MUST(cuCtxSetCurrent(primary));
    int again = (int)cuMemHostRegister(memory, sizeof(memory), 0);
    printf(
        "NOTE \"ASKED after its context was destroyed, registering the same memory answers %d\"\n",
        again);
    (void)cuMemHostUnregister(memory);
    return ABSENT;
}

/* The last row but one: it releases the primary context, and retains it again. */
static enum answer a_green_context_retains_the_primary(void)
{
#if CUDA_VERSION >= 12040
    CUresult (*resource_of)(CUdevice, CUdevResource *, CUdevResourceType) =
        (CUresult(*)(CUdevice, CUdevResource *, CUdevResourceType))dlsym(RTLD_DEFAULT,
                                                                         "cuDeviceGetDevResource");
    CUresult (*describe)(CUdevResourceDesc *, CUdevResource *, unsigned) =
        (CUresult(*)(CUdevResourceDesc *, CUdevResource *, unsigned))dlsym(
            RTLD_DEFAULT, "cuDevResourceGenerateDesc");
    CUresult (*create)(CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned) =
        (CUresult(*)(CUgreenCtx *, CUdevResourceDesc, CUdevice, unsigned))dlsym(RTLD_DEFAULT,
                                                                                "cuGreenCtxCreate");
    CUresult (*destroy)(CUgreenCtx) =
        (CUresult(*)(CUgreenCtx))dlsym(RTLD_DEFAULT, "cuGreenCtxDestroy");
    CUdevResource all;
    CUdevResourceDesc description;
    CUgreenCtx green;
    unsigned flags;
    int is_active[3] = {0};
    if (!resource_of || !describe || !create || !destroy ||
        resource_of(device, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS ||
        describe(&description, &all, 1) != CUDA_SUCCESS ||
        create(&green, description, device, CU_GREEN_CTX_DEFAULT_STREAM) != CUDA_SUCCESS)
        return ABSENT;
    MUST(cuDevicePrimaryCtxRelease(device));
    MUST(cuDevicePrimaryCtxGetState(device, &flags, &is_active[0]));
    MUST(destroy(green));
    MUST(cuDevicePrimaryCtxGetState(device, &flags, &is_active[1]));
    MUST(cuDevicePrimaryCtxRetain(&primary, device));
    MUST(cuCtxSetCurrent(primary));
    return is_active[0] && !is_active[1];
#else
    return ABSENT;
#endif
}

/* The last row. */
static enum answer a_reset_ends_linear_memory(void)
{
    const long long before = used();
    CUdeviceptr address;
    MUST(cuMemAlloc(&address, 4 * PIECE));
    MUST(cuDevicePrimaryCtxReset(device));
    MUST(cuCtxSetCurrent(NULL));
    MUST(cuDevicePrimaryCtxRelease(device));
    MUST(cuDevicePrimaryCtxRetain(&primary, device));
    MUST(cuCtxSetCurrent(primary));
    return used() - before < (long long)(2 * PIECE);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    enum answer (*ask)(void);
    const char *function, *text; /* of cuda.h */
} rules[] = {
    {"a mapping keeps memory", a_mapping_keeps_memory, "cuMemRelease",
     "freed when all outstanding mappings to the memory are unmapped"},
    {"a descriptor keeps memory", a_descriptor_keeps_memory, "cuMemRelease",
     "and when all outstanding references to the handle (including it's shareable counterparts) "
     "are also released"},
    {"an own import is the same memory", an_own_import_is_the_same_memory,
     "cuMemImportFromShareableHandle",
     "Imports an allocation from a requested shareable handle type"},
    {"memory outlives the process that made it", memory_outlives_the_process_that_made_it,
     "cuMemRelease", "freed when all outstanding mappings to the memory are unmapped"},
    {"a retained handle is that of the mapping", a_retained_handle_is_that_of_the_mapping,
     "cuMemRetainAllocationHandle",
     "guaranteed to be the same handle value used to map the memory"},
    {"a part of a mapping is not unmapped", a_part_of_a_mapping_is_not_unmapped, "cuMemUnmap",
     "The range must be the entire contiguous address range that was mapped to"},
    {"any free ends stream-ordered memory", any_free_ends_stream_ordered_memory, "cuMemFree",
     "cuMemAllocAsync(), cuMemAllocFromPoolAsync()"},
    {"too much is refused for lack of memory", too_much_is_refused_for_lack_of_memory, "cuMemAlloc",
     "CUDA_ERROR_OUT_OF_MEMORY"},
    {"a full device has no memory for a context", a_full_device_has_no_memory_for_a_context,
     "cuCtxCreate", "CUDA_ERROR_OUT_OF_MEMORY"},
    {"memory of a context ends with it", memory_of_a_context_ends_with_it, "cuCtxDestroy",
     "Destroys and cleans up all resources associated with the context"},
    {"a host pool takes no device memory", a_host_pool_takes_no_device_memory, "cuMemPoolCreate",
     "To create a memory pool for HOST memory"},
    {"a node that lives refuses the next launch", a_node_that_lives_refuses_the_next_launch,
     "cuGraphLaunch",
     "If any allocations created by hGraphExec remain unfreed (from a previous launch)"},
    {"an external event carries no capture", an_external_event_carries_no_capture,
     "cuEventRecordWithFlags", "captured in the graph as an external event node"},
    {"small allocations", ask_what_small_allocations_take, "cuMemAlloc", NULL},
    {"a card in MIG mode", ask_about_mig, "nvmlDeviceGetMigMode", NULL},
    {"a registration and its context", a_registration_and_its_context, "cuCtxDestroy", NULL},
    {"a green context retains the primary", a_green_context_retains_the_primary, "cuGreenCtxCreate",
     "This API will retain the primary context on device dev"},
    {"a reset ends linear memory", a_reset_ends_linear_memory, "cuDevicePrimaryCtxReset",
     "Explicitly destroys and cleans up all resources associated with the current device"},
};

int main(int argument_count, char **arguments)
{
    if (argument_count > 1)
        return make_for_another();
    start_maker(arguments[0]);
    begin();
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        enum answer answer = rules[i].ask();
        printf("%s %s | %s: %s\n",
               !rules[i].text  ? "OPEN"
               : answer == YES ? "PASS"
               : answer == NO  ? "FAIL"
                               : "ABSENT",
               rules[i].name, rules[i].function, rules[i].text ? rules[i].text : "says nothing");
        fflush(stdout);
    }
    MUST(cuDevicePrimaryCtxRelease(device));
    return 0;
}
