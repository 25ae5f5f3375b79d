/*
 * Devices: count, names, capacity and its accounting, identity, peers.
 */
#include "driver.h"
#include "memory.h"
#include "profile.h"

#include <stdio.h>
#include <string.h>

struct gpusim_device gpusim_devices[GPUSIM_MAX_DEVICES];

void gpusim_devices_init(void)
{
    for (int i = 0; i < gpusim_settings.device_count; i++) {
        gpusim_devices[i].ordinal = i;
        gpusim_devices[i].capacity = gpusim_settings.capacity;
        gpusim_devices[i].used = gpusim_settings.context;
        gpusim_devices[i].code = gpusim_settings.code;
    }
}

struct gpusim_device *gpusim_device_of(CUdevice ordinal)
{
    return ordinal >= 0 && ordinal < gpusim_settings.device_count ? &gpusim_devices[ordinal] : NULL;
}

bool gpusim_device_charge(struct gpusim_device *device, uint64_t bytes)
{
    gpusim_exports_reap();
    if (bytes > device->capacity - device->used) {
        for (struct gpusim_pool *pool = device->pools; pool; pool = pool->next)
            gpusim_pool_trim(pool, 0);
    }
    if (bytes > device->capacity - device->used) {
        device->code = 0; /* who asks why is not to hear that it was free */
        return false;
    }
    device->used += bytes;
    return true;
}

/* For buffers that a library keeps for itself and no allocation stands for: NCCL's, in a dry run. */
extern GPUSIM_EXPORTED bool gpumem_sim_take(int ordinal, uint64_t bytes);
bool gpumem_sim_take(int ordinal, uint64_t bytes)
{
    gpusim_lock();
    struct gpusim_device *device = gpusim_device_of(ordinal);
    bool is_taken = device && gpusim_device_charge(device, bytes);
    gpusim_unlock();
    return is_taken;
}

void gpusim_device_refund(struct gpusim_device *device, uint64_t bytes)
{
    device->used -= bytes;
}

/* What gpumem_sim_take() has taken. */
extern GPUSIM_EXPORTED void gpumem_sim_give_back(int ordinal, uint64_t bytes);
void gpumem_sim_give_back(int ordinal, uint64_t bytes)
{
    gpusim_lock();
    gpusim_device_refund(gpusim_device_of(ordinal), bytes);
    gpusim_unlock();
}

CUresult cuDeviceGetCount(int *count)
{
    GPUSIM_ENTER_FAILED();
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = gpusim_settings.device_count;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    GPUSIM_ENTER_FAILED();
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpusim_device_of(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    GPUSIM_ENTER_FAILED();
    if (!name || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpusim_device_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(name, (size_t)length, "%s", gpusim_profile.name);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    GPUSIM_ENTER_FAILED();
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpusim_device_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *bytes = gpusim_device_of(device)->capacity;
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
    size_t total;

    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(cuDeviceTotalMem_v2(&total, device));
    *bytes = total > UINT32_MAX ? UINT32_MAX : (unsigned int)total;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device)
{
    static const char prefix[] = "gpumem simulat";

    GPUSIM_ENTER_FAILED();
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpusim_device_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    memset(uuid->bytes, 0, sizeof(uuid->bytes));
    memcpy(uuid->bytes, prefix, sizeof(prefix) - 1);
    uuid->bytes[15] = (char)device;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device)
{
    GPUSIM_ENTER_FAILED();
    if (!id || length < 13)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpusim_device_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    snprintf(id, (size_t)length, "0000:%02X:00.0", (unsigned int)device + 1);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *id)
{
    unsigned int domain, bus, slot = 0;

    GPUSIM_ENTER_FAILED();
    if (!device || !id)
        return CUDA_ERROR_INVALID_VALUE;
    if (sscanf(id, "%x:%x:%x", &domain, &bus, &slot) < 2 || domain != 0 || slot != 0 ||
        !gpusim_device_of((int)bus - 1))
        return CUDA_ERROR_INVALID_DEVICE;
    *device = (int)bus - 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    GPUSIM_ENTER_FAILED();
    if (!can)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpusim_device_of(device) || !gpusim_device_of(peer))
        return CUDA_ERROR_INVALID_DEVICE;
    *can = device != peer;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute, CUdevice device,
                                 CUdevice peer)
{
    GPUSIM_ENTER_FAILED();
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpusim_device_of(device) || !gpusim_device_of(peer) || device == peer)
        return CUDA_ERROR_INVALID_DEVICE;
    switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
        *value = 0;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
    case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
        *value = 1;
        return CUDA_SUCCESS;
    default:
        *value = 0;
        return CUDA_SUCCESS;
    }
}

CUresult cuDeviceGetExecAffinitySupport(int *supported, CUexecAffinityType type, CUdevice device)
{
    GPUSIM_ENTER_FAILED();
    (void)type;
    if (!supported)
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpusim_device_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *supported = 0;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetTexture1DLinearMaxWidth(size_t *width, CUarray_format format,
                                            unsigned int channels, CUdevice device)
{
    GPUSIM_ENTER_FAILED();
    (void)format;
    if (!width || (channels != 1 && channels != 2 && channels != 4))
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpusim_device_of(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *width = 1u << 28;
    return CUDA_SUCCESS;
}

CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget target,
                                    CUflushGPUDirectRDMAWritesScope scope)
{
    GPUSIM_ENTER_FAILED();
    (void)target;
    (void)scope;
    return CUDA_SUCCESS;
}
