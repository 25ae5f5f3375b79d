/*
 * The runtime API as C and C++ programs use it, linked with the shared or with the static runtime.
 * It prints the same with and without the preload, and the report must have the totals of its
 * ledger.
 */
#include "ledger.h"
#include <cuda_runtime_api.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

static cudaStream_t stream;
static unsigned char host[MIB];

static void fill_and_read(const char *what, void *address, unsigned char value)
{
    CALL(cudaMemsetAsync(address, value, sizeof(host), stream));
    CALL(cudaMemcpyAsync(host, address, sizeof(host), cudaMemcpyDeviceToHost, stream));
    CALL(cudaStreamSynchronize(stream));
    expect_bytes(what, host, sizeof(host), value);
}

static void linear(void)
{
    void *plain, *pitched;
    size_t pitch = 0;
    CALL(cudaMalloc(&plain, 3 * MIB + 5));
    ledger_add(DEVICE, 3 * MIB + 5);
    CALL(cudaMallocPitch(&pitched, &pitch, 1001, 77));
    ledger_add(DEVICE, pitch * 77);
    fill_and_read("linear", plain, 0x5a);
    memset(host, 0x18, sizeof(host));
    CALL(cudaMemcpy(plain, host, sizeof(host), cudaMemcpyHostToDevice));
    memset(host, 0, sizeof(host));
    CALL(cudaMemcpy(host, plain, sizeof(host), cudaMemcpyDefault));
    expect_bytes("copies", host, sizeof(host), 0x18);
    CALL(cudaFree(pitched));
    ledger_drop(DEVICE, pitch * 77);
    CALL(cudaFree(plain));
    ledger_drop(DEVICE, 3 * MIB + 5);
}

static void managed(void)
{
    void *address;
    int supported = 0;
    CALL(cudaDeviceGetAttribute(&supported, cudaDevAttrManagedMemory, 0));
    if (!supported)
        return;
    CALL(cudaMallocManaged(&address, 2 * MIB, cudaMemAttachGlobal));
    ledger_add(MANAGED, 2 * MIB);
    fill_and_read("managed", address, 0x21);
    CALL(cudaFree(address));
    ledger_drop(MANAGED, 2 * MIB);
}

static void pinned(void)
{
    void *address;
    CALL(cudaHostAlloc(&address, 6 * MIB, cudaHostAllocDefault));
    ledger_add(PINNED, 6 * MIB);
    CALL(cudaFreeHost(address));
    ledger_drop(PINNED, 6 * MIB);
}

static void arrays(void)
{
    cudaArray_t array;
    struct cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    CALL(cudaMallocArray(&array, &format, 128, 64, 0));
    ledger_add(ARRAY, (size_t)128 * 64 * sizeof(float));
    CALL(cudaFreeArray(array));
    ledger_drop(ARRAY, (size_t)128 * 64 * sizeof(float));
}

static void stream_ordered(void)
{
    void *address;
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    int supported = 0;
    CALL(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
    if (!supported)
        return;
    for (int i = 0; i < 3; i++) {
        CALL(cudaMallocAsync(&address, 7 * MIB, stream));
        ledger_add(DEVICE, 7 * MIB);
        fill_and_read("stream-ordered", address, 0x43);
        CALL(cudaFreeAsync(address, stream));
        ledger_drop(DEVICE, 7 * MIB);
    }
    CALL(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    CALL(cudaMallocAsync(&address, 4 * MIB, stream));
    CALL(cudaMemsetAsync(address, 1, 4 * MIB, stream));
    CALL(cudaFreeAsync(address, stream));
    CALL(cudaStreamEndCapture(stream, &graph));
    CALL(cudaGraphInstantiateWithFlags(&executable, graph, 0));
    CALL(cudaGraphLaunch(executable, stream));
    ledger_add(GRAPH, 4 * MIB);
    ledger_drop(GRAPH, 4 * MIB);
    CALL(cudaStreamSynchronize(stream));
    CALL(cudaGraphExecDestroy(executable));
    CALL(cudaGraphDestroy(graph));
}

int main(void)
{
    CALL(cudaSetDevice(0));
    CALL(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    linear();
    managed();
    pinned();
    arrays();
    stream_ordered();
    CALL(cudaStreamDestroy(stream));
    ledger_print();
    return 0;
}
