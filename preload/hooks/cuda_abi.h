/*
 * The part of CUDA's binary interface that the hooks touch, declared anew so that the preload
 * builds without a toolkit and is the same whatever toolkit there is. Layouts are stable parts of
 * the public headers; tests/table/layout.c compares every one with the headers at hand, and
 * tests/table/prototypes.c every prototype of the table.
 */
#ifndef GPUMEM_PRELOAD_HOOKS_CUDA_ABI_H
#define GPUMEM_PRELOAD_HOOKS_CUDA_ABI_H

#include <stddef.h>
#include <stdint.h>

/* ---- driver: scalars and handles ------------------------------------------------------------- */

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned int CUdeviceptr_v1; /* before CUDA 3.2 */
typedef unsigned long long CUmemGenericAllocationHandle;

typedef struct CUctx_st *CUcontext;
typedef struct CUgreenCtx_st *CUgreenCtx;
typedef struct CUdevResourceDesc_st *CUdevResourceDesc;
typedef struct CUmod_st *CUmodule;
typedef struct CUlib_st *CUlibrary;
typedef struct CUarray_st *CUarray;
typedef struct CUmipmappedArray_st *CUmipmappedArray;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUfunc_st *CUfunction;
typedef struct CUkern_st *CUkernel;
typedef struct CUlinkState_st *CUlinkState;
typedef unsigned long long CUtexObject;
typedef unsigned long long CUsurfObject;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUmemPoolHandle_st *CUmemoryPool;
typedef struct CUextMemory_st *CUexternalMemory;
typedef struct CUgraphicsResource_st *CUgraphicsResource;

/* Enumerations, as wide as int. */
typedef int CUfunc_cache;
typedef int CUfunction_attribute;
typedef int CUjitInputType;
typedef int CUjit_option;
typedef int CUlibraryOption;
typedef int CUlimit;
typedef int CUmemAllocationHandleType;
typedef int CUmemAllocationType;
typedef int CUmemPool_attribute;
typedef int CUmemRangeHandleType;
typedef int CUmem_advise;
typedef int CUstreamCaptureMode;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_FOUND = 500,
    CU_MEM_ALLOCATION_TYPE_MANAGED = 2, /* of a CUmemAllocationType, since 13.0 */
    CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR = 1,
    CU_MEM_HANDLE_TYPE_FABRIC = 8, /* the handle is 64 bytes */
    CU_MEM_LOCATION_TYPE_DEVICE = 1,
    CU_MEM_LOCATION_TYPE_HOST = 2,
    CU_MEM_LOCATION_TYPE_HOST_NUMA = 3,
    CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT = 4,
    CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN = 6, /* since 13.4 */
    CU_FABRIC_COPY_OPERAND_TYPE_POINTER = 1,         /* since 13.5 */
    CU_GRAPH_NODE_TYPE_GRAPH = 4,
    CU_GRAPH_NODE_TYPE_MEM_ALLOC = 10,
    CU_GRAPH_NODE_TYPE_MEM_FREE = 11,
    CUDA_ARRAY3D_LAYERED = 0x01,
    CUDA_ARRAY3D_CUBEMAP = 0x04,
    CUDA_ARRAY3D_SPARSE = 0x40,
    CUDA_ARRAY3D_DEFERRED_MAPPING = 0x80,
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_ARRAY = 3,
    CU_MEMORYTYPE_UNIFIED = 4,
};

/* ---- driver: structures that are read -------------------------------------------------------- */

typedef struct CUmemLocation_st {
    int type;
    int id; /* of a locality domain, since 13.4: two bytes, the device and the domain */
} CUmemLocation;

typedef struct CUmemAllocationProp_st {
    CUmemAllocationType type;
    CUmemAllocationHandleType requestedHandleTypes;
    CUmemLocation location;
    void *win32HandleMetaData;
    unsigned char allocFlags[8];
} CUmemAllocationProp;

/* Of cuMemMapArrayAsync. */
enum { CU_MEM_OPERATION_TYPE_MAP = 1, CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL = 1 };

