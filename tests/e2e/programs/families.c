/*
 * The families of the runtime API a newcomer uses first: linear, pitched, 3D, managed, pinned,
 * registered, stream-ordered, copies and sets; out of memory; two leaks.
 */
#include "plant.h"
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static void forget_buffer(size_t bytes)
{
    void *address;
    LOG(cudaMalloc(&address, bytes));
    PLANTED(bytes, 1);
}

__attribute__((noinline)) static void forget_three_pinned(void)
{
    void *address;
    for (int i = 0; i < 3; i++)
        cudaMallocHost(&address, 4096);
    PLANTED(3 * 4096, 3);
}

static void linear_and_copies(void)
{
    char *a, *b, host[1024] = "gpumem", back[1024] = "";
    LOG(cudaMalloc((void **)&a, 1 << 20));
    LOG(cudaMalloc((void **)&b, 1 << 20));
    LOG(cudaMemcpy(a, host, sizeof(host), cudaMemcpyHostToDevice));
    LOG(cudaMemcpy(b, a, sizeof(host), cudaMemcpyDeviceToDevice));
    LOG(cudaMemcpy(back, b, sizeof(host), cudaMemcpyDefault));
    printf("copied back: %s\n", back);
    LOG(cudaMemset(a, 1, 1 << 20));
    LOG(cudaFree(a));
    LOG(cudaFree(b));
    LOG(cudaFree(NULL));
    LOG(cudaMalloc((void **)&a, 0));
}

static void shaped(void)
{
    void *pitched;
    size_t pitch;
    struct cudaPitchedPtr cube;
    LOG(cudaMallocPitch(&pitched, &pitch, 1000, 37));
    printf("pitch %zu\n", pitch);
    LOG(cudaMemset2D(pitched, pitch, 0, 1000, 37));
    LOG(cudaMalloc3D(&cube, ((struct cudaExtent){100, 20, 3})));
    LOG(cudaFree(pitched));
    LOG(cudaFree(cube.ptr));
}

static void host_and_managed(void)
{
    void *pinned, *managed, *own = aligned_alloc(4096, 1 << 16);
    LOG(cudaHostAlloc(&pinned, 1 << 16, cudaHostAllocMapped));
    LOG(cudaMallocManaged(&managed, 3 << 16, cudaMemAttachGlobal));
    LOG(cudaHostRegister(own, 1 << 16, cudaHostRegisterDefault));
    LOG(cudaHostRegister(own, 1 << 16, cudaHostRegisterDefault)); /* refused: already registered */
    LOG(cudaHostUnregister(own));
    LOG(cudaFreeHost(pinned));
    LOG(cudaFree(managed));
    free(own);
}

static void stream_ordered(void)
{
    cudaStream_t stream;
    void *a, *b;
    LOG(cudaStreamCreate(&stream));
    LOG(cudaMallocAsync(&a, 5000, stream));
    LOG(cudaMallocAsync(&b, 6000, stream));
    LOG(cudaMemsetAsync(a, 0, 5000, stream));
    LOG(cudaFreeAsync(a, stream));
    LOG(cudaFree(b)); /* legal: a synchronous free of stream-ordered memory */
    LOG(cudaStreamSynchronize(stream));
    LOG(cudaStreamDestroy(stream));
}

static void refused(void)
{
    void *address = (void *)1;
    LOG(cudaMalloc(&address, (size_t)1 << 50));
    LOG(cudaGetLastError());
    LOG(cudaFree((void *)0x1234)); /* not ours: forwarded, refused, recorded as nothing freed */
    LOG(cudaGetLastError());
}

int main(void)
{
    LOG(cudaSetDevice(0));
    linear_and_copies();
    shaped();
    host_and_managed();
    stream_ordered();
    refused();
    forget_buffer(123456);
    forget_three_pinned();
    return 7; /* the exit code is the program's own */
}
