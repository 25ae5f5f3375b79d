/*
 * A program on NVIDIA's own runtime. On a simulated driver the runtime refuses to work, which is
 * its right. The program prints all its answers, which must be the same with and without the
 * preload.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>

static int show(const char *call, cudaError_t result)
{
    printf("%s: %d %s\n", call, (int)result, cudaGetErrorName(result));
    return (int)result;
}

int main(void)
{
    int count = -1, driver = -1;
    void *address = NULL, *pinned = NULL;
    int first = show("cudaGetDeviceCount", cudaGetDeviceCount(&count));
    show("cudaDriverGetVersion", cudaDriverGetVersion(&driver));
    show("cudaMalloc", cudaMalloc(&address, 1 << 20));
    show("cudaMallocHost", cudaMallocHost(&pinned, 1 << 12));
    show("cudaFree", cudaFree(address));
    show("cudaGetLastError", cudaGetLastError());
    printf("%d devices, driver %d, memory %s\n", count, driver, address || pinned ? "yes" : "no");
    return first;
}
