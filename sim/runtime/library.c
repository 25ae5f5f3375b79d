/*
 * Libraries that the program loads itself. Their kernels can be launched through their handles, so
 * the runtime remembers each handle.
 */
#include "runtime.h"

cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
                                enum cudaJitOption *jit_options, void **jit_values,
                                unsigned int jit_count, enum cudaLibraryOption *options,
                                void **values, unsigned int count)
{
    return CALL_WITHOUT_CONTEXT(cuLibraryLoadData, 12000, library, code,
                                (CUjit_option *)(void *)jit_options, jit_values, jit_count,
                                (CUlibraryOption *)(void *)options, values, count);
}

cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *path,
                                    enum cudaJitOption *jit_options, void **jit_values,
                                    unsigned int jit_count, enum cudaLibraryOption *options,
                                    void **values, unsigned int count)
{
    return CALL_WITHOUT_CONTEXT(cuLibraryLoadFromFile, 12000, library, path,
                                (CUjit_option *)(void *)jit_options, jit_values, jit_count,
                                (CUlibraryOption *)(void *)options, values, count);
}

cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
    return CALL_WITHOUT_CONTEXT(cuLibraryUnload, 12000, library);
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
    cudaError_t error = CALL(cuLibraryGetKernel, 12000, kernel, library, name);
    if (error == cudaSuccess)
        gpusim_remember_kernel(*kernel);
    return error;
}

cudaError_t cudaLibraryGetGlobal(void **pointer, size_t *bytes, cudaLibrary_t library,
                                 const char *name)
{
    return CALL(cuLibraryGetGlobal, 12000, gpusim_out(pointer), bytes, library, name);
}

cudaError_t cudaLibraryGetManaged(void **pointer, size_t *bytes, cudaLibrary_t library,
                                  const char *name)
{
    return CALL(cuLibraryGetManaged, 12000, gpusim_out(pointer), bytes, library, name);
}

cudaError_t cudaLibraryGetUnifiedFunction(void **function, cudaLibrary_t library, const char *name)
{
    return CALL(cuLibraryGetUnifiedFunction, 12000, function, library, name);
}

cudaError_t cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t library)
{
    return CALL(cuLibraryGetKernelCount, 12040, count, library);
}

cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned int count,
                                        cudaLibrary_t library)
{
    unsigned available = 0;
    cudaError_t error = CALL(cuLibraryGetKernelCount, 12040, &available, library);
    if (error == cudaSuccess)
        error = CALL(cuLibraryEnumerateKernels, 12040, kernels, count, library);
    for (unsigned i = 0; error == cudaSuccess && i < count && i < available; i++)
        gpusim_remember_kernel(kernels[i]);
    return error;
}
