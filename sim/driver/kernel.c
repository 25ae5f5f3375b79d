/*
 * Kernels and functions: any name is found, a launch checks its arguments and runs nothing.
 */
#include "module.h"
#include "profile.h"
#include "stream.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const int most_threads = 1024;

/* Of GPUMEM_SIM_CODE, what each kernel takes. */
static const uint64_t code_of_kernel = 1 << 20;

static struct gpusim_kernel *new_kernel(struct gpusim_library *library, const char *name)
{
    struct gpusim_kernel *kernel = gpusim_object_new(sizeof(*kernel), GPUSIM_TYPE_KERNEL, NULL);
    char *copy = strdup(name);

    if (!kernel || !copy) {
        if (kernel)
            gpusim_object_delete(kernel);
        free(copy);
        return NULL;
    }
    kernel->name = copy;
    kernel->library = library;
    kernel->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = most_threads;
    kernel->attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] = 32;
    kernel->attributes[CU_FUNC_ATTRIBUTE_PTX_VERSION] = gpusim_profile.kernels;
    kernel->attributes[CU_FUNC_ATTRIBUTE_BINARY_VERSION] = gpusim_profile.kernels;
    kernel->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 49152;
    kernel->attributes[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1;
    kernel->next = library->kernels;
    library->kernels = kernel;
    library->kernel_count++;
    return kernel;
}

static CUresult find_kernel(struct gpusim_library *library, const char *name, uint64_t *handle)
{
    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!*name)
        return CUDA_ERROR_NOT_FOUND;

    struct gpusim_kernel *kernel = library->kernels;
    while (kernel && strcmp(kernel->name, name) != 0)
        kernel = kernel->next;
    if (!kernel)
        kernel = new_kernel(library, name);
    if (!kernel)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *handle = kernel->base.handle;
    return CUDA_SUCCESS;
}

void gpusim_kernel_declare(struct gpusim_library *library, const char *name)
{
    uint64_t found;
    (void)find_kernel(library, name, &found);
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary handle, const char *name)
{
    GPUSIM_ENTER();
    uint64_t found;

    if (!kernel)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(find_kernel(GPUSIM_FIND(handle, GPUSIM_TYPE_LIBRARY), name, &found));
    *kernel = (CUkernel)(uintptr_t)found;
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule handle, const char *name)
{
    GPUSIM_ENTER();
    struct gpusim_module *module = GPUSIM_FIND(handle, GPUSIM_TYPE_MODULE);
    uint64_t found;

    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(find_kernel(module ? module->library : NULL, name, &found));
    *function = (CUfunction)(uintptr_t)found;
    return CUDA_SUCCESS;
}

/* The handles of a library's kernels, as many as fit. */
static CUresult enumerate(struct gpusim_library *library, void *handles, unsigned int room)
{
    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!handles)
        return CUDA_ERROR_INVALID_VALUE;
    struct gpusim_kernel *kernel = library->kernels;
    for (unsigned int i = 0; i < room && kernel; i++, kernel = kernel->next)
        memcpy((char *)handles + i * sizeof(CUkernel), &kernel->base.handle, sizeof(CUkernel));
    return CUDA_SUCCESS;
}

static CUresult count_kernels(const struct gpusim_library *library, unsigned int *count)
{
    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = library->kernel_count;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernelCount(unsigned int *count, CUlibrary handle)
{
    GPUSIM_ENTER();
    return count_kernels(GPUSIM_FIND(handle, GPUSIM_TYPE_LIBRARY), count);
}

CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int room, CUlibrary handle)
{
    GPUSIM_ENTER();
    return enumerate(GPUSIM_FIND(handle, GPUSIM_TYPE_LIBRARY), kernels, room);
}

CUresult cuModuleGetFunctionCount(unsigned int *count, CUmodule handle)
{
    GPUSIM_ENTER();
    struct gpusim_module *module = GPUSIM_FIND(handle, GPUSIM_TYPE_MODULE);

    return count_kernels(module ? module->library : NULL, count);
}

CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int room, CUmodule handle)
{
    GPUSIM_ENTER();
    struct gpusim_module *module = GPUSIM_FIND(handle, GPUSIM_TYPE_MODULE);

    return enumerate(module ? module->library : NULL, functions, room);
}

/* ---- what a kernel knows --------------------------------------------------------------------- */

CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel)
{
    GPUSIM_ENTER_CONTEXT(context);
    (void)context;
    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    if (!GPUSIM_FIND(kernel, GPUSIM_TYPE_KERNEL))
        return CUDA_ERROR_INVALID_HANDLE;
    *function = (CUfunction)(void *)kernel;
    return CUDA_SUCCESS;
}

