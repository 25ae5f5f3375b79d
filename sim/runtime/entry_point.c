/*
 * cudaGetDriverEntryPoint: hands out driver functions through the driver's own lookup.
 *
 * Compiled twice, for the legacy and for the per-thread default stream (runtime.h): without a flag,
 * a program built for the per-thread stream gets that form.
 */
#include "runtime.h"

static cudaError_t get_entry_point(const char *name, void **function, unsigned version,
                                   unsigned long long flags,
                                   enum cudaDriverEntryPointQueryResult *status)
{
    if (!name || !function || flags > cudaEnablePerThreadDefaultStream)
        return gpusim_fail(cudaErrorInvalidValue);
    if (!gpusim_enter_without_context())
        return gpusim_refusal();
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
    if (flags == cudaEnableDefault)
        flags = cudaEnablePerThreadDefaultStream;
#endif
    *function = NULL;
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    CUresult result = gpusim_get_proc_address(name, function, (int)version, flags, &found);
    if (!status)
        return gpusim_finish(result);
    *status = (enum cudaDriverEntryPointQueryResult)found;
    return result == CUDA_ERROR_NOT_FOUND ? cudaSuccess : gpusim_finish(result);
}

cudaError_t cudaGetDriverEntryPoint(const char *name, void **function, unsigned long long flags,
                                    enum cudaDriverEntryPointQueryResult *status)
{
    return get_entry_point(name, function, GPUSIM_CUDART_VERSION, flags, status);
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function,
                                             unsigned int version, unsigned long long flags,
                                             enum cudaDriverEntryPointQueryResult *status)
{
    return get_entry_point(name, function, version, flags, status);
}
