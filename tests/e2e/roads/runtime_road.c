/*
 * The runtime API, called as most programs do. Built three times: against the shared runtime; with
 * the runtime inside the program, and with its functions found by dlvsym. No runtime hook sees the
 * calls of the latter two, so the driver layer must suffice.
 */
#include "../programs/plant.h"
#include <cuda_runtime_api.h>

#ifdef ROAD_DLVSYM
#include <dlfcn.h>

static void *find_function(const char *name)
{
    static void *library;
    if (library == NULL)
        library = dlopen("libcudart.so.13", RTLD_NOW);
    return dlvsym(library, name, "libcudart.so.13");
}

/* Inside its own macro a name stands for the function. */
#define BY_VERSION(function) ((__typeof__(function) *)find_function(#function))
#define cudaMalloc BY_VERSION(cudaMalloc)
#define cudaFree BY_VERSION(cudaFree)
#define cudaMemcpy BY_VERSION(cudaMemcpy)
#define cudaMallocHost BY_VERSION(cudaMallocHost)
#define cudaFreeHost BY_VERSION(cudaFreeHost)
#define cudaMallocManaged BY_VERSION(cudaMallocManaged)
#define cudaMallocPitch BY_VERSION(cudaMallocPitch)
#define cudaMallocAsync BY_VERSION(cudaMallocAsync)
#define cudaFreeAsync BY_VERSION(cudaFreeAsync)
#define cudaStreamCreate BY_VERSION(cudaStreamCreate)
#define cudaStreamSynchronize BY_VERSION(cudaStreamSynchronize)
#define cudaStreamDestroy BY_VERSION(cudaStreamDestroy)
#define cudaGetLastError BY_VERSION(cudaGetLastError)
#endif

__attribute__((noinline)) static void forget_road_buffer(void)
{
    void *address;
    LOG(cudaMalloc(&address, 123456));
    PLANTED(123456, 1);
}

static void linear(void)
{
    void *address[4];
    char word[16] = "roads", back[16] = "";
    for (int i = 0; i < 4; i++)
        LOG(cudaMalloc(&address[i], (size_t)4096 << i));
    LOG(cudaMemcpy(address[3], word, sizeof word, cudaMemcpyHostToDevice));
    LOG(cudaMemcpy(back, address[3], sizeof back, cudaMemcpyDeviceToHost));
    printf("%s\n", back);
    for (int i = 0; i < 4; i++)
        LOG(cudaFree(address[i]));
    LOG(cudaFree(NULL));
}

static void other_families(void)
{
    void *pinned, *managed, *pitched;
    size_t pitch = 0;
    LOG(cudaMallocHost(&pinned, 1 << 14));
    LOG(cudaMallocManaged(&managed, 1 << 15, cudaMemAttachGlobal));
    LOG(cudaMallocPitch(&pitched, &pitch, 500, 20));
    printf("pitch %zu\n", pitch);
    LOG(cudaFree(pitched));
    LOG(cudaFree(managed));
    LOG(cudaFreeHost(pinned));
}

static void stream_ordered(void)
{
    cudaStream_t stream;
    void *address;
    LOG(cudaStreamCreate(&stream));
    LOG(cudaMallocAsync(&address, 1 << 16, stream));
    LOG(cudaFreeAsync(address, stream));
    LOG(cudaStreamSynchronize(stream));
    LOG(cudaStreamDestroy(stream));
}

int main(void)
{
    void *address = NULL;
    linear();
    other_families();
    stream_ordered();
    forget_road_buffer();
    LOG(cudaMalloc(&address, (size_t)1 << 60)); /* refused */
    LOG(cudaGetLastError());
    return 0;
}
