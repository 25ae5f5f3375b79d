/*
 * Calls that are no allocations and are refused, on a device of 64 MiB (refusals.py):
 *
 *     refusals CALL            holds 48 MiB, makes the call, gives up: exit code 1 and nothing freed
 *     refusals CALL survive    frees what it holds, makes the call again, and ends well
 *     refusals dead ENDING     a kernel fails the device; the program tidies up and ends
 *     refusals mistakes        frees that are refused although the device is well
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HELD ((size_t)48 << 20)

static const char image[] = "the simulator does not read it";
static CUdevice device;
static CUcontext context;
static CUmodule module;
static CUfunction kernel;
static CUgraph graph;

static void must(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    printf("%s: error %d\n", what, (int)result);
    exit(2);
}
#define MUST(call) must((CUresult)(call), #call)

/* ---- the calls ------------------------------------------------------------------------------- */

static int make_context(void)
{
    CUcontext other;
    const int result = cuCtxCreate(&other, NULL, 0, device);
    if (result == 0)
        MUST(cuCtxDestroy(other));
    return result;
}

CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice); /* what programs of CUDA 12 call */

static int make_context_as_before(void)
{
    CUcontext other;
    const int result = cuCtxCreate_v2(&other, 0, device);
    if (result == 0)
        MUST(cuCtxDestroy(other));
    return result;
}

static int load_module(void)
{
    CUmodule other;
    const int result = cuModuleLoadData(&other, image);
    if (result == 0)
        MUST(cuModuleUnload(other));
    return result;
}

static int get_module(void)
{
    static CUlibrary library;
    CUmodule of_library;
    if (!library)
        MUST(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
    return cuLibraryGetModule(&of_library, library);
}

static int launch(void)
{
    return cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL);
}

static int launch_with_configuration(void)
{
    const CUlaunchConfig configuration = {1, 1, 1, 32, 1, 1, 0, NULL, NULL, 0};
    return cuLaunchKernelEx(&configuration, kernel, NULL, NULL);
}

static int launch_cooperative(void)
{
    return cuLaunchCooperativeKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, NULL);
}

static int set_limit(void)
{
    return cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 32 << 20);
}

static int make_stream(void)
{
    CUstream stream;
    const int result = cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    if (result == 0)
        MUST(cuStreamDestroy(stream));
    return result;
}

static int make_event(void)
{
    CUevent event;
    const int result = cuEventCreate(&event, 0);
    if (result == 0)
        MUST(cuEventDestroy(event));
    return result;
}

static int instantiate(void)
{
    CUgraphExec executable;
    const int result = cuGraphInstantiate(&executable, graph, 0);
    if (result == 0)
        MUST(cuGraphExecDestroy(executable));
    return result;
}

static int make_runtime_stream(void)
{
    cudaStream_t stream;
    const int result = (int)cudaStreamCreate(&stream);
    if (result == 0)
        MUST(cudaStreamDestroy(stream));
    return result;
}

static int set_runtime_limit(void)
{
    return (int)cudaDeviceSetLimit(cudaLimitMallocHeapSize, 32 << 20);
}

static const struct {
    const char *name;
    int (*call)(void);
} calls[] = {
    {"context", make_context},
    {"context_v2", make_context_as_before},
    {"module", load_module},
    {"library", get_module},
    {"launch", launch},
    {"launch_ex", launch_with_configuration},
    {"launch_cooperative", launch_cooperative},
    {"limit", set_limit},
    {"stream", make_stream},
    {"event", make_event},
    {"graph", instantiate},
    {"runtime_stream", make_runtime_stream},
    {"runtime_limit", set_runtime_limit},
};

/* ---- programs -------------------------------------------------------------------------------- */

static CUdeviceptr hold(size_t size)
{
    CUdeviceptr address;
    MUST(cuMemAlloc(&address, size));
    return address;
}

static int refused(int (*call)(void), int survives)
{
    CUdeviceptr held = hold(HELD);
    const int result = call();
    printf("error %d\n", result);
    fflush(stdout);
    if (result == 0 || !survives)
        exit(1);
    MUST(cuMemFree(held));
    MUST(call());
    MUST(cuDevicePrimaryCtxRelease(device));
    return 0;
}

/* Whoever tidies up is told the same error by each call. */
static int dead(const char *ending)
{
    CUdeviceptr address[8];
    void *pinned = NULL;
    for (int i = 0; i < 8; i++)
        address[i] = hold((size_t)1 << 20);
    MUST(cuMemHostAlloc(&pinned, 1 << 20, 0));
    MUST(launch());
    if (strcmp(ending, "unseen") != 0)
        printf("the wait: error %d\n", (int)cuCtxSynchronize());
    for (int i = 0; i < 8 && strcmp(ending, "at_once") != 0; i++)
        printf("a free: error %d\n", (int)cuMemFree(address[i]));
    if (strcmp(ending, "at_once") != 0)
        printf("a free: error %d\n", (int)cuMemFreeHost(pinned));
    if (strcmp(ending, "well") == 0)
        printf("a reset, no free: error %d\n", (int)cuDevicePrimaryCtxReset(device));
    fflush(stdout);
    if (strcmp(ending, "abort") == 0)
        abort();
    return strcmp(ending, "well") == 0 ? 0 : 1;
}

static int mistakes(void)
{
    CUdeviceptr held = hold(HELD);
    MUST(cuMemFree(held));
    printf("again: error %d\n", (int)cuMemFree(held));
    printf("of nobody: error %d\n", (int)cuMemFree(held + 512));
    MUST(cuMemFree(hold(HELD)));
    MUST(cuDevicePrimaryCtxRelease(device));
    return 0;
}

/* The runtime's first call makes the context, whatever it was called for. */
static int first_call(const char *which)
{
    void *address = NULL;
    const int result = strcmp(which, "cudaMalloc") == 0 ? (int)cudaMalloc(&address, 1 << 20)
                                                        : (int)cudaSetDevice(0);
    printf("error %d\n", result);
    return 1;
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    if (strcmp(what, "first") == 0)
        return first_call(count > 2 ? arguments[2] : "");
    MUST(cuInit(0));
    MUST(cuDeviceGet(&device, 0));
    MUST(cuDevicePrimaryCtxRetain(&context, device));
    MUST(cuCtxSetCurrent(context));
    MUST(cuModuleLoadData(&module, image));
    MUST(cuModuleGetFunction(&kernel, module, "kernel"));
    MUST(cuGraphCreate(&graph, 0));
    if (strcmp(what, "dead") == 0)
        return dead(count > 2 ? arguments[2] : "");
    if (strcmp(what, "mistakes") == 0)
        return mistakes();
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
        if (strcmp(what, calls[i].name) == 0)
            return refused(calls[i].call, count > 2);
    printf("no such program: %s\n", what);
    return 2;
}
