/*
 * cudaGetDeviceProperties, in the layouts of runtime 13 and of runtime 12.
 *
 * Both structures are filled from one list of driver attributes: CUDA 13 kept the names of the
 * fields and removed nine. Runtime 12 exports its layout as cudaGetDeviceProperties_v2 and, under
 * the plain name, the shorter layout of runtime 11, which is the first part of it.
 */
#include "abi_12.h"
#include "runtime.h"
#include <string.h>

struct property {
    size_t offset;
    size_t bytes; /* sizeof(int) or sizeof(size_t) */
    CUdevice_attribute attribute;
};

#if GPUSIM_CUDART_MAJOR == 12
#define PROPERTIES gpusim_device_properties_12
#else
#define PROPERTIES cudaDeviceProp
#endif
#define BYTES_OF(field) sizeof(((struct PROPERTIES *)0)->field)
#define PROPERTY(field, name)                                                                      \
    {                                                                                              \
        offsetof(struct PROPERTIES, field), BYTES_OF(field), CU_DEVICE_ATTRIBUTE_##name            \
    }

static const struct property properties[] = {
    PROPERTY(sharedMemPerBlock, MAX_SHARED_MEMORY_PER_BLOCK),
    PROPERTY(regsPerBlock, MAX_REGISTERS_PER_BLOCK),
    PROPERTY(warpSize, WARP_SIZE),
    PROPERTY(memPitch, MAX_PITCH),
    PROPERTY(maxThreadsPerBlock, MAX_THREADS_PER_BLOCK),
    PROPERTY(maxThreadsDim[0], MAX_BLOCK_DIM_X),
    PROPERTY(maxThreadsDim[1], MAX_BLOCK_DIM_Y),
    PROPERTY(maxThreadsDim[2], MAX_BLOCK_DIM_Z),
    PROPERTY(maxGridSize[0], MAX_GRID_DIM_X),
    PROPERTY(maxGridSize[1], MAX_GRID_DIM_Y),
    PROPERTY(maxGridSize[2], MAX_GRID_DIM_Z),
    PROPERTY(totalConstMem, TOTAL_CONSTANT_MEMORY),
    PROPERTY(major, COMPUTE_CAPABILITY_MAJOR),
    PROPERTY(minor, COMPUTE_CAPABILITY_MINOR),
    PROPERTY(textureAlignment, TEXTURE_ALIGNMENT),
    PROPERTY(texturePitchAlignment, TEXTURE_PITCH_ALIGNMENT),
    PROPERTY(multiProcessorCount, MULTIPROCESSOR_COUNT),
    PROPERTY(integrated, INTEGRATED),
    PROPERTY(canMapHostMemory, CAN_MAP_HOST_MEMORY),
    PROPERTY(maxTexture1D, MAXIMUM_TEXTURE1D_WIDTH),
    PROPERTY(maxTexture1DMipmap, MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH),
    PROPERTY(maxTexture2D[0], MAXIMUM_TEXTURE2D_WIDTH),
    PROPERTY(maxTexture2D[1], MAXIMUM_TEXTURE2D_HEIGHT),
    PROPERTY(maxTexture2DMipmap[0], MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH),
    PROPERTY(maxTexture2DMipmap[1], MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT),
    PROPERTY(maxTexture2DLinear[0], MAXIMUM_TEXTURE2D_LINEAR_WIDTH),
    PROPERTY(maxTexture2DLinear[1], MAXIMUM_TEXTURE2D_LINEAR_HEIGHT),
    PROPERTY(maxTexture2DLinear[2], MAXIMUM_TEXTURE2D_LINEAR_PITCH),
    PROPERTY(maxTexture2DGather[0], MAXIMUM_TEXTURE2D_GATHER_WIDTH),
    PROPERTY(maxTexture2DGather[1], MAXIMUM_TEXTURE2D_GATHER_HEIGHT),
    PROPERTY(maxTexture3D[0], MAXIMUM_TEXTURE3D_WIDTH),
    PROPERTY(maxTexture3D[1], MAXIMUM_TEXTURE3D_HEIGHT),
    PROPERTY(maxTexture3D[2], MAXIMUM_TEXTURE3D_DEPTH),
    PROPERTY(maxTexture3DAlt[0], MAXIMUM_TEXTURE3D_WIDTH_ALTERNATE),
    PROPERTY(maxTexture3DAlt[1], MAXIMUM_TEXTURE3D_HEIGHT_ALTERNATE),
    PROPERTY(maxTexture3DAlt[2], MAXIMUM_TEXTURE3D_DEPTH_ALTERNATE),
    PROPERTY(maxTextureCubemap, MAXIMUM_TEXTURECUBEMAP_WIDTH),
    PROPERTY(maxTexture1DLayered[0], MAXIMUM_TEXTURE1D_LAYERED_WIDTH),
    PROPERTY(maxTexture1DLayered[1], MAXIMUM_TEXTURE1D_LAYERED_LAYERS),
    PROPERTY(maxTexture2DLayered[0], MAXIMUM_TEXTURE2D_LAYERED_WIDTH),
    PROPERTY(maxTexture2DLayered[1], MAXIMUM_TEXTURE2D_LAYERED_HEIGHT),
    PROPERTY(maxTexture2DLayered[2], MAXIMUM_TEXTURE2D_LAYERED_LAYERS),
    PROPERTY(maxTextureCubemapLayered[0], MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH),
    PROPERTY(maxTextureCubemapLayered[1], MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS),
    PROPERTY(maxSurface1D, MAXIMUM_SURFACE1D_WIDTH),
    PROPERTY(maxSurface2D[0], MAXIMUM_SURFACE2D_WIDTH),
    PROPERTY(maxSurface2D[1], MAXIMUM_SURFACE2D_HEIGHT),
    PROPERTY(maxSurface3D[0], MAXIMUM_SURFACE3D_WIDTH),
    PROPERTY(maxSurface3D[1], MAXIMUM_SURFACE3D_HEIGHT),
    PROPERTY(maxSurface3D[2], MAXIMUM_SURFACE3D_DEPTH),
    PROPERTY(maxSurface1DLayered[0], MAXIMUM_SURFACE1D_LAYERED_WIDTH),
    PROPERTY(maxSurface1DLayered[1], MAXIMUM_SURFACE1D_LAYERED_LAYERS),
    PROPERTY(maxSurface2DLayered[0], MAXIMUM_SURFACE2D_LAYERED_WIDTH),
    PROPERTY(maxSurface2DLayered[1], MAXIMUM_SURFACE2D_LAYERED_HEIGHT),
    PROPERTY(maxSurface2DLayered[2], MAXIMUM_SURFACE2D_LAYERED_LAYERS),
    PROPERTY(maxSurfaceCubemap, MAXIMUM_SURFACECUBEMAP_WIDTH),
    PROPERTY(maxSurfaceCubemapLayered[0], MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH),
    PROPERTY(maxSurfaceCubemapLayered[1], MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS),
    PROPERTY(surfaceAlignment, SURFACE_ALIGNMENT),
    PROPERTY(concurrentKernels, CONCURRENT_KERNELS),
    PROPERTY(ECCEnabled, ECC_ENABLED),
    PROPERTY(pciBusID, PCI_BUS_ID),
    PROPERTY(pciDeviceID, PCI_DEVICE_ID),
    PROPERTY(pciDomainID, PCI_DOMAIN_ID),
    PROPERTY(tccDriver, TCC_DRIVER),
    PROPERTY(asyncEngineCount, ASYNC_ENGINE_COUNT),
    PROPERTY(unifiedAddressing, UNIFIED_ADDRESSING),
    PROPERTY(memoryBusWidth, GLOBAL_MEMORY_BUS_WIDTH),
    PROPERTY(l2CacheSize, L2_CACHE_SIZE),
    PROPERTY(persistingL2CacheMaxSize, MAX_PERSISTING_L2_CACHE_SIZE),
    PROPERTY(maxThreadsPerMultiProcessor, MAX_THREADS_PER_MULTIPROCESSOR),
    PROPERTY(streamPrioritiesSupported, STREAM_PRIORITIES_SUPPORTED),
    PROPERTY(globalL1CacheSupported, GLOBAL_L1_CACHE_SUPPORTED),
    PROPERTY(localL1CacheSupported, LOCAL_L1_CACHE_SUPPORTED),
    PROPERTY(sharedMemPerMultiprocessor, MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
    PROPERTY(regsPerMultiprocessor, MAX_REGISTERS_PER_MULTIPROCESSOR),
    PROPERTY(managedMemory, MANAGED_MEMORY),
    PROPERTY(isMultiGpuBoard, MULTI_GPU_BOARD),
    PROPERTY(multiGpuBoardGroupID, MULTI_GPU_BOARD_GROUP_ID),
    PROPERTY(hostNativeAtomicSupported, HOST_NATIVE_ATOMIC_SUPPORTED),
    PROPERTY(pageableMemoryAccess, PAGEABLE_MEMORY_ACCESS),
    PROPERTY(concurrentManagedAccess, CONCURRENT_MANAGED_ACCESS),
    PROPERTY(computePreemptionSupported, COMPUTE_PREEMPTION_SUPPORTED),
    PROPERTY(canUseHostPointerForRegisteredMem, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM),
    PROPERTY(cooperativeLaunch, COOPERATIVE_LAUNCH),
    PROPERTY(sharedMemPerBlockOptin, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN),
    PROPERTY(pageableMemoryAccessUsesHostPageTables, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES),
    PROPERTY(directManagedMemAccessFromHost, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST),
    PROPERTY(maxBlocksPerMultiProcessor, MAX_BLOCKS_PER_MULTIPROCESSOR),
    PROPERTY(accessPolicyMaxWindowSize, MAX_ACCESS_POLICY_WINDOW_SIZE),
    PROPERTY(reservedSharedMemPerBlock, RESERVED_SHARED_MEMORY_PER_BLOCK),
    PROPERTY(hostRegisterSupported, HOST_REGISTER_SUPPORTED),
    PROPERTY(sparseCudaArraySupported, SPARSE_CUDA_ARRAY_SUPPORTED),
    PROPERTY(hostRegisterReadOnlySupported, READ_ONLY_HOST_REGISTER_SUPPORTED),
    PROPERTY(timelineSemaphoreInteropSupported, TIMELINE_SEMAPHORE_INTEROP_SUPPORTED),
    PROPERTY(memoryPoolsSupported, MEMORY_POOLS_SUPPORTED),
    PROPERTY(gpuDirectRDMASupported, GPU_DIRECT_RDMA_SUPPORTED),
    PROPERTY(gpuDirectRDMAFlushWritesOptions, GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS),
    PROPERTY(gpuDirectRDMAWritesOrdering, GPU_DIRECT_RDMA_WRITES_ORDERING),
    PROPERTY(memoryPoolSupportedHandleTypes, MEMPOOL_SUPPORTED_HANDLE_TYPES),
    PROPERTY(deferredMappingCudaArraySupported, DEFERRED_MAPPING_CUDA_ARRAY_SUPPORTED),
    PROPERTY(ipcEventSupported, IPC_EVENT_SUPPORTED),
    PROPERTY(clusterLaunch, CLUSTER_LAUNCH),
    PROPERTY(unifiedFunctionPointers, UNIFIED_FUNCTION_POINTERS),
#if GPUSIM_CUDART_MAJOR == 12
    PROPERTY(clockRate, CLOCK_RATE),
    PROPERTY(deviceOverlap, GPU_OVERLAP),
    PROPERTY(kernelExecTimeoutEnabled, KERNEL_EXEC_TIMEOUT),
    PROPERTY(computeMode, COMPUTE_MODE),
    PROPERTY(maxTexture1DLinear, MAXIMUM_TEXTURE1D_LINEAR_WIDTH),
    PROPERTY(memoryClockRate, MEMORY_CLOCK_RATE),
    PROPERTY(singleToDoublePrecisionPerfRatio, SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO),
    PROPERTY(cooperativeMultiDeviceLaunch, COOPERATIVE_MULTI_DEVICE_LAUNCH),
#else
    PROPERTY(deviceNumaConfig, NUMA_CONFIG),
    PROPERTY(deviceNumaId, NUMA_ID),
    PROPERTY(mpsEnabled, MPS_ENABLED),
    PROPERTY(hostNumaId, HOST_NUMA_ID),
    PROPERTY(gpuPciDeviceID, GPU_PCI_DEVICE_ID),
    PROPERTY(gpuPciSubsystemID, GPU_PCI_SUBSYSTEM_ID),
    PROPERTY(hostNumaMultinodeIpcSupported, HOST_NUMA_MULTINODE_IPC_SUPPORTED),
#endif
};

static void fill_properties(struct PROPERTIES *into, CUdevice device)
{
    memset(into, 0, sizeof *into);
    DRIVER(cuDeviceGetName, 2000)(into->name, (int)sizeof into->name, device);
    DRIVER(cuDeviceGetUuid, 9020)(&into->uuid, device);
    DRIVER(cuDeviceTotalMem, 3020)(&into->totalGlobalMem, device);
    for (size_t i = 0; i < sizeof properties / sizeof properties[0]; i++) {
        const struct property *property = &properties[i];
        int value = 0;
        DRIVER(cuDeviceGetAttribute, 2000)(&value, property->attribute, device);
        size_t wide = (size_t)value;
        void *field = (char *)into + property->offset;
        memcpy(field, property->bytes == sizeof wide ? (void *)&wide : (void *)&value,
               property->bytes);
    }
}

static cudaError_t get_properties(struct PROPERTIES *into, int ordinal)
{
    CUdevice device = 0;
    cudaError_t error = CALL_WITHOUT_CONTEXT(cuDeviceGet, 2000, &device, ordinal);
    if (error == cudaSuccess)
        fill_properties(into, device);
    return error;
}

#if GPUSIM_CUDART_MAJOR == 12
cudaError_t gpusim_12_get_device_properties(struct gpusim_device_properties_12 *into, int device)
{
    return into ? get_properties(into, device) : gpusim_fail(cudaErrorInvalidValue);
}

cudaError_t gpusim_11_get_device_properties(void *into, int device)
{
    if (!into)
        return gpusim_fail(cudaErrorInvalidValue);
    struct gpusim_device_properties_12 all;
    cudaError_t error = get_properties(&all, device);
    if (error == cudaSuccess)
        memcpy(into, &all, offsetof(struct gpusim_device_properties_12, hostRegisterSupported));
    return error;
}
#else
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *into, int device)
{
    return into ? get_properties(into, device) : gpusim_fail(cudaErrorInvalidValue);
}
#endif
