/*
 * Handles of memory and of events between processes. A handle of memory says where the exporter's
 * linear memory is: its process, the descriptor of the device's memory file there, and the place in
 * it. Opening maps the same pages. This process must be allowed to read the exporter's /proc, as a
 * debugger must. A handle of an event says nothing but that it is one: work is done when it is
 * submitted, so what another process recorded has happened.
 */
#include "memory.h"
#include "stream.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct memory_handle {
    char magic[8];
    int32_t process, fd;
    uint64_t offset, size, id;
};

static const char memory_magic[] = "gpusimIM";

CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr pointer)
{
    GPUSIM_ENTER_CONTEXT(context);
    struct gpusim_allocation *allocation = gpusim_allocation_at(pointer);

    (void)context;
    if (!handle || !allocation || allocation->origin != GPUSIM_FROM_LINEAR)
        return CUDA_ERROR_INVALID_VALUE;
    struct memory_handle made = {
        .process = (int32_t)getpid(),
        .fd = allocation->device->linear.fd,
        .offset = allocation->range.start - allocation->device->linear.base,
        .size = allocation->range.size,
        .id = allocation->id,
    };
    memcpy(made.magic, memory_magic, sizeof(made.magic));
    memset(handle, 0, sizeof(*handle));
    memcpy(handle, &made, sizeof(made));
    return CUDA_SUCCESS;
}

/* The open of that allocation in this process, or NULL. */
static struct gpusim_allocation *find_open(const struct memory_handle *handle)
{
    struct gpusim_allocation *allocation = gpusim_allocation_next(0);

    while (allocation &&
           (allocation->origin != GPUSIM_FROM_IPC || allocation->exporter_id != handle->id ||
            allocation->exporter != (uint64_t)handle->process))
        allocation = gpusim_allocation_next(allocation->range.start + 1);
    return allocation;
}

static CUresult map_ipc_memory(const struct memory_handle *handle, struct gpusim_context *context,
                               struct gpusim_allocation **made)
{
    char path[64];
    int unused;
    uint64_t pages, pages_size;

    snprintf(path, sizeof(path), "/proc/%d/fd/%d", handle->process, handle->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return CUDA_ERROR_INVALID_HANDLE;
    uint64_t address =
        gpusim_memory_file_number(fd, "gpusim-linear-", &unused)
            ? gpusim_map_external(fd, handle->offset, handle->size, &pages, &pages_size)
            : 0;
    close(fd);
    if (!address)
        return CUDA_ERROR_MAP_FAILED;
    *made = gpusim_allocation_add(GPUSIM_FROM_IPC, address, handle->size, context->device, context);
    if (!*made) {
        gpusim_unmap_external(pages, pages_size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    (*made)->mapped_at = pages;
    (*made)->mapped_size = pages_size;
    return CUDA_SUCCESS;
}

static CUresult open_memory(CUdeviceptr *pointer, const CUipcMemHandle *opaque, unsigned int flags)
{
    struct gpusim_context *context;
    struct memory_handle handle;

    GPUSIM_TRY(gpusim_allocation_begin());
    GPUSIM_TRY(gpusim_current(&context));
    memcpy(&handle, opaque, sizeof(handle));
    if (!pointer || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)
        return CUDA_ERROR_INVALID_VALUE;
    if (memcmp(handle.magic, memory_magic, sizeof(handle.magic)) != 0 || handle.size == 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (handle.process == (int32_t)getpid())
        return CUDA_ERROR_INVALID_CONTEXT; /* the exporter cannot open its own memory */

    struct gpusim_allocation *allocation = find_open(&handle);
    if (!allocation) {
        GPUSIM_TRY(map_ipc_memory(&handle, context, &allocation));
        allocation->counted = 0; /* the call does not have the size */
        allocation->exporter = (uint64_t)handle.process;
        allocation->exporter_id = handle.id;
        gpusim_count_alloc(context->device, GPUSIM_EXTERNAL, 0);
    }
    allocation->opens++;
    *pointer = allocation->range.start;
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
    GPUSIM_ENTER_FAILED();
    return gpusim_allocation_end(open_memory(pointer, &handle, flags));
}

CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle, unsigned int flags)
{
    return cuIpcOpenMemHandle_v2(pointer, handle, flags);
}

CUresult cuIpcCloseMemHandle(CUdeviceptr pointer)
{
    GPUSIM_ENTER_CONTEXT(context);
    struct gpusim_allocation *allocation = gpusim_allocation_from(pointer);

    (void)context;
    if (!allocation || allocation->origin != GPUSIM_FROM_IPC)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_free_begin());
    if (--allocation->opens == 0)
        gpusim_allocation_free(allocation, false);
    return CUDA_SUCCESS;
}

struct event_handle {
    char magic[8];
    int32_t process;
};

static const char event_magic[] = "gpusimIE";

CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent opaque)
{
    GPUSIM_ENTER();
    struct gpusim_event *event = GPUSIM_FIND(opaque, GPUSIM_TYPE_EVENT);
    struct event_handle made = {.process = (int32_t)getpid()};

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!handle || !(event->flags & CU_EVENT_INTERPROCESS))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(made.magic, event_magic, sizeof(made.magic));
    memset(handle, 0, sizeof(*handle));
    memcpy(handle, &made, sizeof(made));
    return CUDA_SUCCESS;
}

CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle opaque)
{
    struct event_handle handle;

    GPUSIM_TRY(gpusim_ready());
    memcpy(&handle, &opaque, sizeof(handle));
    if (memcmp(handle.magic, event_magic, sizeof(handle.magic)) != 0)
        return CUDA_ERROR_INVALID_HANDLE;
    if (handle.process == (int32_t)getpid())
        return CUDA_ERROR_INVALID_CONTEXT; /* the exporter cannot open its own event */
    return cuEventCreate(event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
}
