/* Memory of several libraries, some of it through the pool of another; then a request that cannot
 * succeed. Sizes are distinct powers of two, so that a sum identifies its parts. */
#include "allocate.h"
#include <cuda_runtime_api.h>
#include <stdio.h>

#define MIB ((size_t)1 << 20)

int main(void)
{
    void *memory, *temporary;
    if (cudaMalloc(&memory, 1 * MIB) != cudaSuccess || !allocate_nccl(NULL, 2 * MIB) ||
        !allocate_mine(NULL, 4 * MIB) || !(temporary = allocate_c10(NULL, 64 * MIB)) ||
        cudaFree(temporary) != cudaSuccess)
        puts("no memory");
    if (!allocate_torch(allocate_c10, 8 * MIB) || !allocate_cudnn(allocate_c10, 16 * MIB) ||
        !allocate_c10(NULL, 32 * MIB))
        puts("no memory");
    puts(allocate_nccl(NULL, (size_t)1 << 50) ? "so much memory" : "refused");
    cudaFree(memory);
    return 0;
}
