/*
 * Queries about kernels and device variables: handles, attributes, occupancy, addresses and sizes.
 */
#include "runtime.h"

/* Enters and finds the kernel of a host function; records a failure. */
static cudaError_t enter_and_find(const void *function, CUkernel *kernel)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    return gpusim_fail(gpusim_find_kernel(function, kernel));
}

cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *function)
{
    if (!kernel)
        return gpusim_fail(cudaErrorInvalidValue);
    CUkernel found = NULL;
    cudaError_t error = enter_and_find(function, &found);
    if (error != cudaSuccess)
        return error;
    gpusim_remember_kernel(found);
    *kernel = found;
    return cudaSuccess;
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *symbol)
{
    CUkernel kernel = NULL;
    cudaError_t error = enter_and_find(symbol, &kernel);
    if (error != cudaSuccess)
        return error;
    return gpusim_finish(DRIVER(cuKernelGetFunction, 12000)(function, kernel));
}

cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *function)
{
    if (!attributes)
        return gpusim_fail(cudaErrorInvalidValue);
    static const struct {
        CUfunction_attribute attribute;
        size_t offset;
    } fields[] = {
#define FIELD(field, name) {CU_FUNC_ATTRIBUTE_##name, offsetof(struct cudaFuncAttributes, field)}
        FIELD(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
        FIELD(numRegs, NUM_REGS),
        FIELD(ptxVersion, PTX_VERSION),
        FIELD(binaryVersion, BINARY_VERSION),
        FIELD(cacheModeCA, CACHE_MODE_CA),
        FIELD(maxDynamicSharedSizeBytes, MAX_DYNAMIC_SHARED_SIZE_BYTES),
        FIELD(preferredShmemCarveout, PREFERRED_SHARED_MEMORY_CARVEOUT),
        FIELD(clusterDimMustBeSet, CLUSTER_SIZE_MUST_BE_SET),
        FIELD(requiredClusterWidth, REQUIRED_CLUSTER_WIDTH),
        FIELD(requiredClusterHeight, REQUIRED_CLUSTER_HEIGHT),
        FIELD(requiredClusterDepth, REQUIRED_CLUSTER_DEPTH),
        FIELD(clusterSchedulingPolicyPreference, CLUSTER_SCHEDULING_POLICY_PREFERENCE),
        FIELD(nonPortableClusterSizeAllowed, NON_PORTABLE_CLUSTER_SIZE_ALLOWED),
#undef FIELD
    };
    CUkernel kernel = NULL;
    cudaError_t error = enter_and_find(function, &kernel);
    if (error != cudaSuccess)
        return error;
    *attributes = (struct cudaFuncAttributes){0};
    int device = gpusim_current_device();
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        int *field = (int *)(void *)((char *)attributes + fields[i].offset);
        CUresult result =
            DRIVER(cuKernelGetAttribute, 12000)(field, fields[i].attribute, kernel, device);
        if (result != CUDA_SUCCESS)
            return gpusim_finish(result);
    }
    static const CUfunction_attribute sizes[] = {CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
                                                 CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
                                                 CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES};
    size_t *size_fields[] = {&attributes->sharedSizeBytes, &attributes->constSizeBytes,
                             &attributes->localSizeBytes};
    for (size_t i = 0; i < 3; i++) {
        int value = 0;
        DRIVER(cuKernelGetAttribute, 12000)(&value, sizes[i], kernel, device);
        *size_fields[i] = (size_t)value;
    }
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
    CUkernel kernel = NULL;
    cudaError_t error = enter_and_find(function, &kernel);
    if (error != cudaSuccess)
        return error;
    return gpusim_finish(DRIVER(cuKernelSetAttribute, 12000)((CUfunction_attribute)attribute, value,
                                                             kernel, gpusim_current_device()));
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attribute,
                                            int value, int device)
{
    return CALL(cuKernelSetAttribute, 12000, (CUfunction_attribute)attribute, value, kernel,
                device);
}

cudaError_t cudaFuncSetCacheConfig(const void *function, enum cudaFuncCache config)
{
    CUkernel kernel = NULL;
    cudaError_t error = enter_and_find(function, &kernel);
    if (error != cudaSuccess)
        return error;
    return gpusim_finish(DRIVER(cuKernelSetCacheConfig, 12000)(kernel, (CUfunc_cache)config,
                                                               gpusim_current_device()));
}

cudaError_t cudaFuncGetName(const char **name, const void *function)
{
    CUkernel kernel = NULL;
    cudaError_t error = enter_and_find(function, &kernel);
    return error == cudaSuccess ? gpusim_finish(DRIVER(cuKernelGetName, 12030)(name, kernel))
                                : error;
}

cudaError_t cudaFuncGetParamInfo(const void *function, size_t index, size_t *offset, size_t *bytes)
{
    CUkernel kernel = NULL;
    cudaError_t error = enter_and_find(function, &kernel);
    if (error != cudaSuccess)
        return error;
    return gpusim_finish(DRIVER(cuKernelGetParamInfo, 12040)(kernel, index, offset, bytes));
}

/* The occupancy functions of the driver take a kernel in place of a function. */
static CUfunction as_function(CUkernel kernel)
{
    return (CUfunction)(void *)kernel;
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, const void *function, int block_size, size_t shared_bytes, unsigned int flags)
{
    CUkernel kernel = NULL;
    cudaError_t error = enter_and_find(function, &kernel);
    if (error != cudaSuccess)
        return error;
    return gpusim_finish(DRIVER(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, 7000)(
        blocks, as_function(kernel), block_size, shared_bytes, flags));
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function,
                                                          int block_size, size_t shared_bytes)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size,
                                                                  shared_bytes, 0);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function,
                                                      int blocks, int block_size)
{
    CUkernel kernel = NULL;
    cudaError_t error = enter_and_find(function, &kernel);
    if (error != cudaSuccess)
        return error;
    return gpusim_finish(DRIVER(cuOccupancyAvailableDynamicSMemPerBlock,
                                10020)(bytes, as_function(kernel), blocks, block_size));
}

cudaError_t cudaGetSymbolAddress(void **address, const void *symbol)
{
    if (!address)
        return gpusim_fail(cudaErrorInvalidValue);
    if (!gpusim_enter())
        return gpusim_refusal();
    size_t bytes = 0;
    return gpusim_fail(gpusim_find_variable(symbol, gpusim_out(address), &bytes));
}

cudaError_t cudaGetSymbolSize(size_t *bytes, const void *symbol)
{
    if (!bytes)
        return gpusim_fail(cudaErrorInvalidValue);
    if (!gpusim_enter())
        return gpusim_refusal();
    CUdeviceptr address = 0;
    return gpusim_fail(gpusim_find_variable(symbol, &address, bytes));
}