typedef struct CUarrayMapInfo_st {
    int resourceType;
    union {
        CUmipmappedArray mipmap;
        CUarray array;
    } resource;
    int subresourceType;
    union {
        struct {
            unsigned int level, layer, offsetX, offsetY, offsetZ;
            unsigned int extentWidth, extentHeight, extentDepth;
        } sparseLevel;
        struct {
            unsigned int layer;
            unsigned long long offset, size;
        } miptail;
    } subresource;
    int memOperationType;
    int memHandleType;
    union {
        CUmemGenericAllocationHandle memHandle;
    } memHandle;
    unsigned long long offset;
    unsigned int deviceBitMask, flags, reserved[2];
} CUarrayMapInfo;

typedef struct CUmemPoolProps_st {
    CUmemAllocationType allocType;
    CUmemAllocationHandleType handleTypes;
    CUmemLocation location;
    void *win32SecurityAttributes;
    unsigned char reserved[64]; /* maxSize, usage and room */
} CUmemPoolProps;

typedef struct CUDA_MEM_ALLOC_NODE_PARAMS_st {
    CUmemPoolProps poolProps;
    const void *accessDescs;
    size_t accessDescCount;
    size_t bytesize;
    CUdeviceptr dptr;
} CUDA_MEM_ALLOC_NODE_PARAMS;

typedef struct CUgraphNodeParams_st {
    int type;
    int reserved0[3];
    union {
        long long reserved1[29];
        CUDA_MEM_ALLOC_NODE_PARAMS alloc;
        CUdeviceptr free;
        CUgraph graph;
    };
    long long reserved2;
} CUgraphNodeParams;

typedef struct CUDA_GRAPH_INSTANTIATE_PARAMS_st {
    uint64_t flags;
    CUstream hUploadStream;
    CUgraphNode hErrNode_out;
    int result_out;
} CUDA_GRAPH_INSTANTIATE_PARAMS;

typedef struct CUmulticastObjectProp_st {
    unsigned int numDevices;
    size_t size;
    unsigned long long handleTypes;
    unsigned long long flags;
} CUmulticastObjectProp;

typedef struct CUDA_EXTERNAL_MEMORY_BUFFER_DESC_st {
    unsigned long long offset;
    unsigned long long size;
    unsigned int flags;
    unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_BUFFER_DESC;

/* The two generations of array descriptors and copies differ in the width of their numbers. */
#define GM_ARRAY_DESCRIPTORS(suffix, number)                                                       \
    typedef struct CUDA_ARRAY_DESCRIPTOR##suffix##_st {                                            \
        number Width;                                                                              \
        number Height;                                                                             \
        int Format;                                                                                \
        unsigned int NumChannels;                                                                  \
    } CUDA_ARRAY_DESCRIPTOR##suffix;                                                               \
    typedef struct CUDA_ARRAY3D_DESCRIPTOR##suffix##_st {                                          \
        number Width;                                                                              \
        number Height;                                                                             \
        number Depth;                                                                              \
        int Format;                                                                                \
        unsigned int NumChannels;                                                                  \
        unsigned int Flags;                                                                        \
    } CUDA_ARRAY3D_DESCRIPTOR##suffix

#define GM_COPY_SIDE_2D(side, number, address, host)                                               \
    number side##XInBytes;                                                                         \
    number side##Y;                                                                                \
    int side##MemoryType;                                                                          \
    host side##Host;                                                                               \
    address side##Device;                                                                          \
    CUarray side##Array;                                                                           \
    number side##Pitch

#define GM_COPY_SIDE_3D(side, number, address, host, context)                                      \
    number side##XInBytes;                                                                         \
    number side##Y;                                                                                \
    number side##Z;                                                                                \
    number side##LOD;                                                                              \
    int side##MemoryType;                                                                          \
    host side##Host;                                                                               \
    address side##Device;                                                                          \
    CUarray side##Array;                                                                           \
    void *(context);                                                                               \
    number side##Pitch;                                                                            \
    number side##Height

#define GM_COPIES(suffix, number, address)                                                         \
    typedef struct CUDA_MEMCPY2D##suffix##_st {                                                    \
        GM_COPY_SIDE_2D(src, number, address, const void *);                                       \
        GM_COPY_SIDE_2D(dst, number, address, void *);                                             \
        number WidthInBytes;                                                                       \
        number Height;                                                                             \
    } CUDA_MEMCPY2D##suffix;                                                                       \
    typedef struct CUDA_MEMCPY3D##suffix##_st {                                                    \
        GM_COPY_SIDE_3D(src, number, address, const void *, reserved0);                            \
        GM_COPY_SIDE_3D(dst, number, address, void *, reserved1);                                  \
        number WidthInBytes;                                                                       \
        number Height;                                                                             \
        number Depth;                                                                              \
    } CUDA_MEMCPY3D##suffix

