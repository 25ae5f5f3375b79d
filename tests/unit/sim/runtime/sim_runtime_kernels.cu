/*
 * An ordinary program of nvcc, unaware of the simulator: kernels are launched (and do nothing),
 * variables of the device have addresses and sizes, managed variables are usable by the host.
 */
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

__managed__ int managed_number = 4;
__device__ float numbers[10];
__constant__ int constants[3];

__global__ void store(int *where, int count)
{
    if (count)
        *where = managed_number;
}

template <class T> __global__ void clear(T *where)
{
    *where = 0;
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s, last error %s\n", __LINE__, #condition,                  \
                    cudaGetErrorName(cudaGetLastError()));                                         \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)
#define CHECK_OK(call) CHECK((call) == cudaSuccess)

static int check_launches(int *memory)
{
    store<<<1, 2>>>(memory, 3);
    CHECK_OK(cudaGetLastError());
    clear<float><<<dim3(2, 2), 32, 16>>>((float *)memory);
    CHECK_OK(cudaGetLastError());
    cudaLaunchConfig_t config = {};
    config.gridDim = 1;
    config.blockDim = 1;
    CHECK_OK(cudaLaunchKernelEx(&config, store, memory, 3));
    cudaFuncAttributes attributes;
    CHECK_OK(cudaFuncGetAttributes(&attributes, store));
    int grid = 0;
    int block = 0;
    CHECK_OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, store, 0, 0));
    return 0;
}

static int check_variables()
{
    void *address = nullptr;
    size_t bytes = 0;
    CHECK_OK(cudaGetSymbolAddress(&address, numbers));
    CHECK_OK(cudaGetSymbolSize(&bytes, numbers));
    CHECK(bytes == sizeof numbers);
    const int from[3] = {1, 2, 3};
    int to[3] = {};
    CHECK_OK(cudaMemcpyToSymbol(constants, from, sizeof from));
    CHECK_OK(cudaMemcpyFromSymbol(to, constants, sizeof to));
    CHECK(memcmp(from, to, sizeof to) == 0);
    managed_number = 7;
    CHECK(managed_number == 7);
    CHECK_OK(cudaGetSymbolSize(&bytes, managed_number));
    CHECK(bytes == sizeof(int));
    return 0;
}

static int check_default_stream()
{
    float *memory = nullptr;
    CHECK_OK(cudaMallocAsync(&memory, 1000, cudaStreamPerThread));
    CHECK_OK(cudaMemsetAsync(memory, 0, 1000));
    CHECK_OK(cudaFreeAsync(memory, 0));
    return 0;
}

int main()
{
    int *memory = nullptr;
    CHECK_OK(cudaMalloc(&memory, 400));
    if (check_launches(memory) || check_variables() || check_default_stream())
        return 1;
    CHECK_OK(cudaDeviceSynchronize());
    CHECK_OK(cudaFree(memory));
    return 0;
}
