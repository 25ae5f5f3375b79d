/* A library with the name of one of the vendor's: a handle that lives by design, and what a call to compute keeps. */
#include <cuda_runtime_api.h>

int cublasCreate_v2(void **handle);
int cublasSgemm_v2(void);

int cublasCreate_v2(void **handle)
{
    return cudaMalloc(handle, 4 << 20) != cudaSuccess;
}

int cublasSgemm_v2(void)
{
    void *workspace;
    return cudaMalloc(&workspace, 2 << 20) != cudaSuccess;
}
