/*
 * Multicast objects. They have no memory of their own and keep bound memory alive, except for
 * memory of a pool, which can be bound by its address and which the pool keeps. Their mappings
 * cannot be copied to or from, as on a GPU, where only kernels use them. A file holds what the
 * processes share that one of them exports an object to; each process has its own bindings.
 */
#include "memory.h"
#include "newer.h"
#include "vmm.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

struct binding {
    struct gpusim_physical *physical; /* NULL: memory of a pool */
    const struct gpusim_device *device;
    uint64_t offset, size;
    struct binding *next;
};

/* In the file. */
struct shared {
    CUmulticastObjectProp properties;
    _Atomic uint32_t devices;
};

struct gpusim_multicast {
    struct shared *shared;
    int fd;
    bool is_exported; /* or imported */
    struct binding *bindings;
};

static struct gpusim_physical *team_of(CUmemGenericAllocationHandle handle)
{
    struct gpusim_physical *physical = gpusim_physical_of(handle);

    return physical && physical->multicast ? physical : NULL;
}

static void unbind_memory(struct binding **link)
{
    struct binding *binding = *link;
    struct gpusim_physical *physical = binding->physical;

    *link = binding->next;
    free(binding);
    if (!physical)
        return;
    physical->uses--;
    gpusim_physical_drop_if_unused(physical);
}

void gpusim_multicast_delete(struct gpusim_multicast *team)
{
    while (team->bindings)
        unbind_memory(&team->bindings);
    munmap(team->shared, sizeof(*team->shared));
    close(team->fd);
    free(team);
}

