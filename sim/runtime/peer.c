/*
 * Between devices and between processes: peer access, peer copies, IPC handles, and memory and
 * semaphores of other APIs.
 */
#include "runtime.h"
#include <string.h>

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    CUcontext context = NULL;
    cudaError_t error = gpusim_primary_context(peer, &context);
    return error == cudaSuccess ? gpusim_finish(DRIVER(cuCtxEnablePeerAccess, 4000)(context, flags))
                                : gpusim_fail(error);
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    CUcontext context = NULL;
    cudaError_t error = gpusim_primary_context(peer, &context);
    return error == cudaSuccess ? gpusim_finish(DRIVER(cuCtxDisablePeerAccess, 4000)(context))
                                : gpusim_fail(error);
}

static cudaError_t both_contexts(int to_device, CUcontext *to, int from_device, CUcontext *from)
{
    if (!gpusim_enter())
        return gpusim_refusal();
    cudaError_t error = gpusim_primary_context(to_device, to);
    if (error == cudaSuccess)
        error = gpusim_primary_context(from_device, from);
    return gpusim_fail(error);
}

cudaError_t cudaMemcpyPeer(void *to, int to_device, const void *from, int from_device, size_t bytes)
{
    CUcontext to_context = NULL;
    CUcontext from_context = NULL;
    cudaError_t error = both_contexts(to_device, &to_context, from_device, &from_context);
    if (error != cudaSuccess || bytes == 0)
        return error;
    return gpusim_finish(DRIVER(cuMemcpyPeer, 4000)(
        gpusim_device_address(to), to_context, gpusim_device_address(from), from_context, bytes));
}

cudaError_t cudaMemcpyPeerAsync(void *to, int to_device, const void *from, int from_device,
                                size_t bytes, cudaStream_t stream)
{
    CUcontext to_context = NULL;
    CUcontext from_context = NULL;
    cudaError_t error = both_contexts(to_device, &to_context, from_device, &from_context);
    if (error != cudaSuccess || bytes == 0)
        return error;
    return gpusim_finish(DRIVER(cuMemcpyPeerAsync, 4000)(gpusim_device_address(to), to_context,
                                                         gpusim_device_address(from), from_context,
                                                         bytes, stream));
}

_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle), "same layout");
_Static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle), "same layout");

cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer)
{
    return CALL(cuIpcGetMemHandle, 4010, (CUipcMemHandle *)(void *)handle,
                gpusim_device_address(pointer));
}

cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned int flags)
{
    CUipcMemHandle driver_handle;
    memcpy(&driver_handle, &handle, sizeof driver_handle);
    return CALL(cuIpcOpenMemHandle, 11000, gpusim_out(pointer), driver_handle, flags);
}

cudaError_t cudaIpcCloseMemHandle(void *pointer)
{
    return CALL(cuIpcCloseMemHandle, 4010, gpusim_device_address(pointer));
}

cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
    return CALL(cuIpcGetEventHandle, 4010, (CUipcEventHandle *)(void *)handle, event);
}

cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
    CUipcEventHandle driver_handle;
    memcpy(&driver_handle, &handle, sizeof driver_handle);
    return CALL(cuIpcOpenEventHandle, 4010, event, driver_handle);
}

/* The handles of external memory and semaphores are the driver's, under another type name. */
_Static_assert(sizeof(struct cudaExternalMemoryHandleDesc) ==
                   sizeof(CUDA_EXTERNAL_MEMORY_HANDLE_DESC),
               "same layout");
_Static_assert(sizeof(struct cudaExternalMemoryBufferDesc) ==
                   sizeof(CUDA_EXTERNAL_MEMORY_BUFFER_DESC),
               "same layout");
_Static_assert(sizeof(struct cudaExternalSemaphoreHandleDesc) ==
                   sizeof(CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC),
               "same layout");

cudaError_t cudaImportExternalMemory(cudaExternalMemory_t *memory,
                                     const struct cudaExternalMemoryHandleDesc *description)
{
    return CALL(cuImportExternalMemory, 10000, (CUexternalMemory *)(void *)memory,
                (const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *)(const void *)description);
}

cudaError_t cudaExternalMemoryGetMappedBuffer(void **pointer, cudaExternalMemory_t memory,
                                              const struct cudaExternalMemoryBufferDesc *buffer)
{
    return CALL(cuExternalMemoryGetMappedBuffer, 10000, gpusim_out(pointer),
                (CUexternalMemory)memory,
                (const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *)(const void *)buffer);
}

cudaError_t cudaExternalMemoryGetMappedMipmappedArray(
    cudaMipmappedArray_t *mipmap, cudaExternalMemory_t memory,
    const struct cudaExternalMemoryMipmappedArrayDesc *description)
{
    if (!description)
        return gpusim_fail(cudaErrorInvalidValue);
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC driver_description = {
        .offset = description->offset,
        .arrayDesc = {.Width = description->extent.width,
                      .Height = description->extent.height,
                      .Depth = description->extent.depth,
                      .Flags = description->flags},
        .numLevels = description->numLevels};
    cudaError_t error =
        gpusim_array_format(&description->formatDesc, &driver_description.arrayDesc.Format,
                            &driver_description.arrayDesc.NumChannels);
    if (error != cudaSuccess)
        return gpusim_fail(error);
    return CALL(cuExternalMemoryGetMappedMipmappedArray, 10000, (CUmipmappedArray *)(void *)mipmap,
                (CUexternalMemory)memory, &driver_description);
}

cudaError_t cudaDestroyExternalMemory(cudaExternalMemory_t memory)
{
    return CALL(cuDestroyExternalMemory, 10000, (CUexternalMemory)memory);
}

cudaError_t cudaImportExternalSemaphore(cudaExternalSemaphore_t *semaphore,
                                        const struct cudaExternalSemaphoreHandleDesc *description)
{
    return CALL(cuImportExternalSemaphore, 10000, (CUexternalSemaphore *)(void *)semaphore,
                (const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *)(const void *)description);
}

cudaError_t cudaDestroyExternalSemaphore(cudaExternalSemaphore_t semaphore)
{
    return CALL(cuDestroyExternalSemaphore, 10000, (CUexternalSemaphore)semaphore);
}
