/*
 * Types of CUDA 13.1 to 13.5, for headers that do not have them yet: the table has their functions,
 * whatever headers it is compared with.
 */
#ifndef GPUMEM_TESTS_NEWER_TYPES_H
#define GPUMEM_TESTS_NEWER_TYPES_H

#include <cuda.h>

#if CUDA_VERSION < 13010
typedef struct cudaExecutionContext_st *cudaExecutionContext_t;
typedef struct CUdevResourceDesc_st *cudaDevResourceDesc_t;
#endif
#if CUDA_VERSION < 13020
typedef struct CUstreamCigCaptureParams_st CUstreamCigCaptureParams;
#endif
#if CUDA_VERSION < 13030
typedef CUresult (*CUgraphRecaptureCallback)(void *data, CUgraphNode node,
                                             const CUgraphNodeParams *original,
                                             const CUgraphNodeParams *recaptured, int status);
typedef cuuint32_t CUlogicalEndpointId;
typedef int CUlogicalEndpointIpcHandleType;
typedef struct CUlogicalEndpointProp_struct CUlogicalEndpointProp;
struct cudaGraphRecaptureCallbackData;
#endif
#if CUDA_VERSION < 13050
typedef struct CUDA_FABRIC_COPY_BATCH_OP_st CUDA_FABRIC_COPY_BATCH_OP;
#endif

#endif