static CUresult check_properties(const CUmulticastObjectProp *properties)
{
    if (!properties || properties->numDevices == 0 || properties->flags != 0 ||
        properties->numDevices > (unsigned int)gpusim_settings.device_count)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

/* The object of a file, which it takes; NULL without one. */
static struct gpusim_physical *new_object(int fd)
{
    struct shared *shared =
        fd < 0 ? MAP_FAILED
               : mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    struct gpusim_multicast *team = shared == MAP_FAILED ? NULL : calloc(1, sizeof(*team));
    struct gpusim_physical *physical =
        team ? gpusim_object_new(sizeof(*physical), GPUSIM_TYPE_PHYSICAL, NULL) : NULL;

    if (!physical) {
        free(team);
        if (shared != MAP_FAILED)
            munmap(shared, sizeof(*shared));
        if (fd >= 0)
            close(fd);
        return NULL;
    }
    *team = (struct gpusim_multicast){.shared = shared, .fd = fd};
    physical->size = shared->properties.size;
    physical->fd = -1;
    physical->multicast = true;
    physical->references = 1;
    physical->team = team;
    return physical;
}

CUresult gpusim_multicast_new(uint64_t size, unsigned int devices, struct gpusim_physical **object)
{
    const struct shared shared = {.properties = {.numDevices = devices, .size = size}};

    GPUSIM_TRY(check_properties(&shared.properties));
    int fd =
        memfd_create("gpusim-team-0", MFD_CLOEXEC); /* gpusim_memory_file_number reads a number */
    if (fd >= 0 && write(fd, &shared, sizeof(shared)) != sizeof(shared)) {
        close(fd);
        fd = -1;
    }
    *object = new_object(fd);
    return *object ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

int gpusim_multicast_export(struct gpusim_multicast *team)
{
    team->is_exported = true;
    return fcntl(team->fd, F_DUPFD_CLOEXEC, 3);
}

struct gpusim_physical *gpusim_multicast_import(int fd)
{
    int number;

    if (!gpusim_memory_file_number(fd, "gpusim-team-", &number))
        return NULL;
    struct gpusim_physical *physical = new_object(fcntl(fd, F_DUPFD_CLOEXEC, 3));
    if (physical)
        physical->team->is_exported = true;
    return physical;
}

CUresult cuMulticastCreate(CUmemGenericAllocationHandle *handle,
                           const CUmulticastObjectProp *properties)
{
    GPUSIM_ENTER();
    struct gpusim_physical *object;

    GPUSIM_TRY(check_properties(properties));
    if (!handle || properties->size == 0 || properties->size % GPUSIM_GRANULARITY)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_multicast_new(properties->size, properties->numDevices, &object));
    *handle = object->base.handle;
    return CUDA_SUCCESS;
}

CUresult cuMulticastGetGranularity(size_t *granularity, const CUmulticastObjectProp *properties,
                                   CUmulticastGranularity_flags option)
{
    GPUSIM_ENTER();
    if (!granularity || (unsigned int)option > CU_MULTICAST_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(check_properties(properties));
    *granularity = GPUSIM_GRANULARITY;
    return CUDA_SUCCESS;
}

CUresult gpusim_multicast_add(struct gpusim_physical *object, CUdevice ordinal)
{
    if (!gpusim_device_of(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    struct shared *shared = object->team->shared;
    uint32_t before = atomic_load(&shared->devices), devices;
    do {
        devices = before | 1u << ordinal;
        if (devices == before ||
            (unsigned int)__builtin_popcount(devices) > shared->properties.numDevices)
            return CUDA_ERROR_INVALID_VALUE;
    } while (!atomic_compare_exchange_weak(&shared->devices, &before, devices));
    syscall(SYS_futex, &shared->devices, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return CUDA_SUCCESS;
}

CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice ordinal)
{
    GPUSIM_ENTER();
    struct gpusim_physical *object = team_of(handle);

    return object ? gpusim_multicast_add(object, ordinal) : CUDA_ERROR_INVALID_VALUE;
}

/* The memory to be bound: a part of physical memory or of a pool's. */
struct part {
    struct gpusim_physical *physical; /* NULL: of a pool */
    const struct gpusim_device *device;
    uint64_t offset, whole; /* where the part starts within `whole` bytes */
};

static struct part part_of(struct gpusim_physical *physical, uint64_t offset)
{
    return (struct part){physical, physical->device, offset, physical->size};
}

static bool is_complete(const struct gpusim_multicast *team, uint32_t devices)
{
    return (unsigned int)__builtin_popcount(devices) == team->shared->properties.numDevices;
}

/* The devices that an object has so far, if others may follow: `*devices` is NULL otherwise. */
static CUresult look_at_devices(CUmemGenericAllocationHandle handle, _Atomic uint32_t **devices,
                                uint32_t *seen)
{
    GPUSIM_ENTER();
    const struct gpusim_physical *object = team_of(handle);

    *devices = object && object->team->is_exported ? &object->team->shared->devices : NULL;
    *seen = *devices ? atomic_load(*devices) : 0;
    if (*devices && is_complete(object->team, *seen))
        *devices = NULL;
    return CUDA_SUCCESS;
}

/* CUDA: binding blocks until all devices have been added. Here only if other processes may add them: a program by itself
 * is told of its mistake. */
static CUresult wait_for_devices(CUmemGenericAllocationHandle handle)
{
    _Atomic uint32_t *devices;
    uint32_t seen;

    for (;;) {
        GPUSIM_TRY(look_at_devices(handle, &devices, &seen));
        if (!devices)
            return CUDA_SUCCESS;
        syscall(SYS_futex, devices, FUTEX_WAIT, seen, NULL, NULL, 0);
    }
}

static bool is_in_use(const struct gpusim_multicast *team, const struct gpusim_device *device,
                      uint64_t offset, uint64_t size)
{
    for (const struct binding *other = team->bindings; other; other = other->next)
        if (other->device == device && offset < other->offset + other->size &&
            other->offset < offset + size)
            return true;
    return false;
}

static CUresult bind_memory(struct gpusim_physical *object, uint64_t offset, struct part part,
                            uint64_t size)
{
    struct gpusim_multicast *team = object->team;

    if (!part.device || (part.physical && part.physical->multicast) || size == 0 ||
        size % GPUSIM_GRANULARITY || offset % GPUSIM_GRANULARITY ||
        part.offset % GPUSIM_GRANULARITY || offset > object->size || size > object->size - offset ||
        part.offset > part.whole || size > part.whole - part.offset)
        return CUDA_ERROR_INVALID_VALUE;
    uint32_t devices = atomic_load(&team->shared->devices);
    if (!is_complete(team, devices))
        return CUDA_ERROR_ILLEGAL_STATE;
    if (!(devices & 1u << part.device->ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    if (is_in_use(team, part.device, offset, size))
        return CUDA_ERROR_INVALID_VALUE;
    struct binding *binding = calloc(1, sizeof(*binding));
    if (!binding)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *binding = (struct binding){part.physical, part.device, offset, size, team->bindings};
    team->bindings = binding;
    if (part.physical)
        part.physical->uses++;
    return CUDA_SUCCESS;
}

/* The newer ABIs name the device, which must be the memory's; the older ones do not, and pass
 * -1. */
static bool is_device_of(CUdevice ordinal, const struct gpusim_device *device)
{
    return ordinal == -1 || (device && device->ordinal == ordinal);
}

CUresult gpusim_multicast_bind_memory(struct gpusim_physical *object, CUdevice device,
                                      uint64_t offset, CUmemGenericAllocationHandle handle,
                                      uint64_t memory_offset, uint64_t size,
                                      unsigned long long flags)
{
    struct gpusim_physical *memory = gpusim_physical_of(handle);

    if (!object || !memory || flags != 0 || !is_device_of(device, memory->device))
        return CUDA_ERROR_INVALID_VALUE;
    return bind_memory(object, offset, part_of(memory, memory_offset), size);
}

CUresult gpusim_multicast_bind_address(struct gpusim_physical *object, CUdevice device,
                                       uint64_t offset, CUdeviceptr pointer, uint64_t size,
                                       unsigned long long flags)
{
    const struct gpusim_allocation *allocation = gpusim_allocation_at(pointer);

    if (!object || flags != 0 || !allocation ||
        (allocation->origin != GPUSIM_FROM_MAPPING &&
         !(allocation->origin == GPUSIM_FROM_POOL && gpusim_is_on_device(pointer))))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t inside = pointer - allocation->range.start;
    struct part part =
        allocation->origin == GPUSIM_FROM_MAPPING
            ? part_of(allocation->physical, allocation->physical_offset + inside)
            : (struct part){NULL, allocation->device, inside, allocation->range.size};
    return is_device_of(device, part.device) ? bind_memory(object, offset, part, size)
                                             : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset,
                            CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
                            unsigned long long flags)
{
    GPUSIM_TRY(wait_for_devices(handle));
    GPUSIM_ENTER();
    return gpusim_multicast_bind_memory(team_of(handle), -1, offset, memory, memory_offset, size,
                                        flags);
}

CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle handle, CUdevice device, size_t offset,
                               CUmemGenericAllocationHandle memory, size_t memory_offset,
                               size_t size, unsigned long long flags)
{
    GPUSIM_TRY(wait_for_devices(handle));
    GPUSIM_ENTER();
    if (!gpusim_device_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    return gpusim_multicast_bind_memory(team_of(handle), device, offset, memory, memory_offset,
                                        size, flags);
}

CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t offset,
                             CUdeviceptr pointer, size_t size, unsigned long long flags)
{
    GPUSIM_TRY(wait_for_devices(handle));
    GPUSIM_ENTER();
    return gpusim_multicast_bind_address(team_of(handle), -1, offset, pointer, size, flags);
}

CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle handle, CUdevice device, size_t offset,
                                CUdeviceptr pointer, size_t size, unsigned long long flags)
{
    GPUSIM_TRY(wait_for_devices(handle));
    GPUSIM_ENTER();
    if (!gpusim_device_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    return gpusim_multicast_bind_address(team_of(handle), device, offset, pointer, size, flags);
}

CUresult gpusim_multicast_unbind(struct gpusim_physical *object, CUdevice ordinal, uint64_t offset,
                                 uint64_t size)
{
    for (struct binding **link = &object->team->bindings; *link; link = &(*link)->next) {
        struct binding *binding = *link;

        if (binding->device->ordinal == ordinal && binding->offset == offset &&
            binding->size == size) {
            GPUSIM_TRY(gpusim_free_begin());
            unbind_memory(link);
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice ordinal, size_t offset,
                           size_t size)
{
    GPUSIM_ENTER();
    struct gpusim_physical *object = team_of(handle);

    return object ? gpusim_multicast_unbind(object, ordinal, offset, size)
                  : CUDA_ERROR_INVALID_VALUE;
}
