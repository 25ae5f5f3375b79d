/*
 * Virtual memory management: physical memory, address reservations, mappings, access, sharing.
 *
 * Each piece of physical memory is a memory file, so that every mapping shows the same contents and
 * another process can get its descriptor. When the process runs out of descriptors, the driver
 * raises the soft limit to the hard one.
 */
#include "vmm.h"
#include "contents.h"
#include "memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct gpusim_ranges reservations;

struct gpusim_physical *gpusim_physical_of(CUmemGenericAllocationHandle handle)
{
    struct gpusim_physical *physical = gpusim_object_of(handle, GPUSIM_TYPE_PHYSICAL);

    return physical && physical->references ? physical : NULL;
}

/* ---- memory that an exported descriptor keeps ------------------------------------------------ */

/*
 * cuMemRelease: "The memory allocation will be freed when all outstanding mappings to the memory are
 * unmapped and when all outstanding references to the handle (including it's shareable counterparts)
 * are also released." What a descriptor keeps has no handle here: it only takes its room.
 *
 * An exported descriptor has an open file and a shared lock of its own, which the system takes back
 * when the last copy of it in any process is closed.
 */
static struct kept {
    struct kept *next;
    struct gpusim_device *device;
    uint64_t size;
    int fd;
} * kept;

