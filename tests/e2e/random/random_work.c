/* Random program: kernels, events, streams and waits. They make and end no memory of the program's; a refusal of them
 * is on record. */
#include "random.h"

static cudaLibrary_t random_library(void)
{
    const int index = find(LIBRARY);
    return index < 0 ? NULL : (cudaLibrary_t)objects[index].pointer;
}

static CUkernel kernel_of(cudaLibrary_t library)
{
    CUkernel kernel = NULL;
    if (library)
        LOG(cuLibraryGetKernel(&kernel, (CUlibrary)(void *)library, "kernel"));
    return kernel;
}

static void launch_by_driver(CUkernel kernel)
{
    const CUfunction function = (CUfunction)(void *)kernel;
    const CUlaunchConfig configuration = {1, 1, 1, 32, 1, 1, 0, created_stream(), NULL, 0};
    switch (pick(3)) {
    case 0:
        LOG(cuLaunchKernel(function, 2, 1, 1, 32, 1, 1, 0, random_stream(), NULL, NULL));
        break;
    case 1:
        LOG(cuLaunchKernelEx(&configuration, function, NULL, NULL));
        break;
    default:
        LOG(cuLaunchCooperativeKernel(function, 1, 1, 1, 32, 1, 1, 0, random_stream(), NULL));
    }
}

static void launch_by_runtime(cudaLibrary_t library)
{
    cudaKernel_t kernel = NULL;
    const dim3 grid = {2, 1, 1}, block = {32, 1, 1};
    const cudaLaunchConfig_t configuration = {
        .gridDim = grid, .blockDim = block, .stream = created_stream()};
    struct cudaFuncAttributes attributes;
    if (LOG(cudaLibraryGetKernel(&kernel, library, "kernel")) != 0)
        return;
    switch (pick(4)) {
    case 0:
        LOG(cudaLaunchKernel((const void *)kernel, grid, block, NULL, 0, random_stream()));
        break;
    case 1:
        LOG(cudaLaunchKernelExC(&configuration, (const void *)kernel, NULL));
        break;
    case 2:
        LOG(cudaFuncGetAttributes(&attributes, (const void *)kernel));
        LOG(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                 4096));
        break;
    default:
        LOG(cudaLaunchCooperativeKernel((const void *)kernel, grid, block, NULL, 0,
                                        random_stream()));
    }
}

static void ask_of_occupancy(CUfunction function)
{
    const CUlaunchConfig config = {.gridDimX = 8,
                                   .gridDimY = 1,
                                   .gridDimZ = 1,
                                   .blockDimX = 32,
                                   .blockDimY = 1,
                                   .blockDimZ = 1};
    size_t bytes = 0;
    int number = 0, other = 0;
    LOG(cuOccupancyMaxActiveBlocksPerMultiprocessor(&number, function, 32, 0));
    LOG(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&number, function, 32, 0, 0));
    LOG(cuOccupancyMaxPotentialBlockSize(&number, &other, function, NULL, 0, 0));
    LOG(cuOccupancyMaxPotentialBlockSizeWithFlags(&number, &other, function, NULL, 0, 0, 0));
    LOG(cuOccupancyAvailableDynamicSMemPerBlock(&bytes, function, 1, 32));
    LOG(cuOccupancyMaxPotentialClusterSize(&number, function, &config));
    LOG(cuOccupancyMaxActiveClusters(&number, function, &config));
}

static void ask_of_kernel(CUkernel kernel)
{
    CUfunction function = NULL;
    int value = 0;
    switch (pick(3)) {
    case 0:
        if (LOG(cuKernelGetFunction(&function, kernel)) != 0)
            return;
        LOG(cuFuncLoad(function));
        LOG(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
        LOG(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 4096));
        ask_of_occupancy(function);
        break;
    case 1:
        LOG(cuKernelGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel, current_device()));
        LOG(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 4096, kernel,
                                 current_device()));
        break;
    default:
        LOG(cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_L1, current_device()));
    }
}

static void use_module(void)
{
    const int index = find(MODULE);
    CUfunction function = NULL;
    if (index >= 0 && LOG(cuModuleGetFunction(&function, objects[index].pointer, "kernel")) == 0)
        LOG(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, random_stream(), NULL, NULL));
}

static void make_event(void)
{
    cudaEvent_t event = NULL;
    const unsigned how = pick(3);
    int result = how == 0   ? LOG(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING))
                 : how == 1 ? LOG(cudaEventCreate(&event))
                            : LOG(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    if (result != 0)
        return;
    LOG(cuEventQuery(event));
    if (pick(2))
        LOG(cuEventSynchronize(event));
    else
        LOG(cudaEventSynchronize(event));
    LOG(cuEventDestroy(event));
}

static void make_stream(void)
{
    cudaStream_t stream = NULL;
    const unsigned how = pick(3);
    int result = how == 0   ? LOG(cudaStreamCreate(&stream))
                 : how == 1 ? LOG(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking))
                            : LOG(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -1));
    if (result == 0)
        LOG(cudaStreamDestroy(stream));
}

static void wait_for_work(void)
{
    switch (pick(6)) {
    case 0:
        WAIT(cuCtxSynchronize());
        break;
    case 1:
        WAIT(cuCtxSynchronize_v2(NULL));
        break;
    case 2:
        WAIT(cudaDeviceSynchronize());
        break;
    case 3:
        WAIT(cuStreamQuery(random_stream()));
        break;
    case 4:
        WAIT(cuStreamSynchronize(random_stream()));
        break;
    default:
        WAIT(cudaStreamSynchronize(random_stream()));
    }
}

static void upload_graph(void)
{
    const int index = find(EXECUTABLE);
    if (index < 0)
        return;
    if (pick(2))
        LOG(cuGraphUpload(objects[index].pointer, random_stream()));
    else
        LOG(cudaGraphUpload(objects[index].pointer, random_stream()));
}

/* Rights alone, given and taken back; a pool's stay. */
static void give_access(void)
{
    const int index = find(POOL), here = current_device();
    const CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, here},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUcontext peer = NULL;
    if (index >= 0 && pick(2)) {
        LOG(cuMemPoolSetAccess(objects[index].pointer, &access, 1));
    } else if (pick(2)) {
        const int other = (here + 1) % device_count;
        if (LOG(cudaDeviceEnablePeerAccess(other, 0)) == 0)
            LOG(cudaDeviceDisablePeerAccess(other));
    } else {
        LOG(cudaSetDevice((here + 1) % device_count));
        LOG(cuCtxGetCurrent(&peer));
        LOG(cudaSetDevice(here));
        if (LOG(cuCtxEnablePeerAccess(peer, 0)) == 0)
            LOG(cuCtxDisablePeerAccess(peer));
    }
}

void STEP(work)(void)
{
    const cudaLibrary_t library = pick(2) ? random_library() : NULL;
    const CUkernel kernel = kernel_of(library);
    if (kernel && pick(3) == 0)
        ask_of_kernel(kernel);
    else if (kernel && pick(2))
        launch_by_driver(kernel);
    else if (kernel)
        launch_by_runtime(library);
    else if (pick(2))
        wait_for_work();
    else if (pick(4) == 0)
        give_access();
    else if (pick(2))
        upload_graph();
    else if (pick(2))
        make_event();
    else if (pick(2))
        make_stream();
    else
        use_module();
}
