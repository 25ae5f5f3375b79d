/*
 * What cuGetProcAddress answers in addition to the generated table: functions of CUDA 13.1 to 13.5
 * that the installed headers may not have yet, and functions of a CUDA that does not exist, because
 * each new driver brings ABIs that no header has. cuGetProcAddress answers with these from version
 * 14.0 on, which GPUMEM_SIM_DRIVER_VERSION must allow. Each takes one argument more than the ABI
 * before it, in front: called by another ABI, they fail or do the wrong thing. Some are exported,
 * some are not.
 */
#include "driver.h"
#include "newer.h"
#include "proc_table.h"

#include <string.h>

#define FUTURE 14000
#define TAG 0x41420043u /* what the new first argument has to be */

GPUSIM_EXPORTED CUresult cuMemAlloc_v3(unsigned int tag, CUdeviceptr *pointer, size_t size);
GPUSIM_EXPORTED CUresult cuMemAllocAsync_v2(unsigned int tag, CUdeviceptr *pointer, size_t size,
                                            CUstream stream);
GPUSIM_EXPORTED CUresult cuMemAllocAsync_v2_ptsz(unsigned int tag, CUdeviceptr *pointer,
                                                 size_t size, CUstream stream);

CUresult cuMemAlloc_v3(unsigned int tag, CUdeviceptr *pointer, size_t size)
{
    return tag == TAG ? cuMemAlloc_v2(pointer, size) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAllocAsync_v2(unsigned int tag, CUdeviceptr *pointer, size_t size, CUstream stream)
{
    return tag == TAG ? cuMemAllocAsync(pointer, size, stream) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAllocAsync_v2_ptsz(unsigned int tag, CUdeviceptr *pointer, size_t size,
                                 CUstream stream)
{
    return tag == TAG ? cuMemAllocAsync_ptsz(pointer, size, stream) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult free_of_the_future(unsigned int tag, CUdeviceptr pointer)
{
    return tag == TAG ? cuMemFree_v2(pointer) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult set_of_the_future(unsigned int tag, CUdeviceptr pointer, unsigned char value,
                                  size_t size)
{
    return tag == TAG ? cuMemsetD8_v2(pointer, value, size) : CUDA_ERROR_INVALID_VALUE;
}

#define PLAIN(name, version, symbol)                                                               \
    {                                                                                              \
        name, version, version, (void *)symbol, NULL                                               \
    }
#define BOTH(symbol, version)                                                                      \
    {                                                                                              \
#symbol, version, version, (void *)symbol, (void *)symbol##_ptsz                           \
    }

static const struct gpusim_proc future[] = {
    PLAIN("cuMulticastBindMem", 13010, cuMulticastBindMem_v2),
    PLAIN("cuMulticastBindAddr", 13010, cuMulticastBindAddr_v2),
    BOTH(cuStreamBeginCaptureToCig, 13010),
    BOTH(cuStreamEndCaptureToCig, 13010),
    BOTH(cuMemcpyWithAttributesAsync, 13020),
    BOTH(cuMemcpy3DWithAttributesAsync, 13020),
    BOTH(cuStreamBeginRecaptureToGraph, 13030),
    PLAIN("cuLogicalEndpointIdReserve", 13030, cuLogicalEndpointIdReserve),
    PLAIN("cuLogicalEndpointIdRelease", 13030, cuLogicalEndpointIdRelease),
    PLAIN("cuLogicalEndpointCreate", 13030, cuLogicalEndpointCreate),
    PLAIN("cuLogicalEndpointAddDevice", 13030, cuLogicalEndpointAddDevice),
    PLAIN("cuLogicalEndpointDestroy", 13030, cuLogicalEndpointDestroy),
    PLAIN("cuLogicalEndpointBindMem", 13030, cuLogicalEndpointBindMem),
    PLAIN("cuLogicalEndpointBindAddr", 13030, cuLogicalEndpointBindAddr),
    PLAIN("cuLogicalEndpointUnbind", 13030, cuLogicalEndpointUnbind),
    PLAIN("cuGraphAddNode", 13040, cuGraphAddNode_v3),
    {"cuMemAlloc", FUTURE, FUTURE, (void *)cuMemAlloc_v3, NULL},
    {"cuMemAllocAsync", FUTURE, FUTURE, (void *)cuMemAllocAsync_v2,
     (void *)cuMemAllocAsync_v2_ptsz},
    {"cuMemFree", FUTURE, FUTURE, (void *)free_of_the_future, NULL},
    {"cuMemsetD8", FUTURE, FUTURE, (void *)set_of_the_future, NULL},
};

const struct gpusim_proc *gpusim_future_proc(const char *name, int version)
{
    for (size_t i = 0; i < sizeof(future) / sizeof(future[0]); i++)
        if (version >= future[i].version && strcmp(name, future[i].name) == 0)
            return &future[i];
    return NULL;
}