static int export_file(int file)
{
    char path[32];

    snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_SH) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool is_open_elsewhere(int fd)
{
    return flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/* Closes the file of physical memory of a device, and gives its room back as soon as no exported
 * descriptor keeps it. */
static void give_room_back(struct gpusim_device *device, uint64_t size, int fd, bool exported)
{
    struct kept *entry = exported && is_open_elsewhere(fd) ? malloc(sizeof(*entry)) : NULL;

    if (entry) {
        *entry = (struct kept){kept, device, size, fd};
        kept = entry;
        return;
    }
    gpusim_device_refund(device, size);
    close(fd);
}

void gpusim_exports_reap(void)
{
    for (struct kept **link = &kept; *link;) {
        struct kept *entry = *link;

        if (is_open_elsewhere(entry->fd)) {
            link = &entry->next;
            continue;
        }
        *link = entry->next;
        gpusim_device_refund(entry->device, entry->size);
        close(entry->fd);
        free(entry);
    }
}

/* ---- physical memory ------------------------------------------------------------------------- */

static bool is_host(const CUmemLocation *location)
{
    return location->type == CU_MEM_LOCATION_TYPE_HOST ||
           location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
           location->type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
}

static CUresult check_properties(const CUmemAllocationProp *properties,
                                 struct gpusim_device **device)
{
    if (!properties || properties->type != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    if ((unsigned int)properties->requestedHandleTypes &
        ~(unsigned int)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    *device = NULL;
    if (is_host(&properties->location))
        return CUDA_SUCCESS;
    if (properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    *device = gpusim_device_of(properties->location.id);
    return *device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

static bool raise_file_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
        return false;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &limit) == 0;
}

static int new_file(const struct gpusim_device *device, uint64_t size)
{
    char name[32]; /* the number gives an importer the device; -1 is the host */

    snprintf(name, sizeof(name), "gpusim-vmm-%d", device ? device->ordinal : -1);
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0 && errno == EMFILE && raise_file_limit())
        fd = memfd_create(name, MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, (off_t)size) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static CUresult create_physical(CUmemGenericAllocationHandle *handle, size_t size,
                                const CUmemAllocationProp *properties, unsigned long long flags)
{
    struct gpusim_device *device;

    GPUSIM_TRY(gpusim_allocation_begin());
    GPUSIM_TRY(check_properties(properties, &device));
    if (!handle || flags != 0 || size == 0 || size % GPUSIM_GRANULARITY)
        return CUDA_ERROR_INVALID_VALUE;
    if (device && !gpusim_device_charge(device, size))
        return CUDA_ERROR_OUT_OF_MEMORY;

    int fd = new_file(device, size);
    struct gpusim_physical *physical =
        fd < 0 ? NULL : gpusim_object_new(sizeof(*physical), GPUSIM_TYPE_PHYSICAL, NULL);
    if (!physical) {
        if (fd >= 0)
            close(fd);
        if (device)
            gpusim_device_refund(device, size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    physical->properties = *properties;
    physical->size = size;
    physical->fd = fd;
    physical->device = device;
    physical->references = 1;
    if (device)
        gpusim_count_alloc(device, GPUSIM_VMM, size);
    else
        gpusim_count_host_alloc(GPUSIM_HOST_VMM, size);
    *handle = physical->base.handle;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                     const CUmemAllocationProp *properties, unsigned long long flags)
{
    GPUSIM_ENTER_FAILED();
    return gpusim_allocation_end(create_physical(handle, size, properties, flags));
}

void gpusim_physical_drop_if_unused(struct gpusim_physical *physical)
{
    if (physical->references || physical->uses)
        return;
    struct gpusim_physical *same = physical->same;
    if (same) {
        same->uses--;
    } else if (physical->imported) {
        gpusim_count_free(physical->device ? physical->device : &gpusim_devices[0], GPUSIM_EXTERNAL,
                          physical->counted, false);
    } else if (physical->device) {
        gpusim_count_free(physical->device, GPUSIM_VMM, physical->size, false);
        give_room_back(physical->device, physical->size, physical->fd, physical->exported);
        physical->fd = -1;
    } else if (!physical->multicast) {
        gpusim_count_host_free(GPUSIM_HOST_VMM, physical->size, false);
    }
    if (physical->fd >= 0)
        close(physical->fd);
    struct gpusim_multicast *team = physical->team;
    gpusim_object_delete(physical);
    if (team)
        gpusim_multicast_delete(team);
    if (same)
        gpusim_physical_drop_if_unused(same);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    GPUSIM_ENTER();
    struct gpusim_physical *physical = gpusim_physical_of(handle);

    if (!physical)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_free_begin());
    physical->references--;
    gpusim_physical_drop_if_unused(physical);
    return CUDA_SUCCESS;
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *pointer)
{
    GPUSIM_ENTER();
    struct gpusim_allocation *allocation = gpusim_allocation_at((uint64_t)(uintptr_t)pointer);

    if (!handle || !allocation || allocation->origin != GPUSIM_FROM_MAPPING)
        return CUDA_ERROR_INVALID_VALUE;
    allocation->physical->references++;
    *handle = allocation->physical->base.handle;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *properties,
                                                CUmemGenericAllocationHandle handle)
{
    GPUSIM_ENTER();
    struct gpusim_physical *physical = gpusim_physical_of(handle);

    if (!properties || !physical)
        return CUDA_ERROR_INVALID_VALUE;
    *properties = physical->properties;
    return CUDA_SUCCESS;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *properties,
                                       CUmemAllocationGranularity_flags option)
{
    GPUSIM_ENTER();
    struct gpusim_device *device;

    if (!granularity || (unsigned int)option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(check_properties(properties, &device));
    *granularity = GPUSIM_GRANULARITY;
    return CUDA_SUCCESS;
}

/* ---- sharing --------------------------------------------------------------------------------- */

static int export_memory(struct gpusim_physical *physical)
{
    int fd = export_file(physical->fd);

    if (fd >= 0)
        (physical->same ? physical->same : physical)->exported = true;
    return fd;
}

CUresult cuMemExportToShareableHandle(void *shared, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    GPUSIM_ENTER();
    struct gpusim_physical *physical = gpusim_physical_of(handle);

    if (!shared || !physical || flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!physical->multicast &&
        !((unsigned int)physical->properties.requestedHandleTypes & (unsigned int)type))
        return CUDA_ERROR_INVALID_VALUE;
    int fd =
        physical->multicast ? gpusim_multicast_export(physical->team) : export_memory(physical);
    if (fd < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    memcpy(shared, &fd, sizeof(fd));
    return CUDA_SUCCESS;
}

struct own_memory {
    struct stat status;
    struct gpusim_physical *found;
};

static void find_own(void *object, uint64_t argument)
{
    struct gpusim_physical *physical = object;
    struct own_memory *own = (struct own_memory *)(uintptr_t)argument;
    struct stat status;

    if (physical->fd >= 0 && !physical->imported && !physical->same &&
        fstat(physical->fd, &status) == 0 && status.st_dev == own->status.st_dev &&
        status.st_ino == own->status.st_ino)
        own->found = physical;
}

/* An import "imports an allocation": in the process that exported it, it is one more handle of the
 * same memory, which is freed when all references to it are released. */
static CUresult import_physical(CUmemGenericAllocationHandle *handle, void *shared,
                                CUmemAllocationHandleType type)
{
    int fd = (int)(intptr_t)shared, ordinal; /* the descriptor itself, cast to a pointer */
    struct own_memory memory = {.found = NULL};

    GPUSIM_TRY(gpusim_allocation_begin());
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    struct gpusim_physical *object = gpusim_multicast_import(fd);
    if (object) {
        *handle = object->base.handle;
        return CUDA_SUCCESS;
    }
    if (!gpusim_memory_file_number(fd, "gpusim-vmm-", &ordinal) || fstat(fd, &memory.status) != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (ordinal >= 0 && !gpusim_device_of(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;

    gpusim_objects_each(GPUSIM_TYPE_PHYSICAL, find_own, (uint64_t)(uintptr_t)&memory);
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    struct gpusim_physical *physical =
        own < 0 ? NULL : gpusim_object_new(sizeof(*physical), GPUSIM_TYPE_PHYSICAL, NULL);
    if (!physical) {
        if (own >= 0)
            close(own);
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    struct gpusim_context *context;
    struct gpusim_device *device = gpusim_device_of(ordinal);
    if (gpusim_current(&context) == CUDA_SUCCESS)
        device = context->device;
    physical->properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    physical->properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    physical->properties.location = (CUmemLocation){
        .type = ordinal < 0 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
        .id = ordinal < 0 ? 0 : ordinal};
    physical->size = (uint64_t)memory.status.st_size;
    physical->fd = own;
    physical->device = device;
    physical->references = 1;
    if (memory.found) {
        physical->properties = memory.found->properties;
        physical->device = memory.found->device;
        physical->same = memory.found;
        physical->same->uses++;
    } else {
        physical->imported = true;
        gpusim_count_alloc(device ? device : &gpusim_devices[0], GPUSIM_EXTERNAL, 0);
    }
    *handle = physical->base.handle;
    return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shared,
                                        CUmemAllocationHandleType type)
{
    GPUSIM_ENTER_FAILED();
    return gpusim_allocation_end(import_physical(handle, shared, type));
}

CUresult cuMemGetHandleForAddressRange(void *shared, CUdeviceptr pointer, size_t size,
                                       CUmemRangeHandleType type, unsigned long long flags)
{
    GPUSIM_ENTER();
    (void)flags;
    if (!shared || !gpusim_allocation_at(pointer) || size == 0 ||
        type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_ERROR_NOT_SUPPORTED; /* the attribute says that there is no DMA-BUF */
}

/* ---- addresses ------------------------------------------------------------------------------- */

static void *map_nothing(void *at, uint64_t size, int fixed)
{
    return mmap(at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | fixed, -1, 0);
}

/* Addresses without memory, at the boundary asked for; 0 when there are none. */
static uint64_t reserve_addresses(uint64_t size, uint64_t alignment, uint64_t hint)
{
    if (hint && hint % alignment == 0) {
        void *there = map_nothing((void *)(uintptr_t)hint, size, MAP_FIXED_NOREPLACE);

        if (there == (void *)(uintptr_t)hint)
            return hint;
        if (there != MAP_FAILED) /* an old kernel treats the flag as a hint */
            munmap(there, size);
    }
    if (size + alignment < size)
        return 0;
    void *span = map_nothing(NULL, size + alignment, 0);
    if (span == MAP_FAILED)
        return 0;
    uint64_t start = (uint64_t)(uintptr_t)span, aligned = gpusim_align_up(start, alignment);
    if (aligned > start)
        munmap(span, aligned - start);
    munmap((void *)(uintptr_t)(aligned + size), start + alignment - aligned);
    return aligned;
}

CUresult cuMemAddressReserve(CUdeviceptr *pointer, size_t size, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags)
{
    GPUSIM_ENTER();
    if (!pointer || size == 0 || size % GPUSIM_GRANULARITY || flags != 0 ||
        (alignment & (alignment - 1)))
        return CUDA_ERROR_INVALID_VALUE;
    if (alignment < GPUSIM_GRANULARITY)
        alignment = GPUSIM_GRANULARITY;

    struct gpusim_range *range = calloc(1, sizeof(*range));
    uint64_t start = range ? reserve_addresses(size, alignment, hint) : 0;
    if (!start) {
        free(range);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    range->start = start;
    range->size = size;
    gpusim_ranges_insert(&reservations, range);
    *pointer = start;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr pointer, size_t size)
{
    GPUSIM_ENTER();
    struct gpusim_range *range = gpusim_ranges_find(&reservations, pointer);

    if (!range || range->start != pointer || range->size != size)
        return CUDA_ERROR_INVALID_VALUE;
    if (gpusim_allocation_overlaps(pointer, size))
        return CUDA_ERROR_INVALID_VALUE; /* something is still mapped there */
    gpusim_ranges_remove(&reservations, range);
    free(range);
    munmap((void *)(uintptr_t)pointer, size);
    return CUDA_SUCCESS;
}

/* ---- mappings -------------------------------------------------------------------------------- */

static bool is_reserved(uint64_t address, uint64_t size)
{
    struct gpusim_range *range = gpusim_ranges_find(&reservations, address);

    return range && size <= range->start + range->size - address;
}

CUresult cuMemMap(CUdeviceptr pointer, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    GPUSIM_ENTER();
    struct gpusim_physical *physical = gpusim_physical_of(handle);

    if (!physical || flags != 0 || size == 0 || size % GPUSIM_GRANULARITY ||
        pointer % GPUSIM_GRANULARITY || offset % GPUSIM_GRANULARITY || offset > physical->size ||
        size > physical->size - offset || !is_reserved(pointer, size))
        return CUDA_ERROR_INVALID_VALUE;
    if (gpusim_allocation_overlaps(pointer, size))
        return CUDA_ERROR_ALREADY_MAPPED;
    /* Copies need access, which gpusim_check_access enforces. */
    if (physical->fd >= 0 &&
        mmap((void *)(uintptr_t)pointer, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             physical->fd, (off_t)offset) == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct gpusim_allocation *allocation =
        gpusim_allocation_add(GPUSIM_FROM_MAPPING, pointer, size,
                              physical->device ? physical->device : &gpusim_devices[0], NULL);
    if (!allocation) {
        map_nothing((void *)(uintptr_t)pointer, size, MAP_FIXED);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocation->physical = physical;
    allocation->physical_offset = offset;
    physical->uses++;
    if (physical->imported && offset + size > physical->counted) {
        gpusim_count_more(allocation->device, GPUSIM_EXTERNAL, offset + size - physical->counted);
        physical->counted = offset + size;
    }
    return CUDA_SUCCESS;
}

/* Whether whole mappings, one after another, fill the span exactly. */
static bool is_mapped(uint64_t pointer, uint64_t size)
{
    uint64_t at = pointer;

    while (at < pointer + size) {
        struct gpusim_allocation *allocation = gpusim_allocation_from(at);

        if (!allocation || allocation->origin != GPUSIM_FROM_MAPPING)
            return false;
        at += allocation->range.size;
    }
    return at == pointer + size && size > 0;
}

CUresult cuMemUnmap(CUdeviceptr pointer, size_t size)
{
    GPUSIM_ENTER();
    if (!is_mapped(pointer, size))
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_free_begin());
    for (uint64_t at = pointer; at < pointer + size;) {
        struct gpusim_allocation *allocation = gpusim_allocation_from(at);
        struct gpusim_physical *physical = allocation->physical;

        at += allocation->range.size;
        if (physical->device)
            gpusim_contents_drop(allocation->range.start, allocation->range.size);
        gpusim_allocation_drop(allocation);
        physical->uses--;
        gpusim_physical_drop_if_unused(physical);
    }
    map_nothing((void *)(uintptr_t)pointer, size, MAP_FIXED);
    return CUDA_SUCCESS;
}

static CUresult check_access_description(const CUmemAccessDesc *description)
{
    if (description->flags != CU_MEM_ACCESS_FLAGS_PROT_NONE &&
        description->flags != CU_MEM_ACCESS_FLAGS_PROT_READ &&
        description->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
    if (is_host(&description->location))
        return CUDA_SUCCESS;
    if (description->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    return gpusim_device_of(description->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuMemSetAccess(CUdeviceptr pointer, size_t size, const CUmemAccessDesc *descriptions,
                        size_t count)
{
    GPUSIM_ENTER();
    if (!descriptions || count == 0 || !is_mapped(pointer, size))
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count; i++)
        GPUSIM_TRY(check_access_description(&descriptions[i]));
    for (uint64_t at = pointer; at < pointer + size;) {
        struct gpusim_allocation *allocation = gpusim_allocation_from(at);

        for (size_t i = 0; i < count; i++) {
            bool allowed = descriptions[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
            uint32_t bit = 1u << (descriptions[i].location.id & 31);

            if (is_host(&descriptions[i].location))
                allocation->host_access = allowed;
            else if (allowed)
                allocation->device_access |= bit;
            else
                allocation->device_access &= ~bit;
        }
        at += allocation->range.size;
    }
    return CUDA_SUCCESS;
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location,
                        CUdeviceptr pointer)
{
    GPUSIM_ENTER();
    struct gpusim_allocation *allocation = gpusim_allocation_at(pointer);

    if (!flags || !location || !allocation || allocation->origin != GPUSIM_FROM_MAPPING)
        return CUDA_ERROR_INVALID_VALUE;
    bool allowed = is_host(location) ? allocation->host_access
                                     : allocation->device_access >> (location->id & 31) & 1;
    *flags = allowed ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return CUDA_SUCCESS;
}