CUresult cuKernelGetLibrary(CUlibrary *library, CUkernel handle)
{
    GPUSIM_ENTER();
    struct gpusim_kernel *kernel = GPUSIM_FIND(handle, GPUSIM_TYPE_KERNEL);

    if (!library)
        return CUDA_ERROR_INVALID_VALUE;
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    *library = GPUSIM_HANDLE(CUlibrary, kernel->library);
    return CUDA_SUCCESS;
}

static CUresult get_attribute(int *value, CUfunction_attribute attribute, const void *handle)
{
    GPUSIM_ENTER();
    struct gpusim_kernel *kernel = GPUSIM_FIND(handle, GPUSIM_TYPE_KERNEL);

    if (!value || (int)attribute < 0 || attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    *value = kernel->attributes[attribute];
    return CUDA_SUCCESS;
}

static CUresult set_attribute(CUfunction_attribute attribute, int value, const void *handle)
{
    GPUSIM_ENTER();
    struct gpusim_kernel *kernel = GPUSIM_FIND(handle, GPUSIM_TYPE_KERNEL);

    if (attribute < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
        attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    kernel->attributes[attribute] = value;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction function)
{
    return get_attribute(value, attribute, function);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    return set_attribute(attribute, value, function);
}

CUresult cuKernelGetAttribute(int *value, CUfunction_attribute attribute, CUkernel kernel,
                              CUdevice device)
{
    (void)device;
    return get_attribute(value, attribute, kernel);
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                              CUdevice device)
{
    (void)device;
    return set_attribute(attribute, value, kernel);
}

static CUresult check_handle(const void *handle)
{
    GPUSIM_ENTER();
    return GPUSIM_FIND(handle, GPUSIM_TYPE_KERNEL) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
    (void)config;
    return check_handle(function);
}

CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config)
{
    (void)config;
    return check_handle(function);
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
    (void)config;
    (void)device;
    return check_handle(kernel);
}

CUresult cuFuncLoad(CUfunction function)
{
    return check_handle(function);
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState *state, CUfunction function)
{
    if (!state)
        return CUDA_ERROR_INVALID_VALUE;
    *state = CU_FUNCTION_LOADING_STATE_LOADED;
    return check_handle(function);
}

static CUresult get_name(const char **name, const void *handle)
{
    GPUSIM_ENTER();
    struct gpusim_kernel *kernel = GPUSIM_FIND(handle, GPUSIM_TYPE_KERNEL);

    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    *name = kernel->name;
    return CUDA_SUCCESS;
}

CUresult cuFuncGetName(const char **name, CUfunction function)
{
    return get_name(name, function);
}

CUresult cuKernelGetName(const char **name, CUkernel kernel)
{
    return get_name(name, kernel);
}

/* ---- launches -------------------------------------------------------------------------------- */

CUresult gpusim_check_kernel(const CUDA_KERNEL_NODE_PARAMS_v3 *launch)
{
    const void *handle = launch->func ? (const void *)launch->func : (const void *)launch->kern;
    struct gpusim_kernel *kernel = GPUSIM_FIND(handle, GPUSIM_TYPE_KERNEL);
    uint64_t threads = (uint64_t)launch->blockDimX * launch->blockDimY * launch->blockDimZ;

    if (!kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    if (launch->gridDimX == 0 || launch->gridDimY == 0 || launch->gridDimZ == 0 || threads == 0 ||
        launch->gridDimX > INT_MAX || launch->gridDimY > 65535 || launch->gridDimZ > 65535 ||
        launch->blockDimX > 1024 || launch->blockDimY > 1024 || launch->blockDimZ > 64 ||
        threads > (uint64_t)most_threads)
        return CUDA_ERROR_INVALID_VALUE;
    if (launch->sharedMemBytes >
        (unsigned int)kernel->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES])
        return CUDA_ERROR_INVALID_VALUE;
    if (launch->kernelParams && launch->extra)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* The driver loads the code of a kernel when it is first launched (CUDA_MODULE_LOADING=LAZY, the default since CUDA 12.2), and
 * says until then that the memory is free. */
static void load_code(const void *handle, struct gpusim_device *device)
{
    struct gpusim_kernel *kernel = GPUSIM_FIND(handle, GPUSIM_TYPE_KERNEL);
    uint64_t bit = UINT64_C(1) << device->ordinal;
    if (!(kernel->loaded_on & bit))
        device->code -= device->code < code_of_kernel ? device->code : code_of_kernel;
    kernel->loaded_on |= bit;
}

static CUresult launch_kernel(const CUDA_KERNEL_NODE_PARAMS_v3 *parameters, CUstream stream)
{
    const struct gpusim_operation operation = {.type = CU_GRAPH_NODE_TYPE_KERNEL,
                                               .kernel = *parameters};

    GPUSIM_ENTER_CONTEXT(context);
    GPUSIM_TRY(gpusim_check_kernel(parameters));
    if (!context->has_launched)
        GPUSIM_TRY(gpusim_object_take(&context->base, context->device, GPUSIM_TAKES_LAUNCH));
    context->has_launched = true;
    load_code(parameters->func, context->device);
    return gpusim_submit(stream, &operation);
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void **parameters, void **extra)
{
    const CUDA_KERNEL_NODE_PARAMS_v3 kernel = {
        .func = function,
        .gridDimX = grid_x,
        .gridDimY = grid_y,
        .gridDimZ = grid_z,
        .blockDimX = block_x,
        .blockDimY = block_y,
        .blockDimZ = block_z,
        .sharedMemBytes = shared_bytes,
        .kernelParams = parameters,
        .extra = extra,
    };
    return launch_kernel(&kernel, stream);
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **parameters,
                          void **extra)
{
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    return cuLaunchKernel(function, config->gridDimX, config->gridDimY, config->gridDimZ,
                          config->blockDimX, config->blockDimY, config->blockDimZ,
                          config->sharedMemBytes, config->hStream, parameters, extra);
}

CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function, void **parameters,
                               void **extra)
{
    if (!config)
        return CUDA_ERROR_INVALID_VALUE;
    CUlaunchConfig own = *config; /* the stream is inside, so no generated form can change it */
    if (!own.hStream)
        own.hStream = CU_STREAM_PER_THREAD;
    return cuLaunchKernelEx(&own, function, parameters, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                   void **parameters)
{
    return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes,
                          stream, parameters, NULL);
}

/* ---- occupancy: plausible numbers of a kernel of 32 registers -------------------------------- */

/* A question about a function loads its code where that is loaded late. */
static CUresult load_kernel(const void *handle)
{
    GPUSIM_TRY(check_handle(handle));
    GPUSIM_ENTER();
    return gpusim_take_begin();
}

static int blocks_per_multiprocessor(int block_size)
{
    int blocks = gpusim_profile.threads_per_sm / block_size;

    return blocks > gpusim_profile.blocks_per_sm ? gpusim_profile.blocks_per_sm : blocks;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction function,
                                                              int block_size, size_t shared_bytes,
                                                              unsigned int flags)
{
    (void)shared_bytes;
    GPUSIM_TRY(gpusim_ready());
    if (!blocks || block_size <= 0 || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(load_kernel(function));
    *blocks = block_size > most_threads ? 0 : blocks_per_multiprocessor(block_size);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction function,
                                                     int block_size, size_t shared_bytes)
{
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, block_size,
                                                                shared_bytes, 0);
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid_size, int *block_size,
                                                   CUfunction function,
                                                   CUoccupancyB2DSize shared_of_block,
                                                   size_t shared_bytes, int limit,
                                                   unsigned int flags)
{
    (void)shared_of_block;
    (void)shared_bytes;
    GPUSIM_TRY(gpusim_ready());
    if (!grid_size || !block_size || flags > CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(load_kernel(function));
    *block_size = limit > 0 && limit < most_threads ? limit : most_threads;
    *grid_size = gpusim_profile.sms * blocks_per_multiprocessor(*block_size);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *grid_size, int *block_size, CUfunction function,
                                          CUoccupancyB2DSize shared_of_block, size_t shared_bytes,
                                          int limit)
{
    return cuOccupancyMaxPotentialBlockSizeWithFlags(grid_size, block_size, function,
                                                     shared_of_block, shared_bytes, limit, 0);
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, CUfunction function, int blocks,
                                                 int block_size)
{
    GPUSIM_TRY(gpusim_ready());
    if (!bytes || blocks <= 0 || block_size <= 0 || block_size > most_threads)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(load_kernel(function));
    *bytes = blocks > blocks_per_multiprocessor(block_size)
                 ? 0
                 : (unsigned int)(gpusim_profile.shared_per_sm - 1024) / (unsigned int)blocks;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialClusterSize(int *size, CUfunction function,
                                            const CUlaunchConfig *config)
{
    GPUSIM_TRY(gpusim_ready());
    if (!size || !config)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(load_kernel(function));
    *size = 8;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveClusters(int *count, CUfunction function, const CUlaunchConfig *config)
{
    GPUSIM_TRY(gpusim_ready());
    if (!count || !config)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(load_kernel(function));
    *count = gpusim_profile.sms / 8;
    return CUDA_SUCCESS;
}