GM_ARRAY_DESCRIPTORS(_v1, unsigned int);
GM_ARRAY_DESCRIPTORS(, size_t);
typedef struct CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC_st {
    unsigned long long offset;
    CUDA_ARRAY3D_DESCRIPTOR arrayDesc;
    unsigned int numLevels;
    unsigned int reserved[16];
} CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC;

GM_COPIES(_v1, unsigned int, CUdeviceptr_v1);
GM_COPIES(, size_t, CUdeviceptr);

typedef struct CUDA_MEMCPY3D_PEER_st {
    GM_COPY_SIDE_3D(src, size_t, CUdeviceptr, const void *, srcContext);
    GM_COPY_SIDE_3D(dst, size_t, CUdeviceptr, void *, dstContext);
    size_t WidthInBytes;
    size_t Height;
    size_t Depth;
} CUDA_MEMCPY3D_PEER;

/* One side of a batched 3D copy: a tag, then a pointer with its layout or an array with its offset.
 */
typedef struct CUmemcpy3DOperand_st {
    int type;
    union {
        CUdeviceptr pointer;
        CUarray array;
        size_t words[4];
    };
} CUmemcpy3DOperand;

typedef struct CUDA_MEMCPY3D_BATCH_OP_st {
    CUmemcpy3DOperand src;
    CUmemcpy3DOperand dst;
    size_t width;
    size_t height;
    size_t depth;
    int srcAccessOrder;
    unsigned int flags;
} CUDA_MEMCPY3D_BATCH_OP;

/* Since 13.3. */
typedef unsigned int CUlogicalEndpointId;
typedef int CUlogicalEndpointIpcHandleType;
typedef uint64_t cuuint64_t;

typedef struct CUlogicalEndpointProp_struct {
    int type;
    unsigned int deviceOrCount;
    unsigned long long size;
    unsigned int ipcHandleTypes;
    unsigned int flags;
} CUlogicalEndpointProp;

/* One side of a copy over a fabric, since 13.5: a pointer with a location, or a place in an
 * endpoint. */
typedef struct CUfabricCpyOperand_st {
    int type;
    union {
        struct {
            CUdeviceptr ptr;
            CUmemLocation locHint;
        } ptr;
        struct {
            CUlogicalEndpointId id;
            cuuint64_t offset;
        } le;
    } op;
} CUfabricCpyOperand;

typedef struct CUDA_FABRIC_COPY_BATCH_OP_st {
    CUfabricCpyOperand src;
    CUfabricCpyOperand dst;
    size_t size;
    unsigned int flags;
} CUDA_FABRIC_COPY_BATCH_OP;

/* Passed by value and only handed on. */
typedef struct CUipcMemHandle_st {
    char reserved[64];
} CUipcMemHandle;
typedef struct CUipcEventHandle_st {
    char reserved[64];
} CUipcEventHandle;

/* Passed by pointer and only handed on. */
typedef struct CUDA_EXTERNAL_MEMORY_HANDLE_DESC_st CUDA_EXTERNAL_MEMORY_HANDLE_DESC;
typedef struct CUDA_LAUNCH_PARAMS_st CUDA_LAUNCH_PARAMS;
typedef struct CUDA_RESOURCE_DESC_st CUDA_RESOURCE_DESC;
typedef struct CUDA_RESOURCE_VIEW_DESC_st CUDA_RESOURCE_VIEW_DESC;
typedef struct CUDA_TEXTURE_DESC_st CUDA_TEXTURE_DESC;
typedef struct CUctxCreateParams_st CUctxCreateParams;
typedef struct CUexecAffinityParam_st CUexecAffinityParam;
typedef struct CUgraphEdgeData_st CUgraphEdgeData;
typedef struct CUlaunchConfig_st CUlaunchConfig;
typedef size_t (*CUoccupancyB2DSize)(int block_size);
typedef struct CUmemAccessDesc_st CUmemAccessDesc;
typedef struct CUmemPoolPtrExportData_st CUmemPoolPtrExportData;
typedef struct CUmemcpyAttributes_st CUmemcpyAttributes;
typedef struct CUstreamCigCaptureParams_st CUstreamCigCaptureParams;
typedef CUresult (*CUgraphRecaptureCallback)(void *data, CUgraphNode node,
                                             const CUgraphNodeParams *originalParams,
                                             const CUgraphNodeParams *recaptureParams, int status);

