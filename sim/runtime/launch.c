/*
 * Kernel launches. They reach the driver like real ones; the simulated driver runs nothing.
 *
 * Compiled twice, for the legacy and for the per-thread default stream (runtime.h).
 */
#include "runtime.h"

/* nvcc's launch stubs call these two by their exact names; no public C header declares them. */
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define __cudaLaunchKernel __cudaLaunchKernel_ptsz
#endif
cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared_bytes, cudaStream_t stream);

/* A CUkernel may be launched wherever the driver asks for a CUfunction. */
static CUfunction as_function(CUkernel kernel)
{
    return (CUfunction)(void *)kernel;
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments,
                               size_t shared_bytes, cudaStream_t stream)
{
    if (!kernel)
        return gpusim_fail(cudaErrorInvalidDeviceFunction);
    return CALL(cuLaunchKernel, 4000, as_function(kernel), grid.x, grid.y, grid.z, block.x, block.y,
                block.z, (unsigned)shared_bytes, stream, arguments, NULL);
}

cudaError_t cudaLaunchKernel(const void *function, dim3 grid, dim3 block, void **arguments,
                             size_t shared_bytes, cudaStream_t stream)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    CUkernel kernel = NULL;
    cudaError_t error = gpusim_find_kernel(function, &kernel);
    if (error != cudaSuccess)
        return gpusim_fail(error);
    return __cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void *function, dim3 grid, dim3 block,
                                        void **arguments, size_t shared_bytes, cudaStream_t stream)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    CUkernel kernel = NULL;
    cudaError_t error = gpusim_find_kernel(function, &kernel);
    if (error != cudaSuccess)
        return gpusim_fail(error);
    return gpusim_finish(DRIVER(cuLaunchCooperativeKernel,
                                9000)(as_function(kernel), grid.x, grid.y, grid.z, block.x, block.y,
                                      block.z, (unsigned)shared_bytes, stream, arguments));
}

_Static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute), "same layout");

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config, const void *function,
                                void **arguments)
{
    if (!config)
        return gpusim_fail(cudaErrorInvalidValue);
    if (!gpusim_enter())
        return gpusim_refusal();
    CUkernel kernel = NULL;
    cudaError_t error = gpusim_find_kernel(function, &kernel);
    if (error != cudaSuccess)
        return gpusim_fail(error);
    CUlaunchConfig driver_config = {.gridDimX = config->gridDim.x,
                                    .gridDimY = config->gridDim.y,
                                    .gridDimZ = config->gridDim.z,
                                    .blockDimX = config->blockDim.x,
                                    .blockDimY = config->blockDim.y,
                                    .blockDimZ = config->blockDim.z,
                                    .sharedMemBytes = (unsigned)config->dynamicSmemBytes,
                                    .hStream = config->stream,
                                    .attrs = (CUlaunchAttribute *)(void *)config->attrs,
                                    .numAttrs = config->numAttrs};
    return gpusim_finish(
        DRIVER(cuLaunchKernelEx, 11060)(&driver_config, as_function(kernel), arguments, NULL));
}
