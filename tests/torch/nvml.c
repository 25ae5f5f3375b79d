/*
 * A management library (libnvidia-ml.so.1) with one device and no data about it: PyTorch asks it
 * whether it can share expandable segments over NVLink, and calls through NULL if the library is
 * missing. For tests/torch/run_wheel only.
 *
 * Declares its functions itself, because not every toolkit has nvml.h. The functions that PyTorch
 * looks up but does not call answer "not supported".
 */
#include <stddef.h>

enum { NVML_SUCCESS = 0, NVML_ERROR_INVALID_ARGUMENT = 2, NVML_ERROR_NOT_SUPPORTED = 3 };

static int the_device;

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device);
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, void **device)
{
    if (bus_id == NULL || device == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device = &the_device;
    return NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned int *count, void *processes);
int nvmlDeviceGetComputeRunningProcesses(void *device, unsigned int *count, void *processes)
{
    (void)processes;
    if (device != &the_device || count == NULL)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version);
int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    (void)version;
    return NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned int link, int *type);
int nvmlDeviceGetNvLinkRemoteDeviceType(void *device, unsigned int link, int *type)
{
    (void)device;
    (void)link;
    (void)type;
    return NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned int link, void *info);
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *device, unsigned int link, void *info)
{
    (void)device;
    (void)link;
    (void)info;
    return NVML_ERROR_NOT_SUPPORTED;
}