/* ---- runtime --------------------------------------------------------------------------------- */

typedef int cudaError_t;
typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct cudaArray *cudaArray_t;
typedef const struct cudaArray *cudaArray_const_t;
typedef struct cudaMipmappedArray *cudaMipmappedArray_t;
typedef struct CUmemPoolHandle_st *cudaMemPool_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphNode_st *cudaGraphNode_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;
typedef struct CUexternalMemory_st *cudaExternalMemory_t;
typedef struct cudaGraphicsResource *cudaGraphicsResource_t;
typedef struct CUlib_st *cudaLibrary_t;
typedef struct cudaExecutionContext_st *cudaExecutionContext_t;
typedef struct cudaDevResourceDesc_st *cudaDevResourceDesc_t;
typedef struct cudaGraphEdgeData_st cudaGraphEdgeData;
typedef struct cudaGraphInstantiateParams_st cudaGraphInstantiateParams;
typedef struct cudaLaunchConfig_st cudaLaunchConfig_t;
typedef struct dim3 dim3;

enum { cudaErrorUnknown = 999 };
enum cudaMemcpyKind { GM_CUDA_MEMCPY_KIND };
enum cudaFuncAttribute { GM_CUDA_FUNC_ATTRIBUTE };
enum cudaJitOption { GM_CUDA_JIT_OPTION };
enum cudaLibraryOption { GM_CUDA_LIBRARY_OPTION };
enum cudaLimit { GM_CUDA_LIMIT };
enum cudaMemAllocationHandleType { GM_CUDA_MEM_ALLOCATION_HANDLE_TYPE };
enum cudaMemPoolAttr { GM_CUDA_MEM_POOL_ATTR };
enum cudaStreamCaptureMode { GM_CUDA_STREAM_CAPTURE_MODE };

typedef struct cudaIpcMemHandle_st {
    char reserved[64];
} cudaIpcMemHandle_t;

struct dim3 {
    unsigned int x;
    unsigned int y;
    unsigned int z;
};

struct cudaExtent {
    size_t width;
    size_t height;
    size_t depth;
};

struct cudaPitchedPtr {
    void *ptr;
    size_t pitch;
    size_t xsize;
    size_t ysize;
};

struct cudaPos {
    size_t x;
    size_t y;
    size_t z;
};

struct cudaMemcpy3DParms {
    cudaArray_t srcArray;
    struct cudaPos srcPos;
    struct cudaPitchedPtr srcPtr;
    cudaArray_t dstArray;
    struct cudaPos dstPos;
    struct cudaPitchedPtr dstPtr;
    struct cudaExtent extent;
    int kind; /* enum cudaMemcpyKind */
};

struct cudaMemcpy3DPeerParms {
    cudaArray_t srcArray;
    struct cudaPos srcPos;
    struct cudaPitchedPtr srcPtr;
    int srcDevice;
    cudaArray_t dstArray;
    struct cudaPos dstPos;
    struct cudaPitchedPtr dstPtr;
    int dstDevice;
    struct cudaExtent extent;
};

struct cudaChannelFormatDesc {
    int x; /* bits of each channel */
    int y;
    int z;
    int w;
    int f;
};

struct cudaMemLocation {
    int type;
    int id;
};

struct cudaExternalMemoryBufferDesc;
struct cudaFuncAttributes;
struct cudaGraphRecaptureCallbackData;
struct cudaMemcpy3DBatchOp;
struct cudaMemcpyAttributes;
struct cudaExternalMemoryHandleDesc;
struct cudaExternalMemoryMipmappedArrayDesc;
struct cudaMemAllocNodeParams;
struct cudaMemPoolProps;
struct cudaMemPoolPtrExportData;

#endif
