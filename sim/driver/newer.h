/*
 * Functions of CUDA 13.1 to 13.5, which this driver has whatever headers it is built with: this
 * file declares those that the headers do not declare yet.
 */
#ifndef GPUMEM_SIM_NEWER_H
#define GPUMEM_SIM_NEWER_H

#include <cuda.h>

#define GPUSIM_NEWER extern __attribute__((visibility("default"))) CUresult

#if CUDA_VERSION < 13010
GPUSIM_NEWER cuMulticastBindMem_v2(CUmemGenericAllocationHandle multicast, CUdevice device,
                                   size_t offset, CUmemGenericAllocationHandle memory,
                                   size_t memory_offset, size_t size, unsigned long long flags);
GPUSIM_NEWER cuMulticastBindAddr_v2(CUmemGenericAllocationHandle multicast, CUdevice device,
                                    size_t offset, CUdeviceptr pointer, size_t size,
                                    unsigned long long flags);
#endif

#if CUDA_VERSION < 13020
typedef struct CUstreamCigCaptureParams_st {
    void *streamCigParams;
} CUstreamCigCaptureParams;
GPUSIM_NEWER cuStreamBeginCaptureToCig(CUstream stream, CUstreamCigCaptureParams *parameters);
GPUSIM_NEWER cuStreamBeginCaptureToCig_ptsz(CUstream stream, CUstreamCigCaptureParams *parameters);
GPUSIM_NEWER cuStreamEndCaptureToCig(CUstream stream);
GPUSIM_NEWER cuStreamEndCaptureToCig_ptsz(CUstream stream);
GPUSIM_NEWER cuMemcpyWithAttributesAsync(CUdeviceptr to, CUdeviceptr from, size_t size,
                                         CUmemcpyAttributes *attributes, CUstream stream);
GPUSIM_NEWER cuMemcpyWithAttributesAsync_ptsz(CUdeviceptr to, CUdeviceptr from, size_t size,
                                              CUmemcpyAttributes *attributes, CUstream stream);
GPUSIM_NEWER cuMemcpy3DWithAttributesAsync(CUDA_MEMCPY3D_BATCH_OP *operation,
                                           unsigned long long flags, CUstream stream);
GPUSIM_NEWER cuMemcpy3DWithAttributesAsync_ptsz(CUDA_MEMCPY3D_BATCH_OP *operation,
                                                unsigned long long flags, CUstream stream);
#endif

#if CUDA_VERSION < 13030
#define CUDA_ERROR_GRAPH_RECAPTURE_FAILURE ((CUresult)918)
typedef CUresult (*CUgraphRecaptureCallback)(void *data, CUgraphNode node,
                                             const CUgraphNodeParams *original,
                                             const CUgraphNodeParams *recaptured, int status);
GPUSIM_NEWER cuStreamBeginRecaptureToGraph(CUstream stream, CUstreamCaptureMode mode, CUgraph graph,
                                           CUgraphRecaptureCallback callback, void *data);
GPUSIM_NEWER cuStreamBeginRecaptureToGraph_ptsz(CUstream stream, CUstreamCaptureMode mode,
                                                CUgraph graph, CUgraphRecaptureCallback callback,
                                                void *data);

typedef cuuint32_t CUlogicalEndpointId;
enum { CU_LOGICAL_ENDPOINT_TYPE_UNICAST = 1, CU_LOGICAL_ENDPOINT_TYPE_MULTICAST = 2 };
typedef struct CUlogicalEndpointProp_struct {
    int type;
    union {
        struct {
            CUdevice device;
        } unicast;
        struct {
            unsigned int numDevices;
        } multicast;
    };
    unsigned long long size;
    unsigned int ipcHandleTypes;
    unsigned int flags;
} CUlogicalEndpointProp;
GPUSIM_NEWER cuLogicalEndpointIdReserve(CUlogicalEndpointId *first, cuuint32_t count);
GPUSIM_NEWER cuLogicalEndpointIdRelease(CUlogicalEndpointId first, cuuint32_t count);
GPUSIM_NEWER cuLogicalEndpointCreate(CUlogicalEndpointId id,
                                     const CUlogicalEndpointProp *properties);
GPUSIM_NEWER cuLogicalEndpointAddDevice(CUlogicalEndpointId id, CUdevice device);
GPUSIM_NEWER cuLogicalEndpointDestroy(CUlogicalEndpointId id);
GPUSIM_NEWER cuLogicalEndpointBindMem(CUlogicalEndpointId id, CUdevice device, cuuint64_t offset,
                                      CUmemGenericAllocationHandle memory, cuuint64_t memory_offset,
                                      cuuint64_t size, unsigned long long flags);
GPUSIM_NEWER cuLogicalEndpointBindAddr(CUlogicalEndpointId id, CUdevice device, cuuint64_t offset,
                                       void *pointer, cuuint64_t size, unsigned long long flags);
GPUSIM_NEWER cuLogicalEndpointUnbind(CUlogicalEndpointId id, CUdevice device, cuuint64_t offset,
                                     cuuint64_t size);
#endif

#if CUDA_VERSION < 13040
GPUSIM_NEWER cuGraphAddNode_v3(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                               const CUgraphEdgeData *edges, size_t count,
                               CUgraphNodeParams *parameters);
#endif

#endif
