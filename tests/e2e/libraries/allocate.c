/* A library that allocates: itself, or by asking the next one. ALLOCATE is the function's name. */
#include "allocate.h"
#include <cuda_runtime_api.h>

void *ALLOCATE(void *next, size_t size)
{
    void *memory = NULL;
    if (next)
        memory = ((allocator *)next)(NULL, size);
    else if (cudaMalloc(&memory, size) != cudaSuccess)
        memory = NULL;
    return memory;
}
