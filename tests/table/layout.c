/*
 * Prints the layouts that the hooks rely on. Built twice, with the CUDA headers and with
 * cuda_abi.h; the two must print the same.
 */
#include <stddef.h>
#include <stdio.h>
#ifdef GM_CUDA_HEADERS
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cuda_runtime_api.h>
#else
#include "hooks/cuda_abi.h"
#endif

#define SIZE(type) printf("sizeof %s %zu\n", #type, sizeof(type))
#define FIELD(type, field)                                                                         \
    printf("%s.%s %zu %zu\n", #type, #field, offsetof(type, field), sizeof(((type *)0)->field))
#define VALUE(name) printf("%s %d\n", #name, (int)(name))

#define COPY_SIDE(type, side)                                                                      \
    FIELD(type, side##MemoryType);                                                                 \
    FIELD(type, side##Host);                                                                       \
    FIELD(type, side##Device);                                                                     \
    FIELD(type, side##Array)
#define COPY(type)                                                                                 \
    SIZE(type);                                                                                    \
    COPY_SIDE(type, src);                                                                          \
    COPY_SIDE(type, dst);                                                                          \
    FIELD(type, WidthInBytes);                                                                     \
    FIELD(type, Height)
#define ARRAY(type)                                                                                \
    SIZE(type);                                                                                    \
    FIELD(type, Width);                                                                            \
    FIELD(type, Height);                                                                           \
    FIELD(type, Format);                                                                           \
    FIELD(type, NumChannels)
#define VOLUME(type)                                                                               \
    SIZE(type);                                                                                    \
    FIELD(type, srcArray);                                                                         \
    FIELD(type, srcPtr);                                                                           \
    FIELD(type, dstArray);                                                                         \
    FIELD(type, dstPtr);                                                                           \
    FIELD(type, extent)

int main(void)
{
    SIZE(CUresult);
    SIZE(CUdevice);
    SIZE(CUdeviceptr);
    SIZE(CUdeviceptr_v1);
    SIZE(CUmemGenericAllocationHandle);
    SIZE(CUfunc_cache);
    SIZE(CUfunction_attribute);
    SIZE(CUjitInputType);
    SIZE(CUjit_option);
    SIZE(CUlibraryOption);
    SIZE(CUlimit);
    SIZE(CUmemAllocationHandleType);
    SIZE(CUmemAllocationType);
    SIZE(CUmemPool_attribute);
    SIZE(CUmem_advise);
    SIZE(CUtexObject);
    SIZE(CUsurfObject);
    SIZE(CUipcEventHandle);
    SIZE(dim3);
    SIZE(enum cudaFuncAttribute);
    SIZE(CUstreamCaptureMode);
    SIZE(CUmemLocation);
    SIZE(CUipcMemHandle);
    SIZE(cudaIpcMemHandle_t);
    SIZE(struct cudaExtent);
    SIZE(struct cudaMemLocation);
    SIZE(enum cudaMemcpyKind);
    SIZE(CUmemAllocationProp);
    FIELD(CUmemAllocationProp, location);
    SIZE(CUmemPoolProps);
    FIELD(CUmemPoolProps, location);
    SIZE(CUDA_MEM_ALLOC_NODE_PARAMS);
    FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, poolProps);
    FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, bytesize);
    FIELD(CUDA_MEM_ALLOC_NODE_PARAMS, dptr);
    SIZE(CUgraphNodeParams);
    FIELD(CUgraphNodeParams, type);
    printf("alloc.dptr %zu\n", offsetof(CUgraphNodeParams, alloc.dptr));
    printf("alloc.bytesize %zu\n", offsetof(CUgraphNodeParams, alloc.bytesize));
    printf("free %zu\n", offsetof(CUgraphNodeParams, free));
    printf("graph %zu\n", offsetof(CUgraphNodeParams, graph));
    FIELD(CUDA_GRAPH_INSTANTIATE_PARAMS, flags);
    FIELD(CUmulticastObjectProp, size);
    FIELD(CUDA_EXTERNAL_MEMORY_BUFFER_DESC, size);
    FIELD(CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, arrayDesc);
    FIELD(CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC, numLevels);
    SIZE(CUDA_MEMCPY3D_BATCH_OP);
    FIELD(CUDA_MEMCPY3D_BATCH_OP, src);
    FIELD(CUDA_MEMCPY3D_BATCH_OP, dst);
    printf("src operand %zu\n", offsetof(CUDA_MEMCPY3D_BATCH_OP, src) + sizeof(size_t));
    ARRAY(CUDA_ARRAY_DESCRIPTOR);
    ARRAY(CUDA_ARRAY_DESCRIPTOR_v1);
    ARRAY(CUDA_ARRAY3D_DESCRIPTOR);
    FIELD(CUDA_ARRAY3D_DESCRIPTOR, Depth);
    FIELD(CUDA_ARRAY3D_DESCRIPTOR, Flags);
    ARRAY(CUDA_ARRAY3D_DESCRIPTOR_v1);
    COPY(CUDA_MEMCPY2D);
    COPY(CUDA_MEMCPY2D_v1);
    COPY(CUDA_MEMCPY3D);
    FIELD(CUDA_MEMCPY3D, Depth);
    COPY(CUDA_MEMCPY3D_v1);
    COPY(CUDA_MEMCPY3D_PEER);
    FIELD(CUDA_MEMCPY3D_PEER, Depth);
    FIELD(struct cudaPitchedPtr, ptr);
    FIELD(struct cudaPitchedPtr, pitch);
    FIELD(struct cudaChannelFormatDesc, w);
    VOLUME(struct cudaMemcpy3DParms);
    FIELD(struct cudaMemcpy3DParms, kind);
    VOLUME(struct cudaMemcpy3DPeerParms);
    VALUE(CUDA_ERROR_NOT_FOUND);
    VALUE(CUDA_ERROR_OUT_OF_MEMORY);
    VALUE(cudaErrorUnknown);
    VALUE(CU_MEM_LOCATION_TYPE_DEVICE);
    VALUE(CU_GRAPH_NODE_TYPE_GRAPH);
    VALUE(CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    VALUE(CU_GRAPH_NODE_TYPE_MEM_FREE);
    VALUE(CUDA_ARRAY3D_LAYERED);
    VALUE(CUDA_ARRAY3D_CUBEMAP);
    VALUE(CUDA_ARRAY3D_SPARSE);
    VALUE(CUDA_ARRAY3D_DEFERRED_MAPPING);
    VALUE(CU_MEMORYTYPE_HOST);
    VALUE(CU_MEMORYTYPE_ARRAY);
    VALUE(CU_MEMORYTYPE_UNIFIED);
    VALUE(CU_MEM_LOCATION_TYPE_HOST);
    VALUE(CU_MEM_LOCATION_TYPE_HOST_NUMA);
    VALUE(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT);
#if !defined(GM_CUDA_HEADERS) || CUDA_VERSION >= 13030
    SIZE(CUlogicalEndpointId);
    SIZE(CUlogicalEndpointIpcHandleType);
    SIZE(CUlogicalEndpointProp);
    FIELD(CUlogicalEndpointProp, size);
#endif
#if !defined(GM_CUDA_HEADERS) || CUDA_VERSION >= 13040
    VALUE(CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN);
#ifdef GM_CUDA_HEADERS
    printf("device of a locality domain %zu %zu\n", offsetof(CUmemLocation, localized.deviceId),
           sizeof(((CUmemLocation *)0)->localized.deviceId));
#else
    printf("device of a locality domain %zu %zu\n", offsetof(CUmemLocation, id),
           sizeof(unsigned char));
#endif
#endif
#if !defined(GM_CUDA_HEADERS) || CUDA_VERSION >= 13050
    VALUE(CU_FABRIC_COPY_OPERAND_TYPE_POINTER);
    SIZE(CUDA_FABRIC_COPY_BATCH_OP);
    FIELD(CUDA_FABRIC_COPY_BATCH_OP, src.op.ptr.ptr);
    FIELD(CUDA_FABRIC_COPY_BATCH_OP, dst.op.ptr.ptr);
    FIELD(CUDA_FABRIC_COPY_BATCH_OP, size);
#endif
    return 0;
}
