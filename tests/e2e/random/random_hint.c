/* Random program: hints about managed memory, one by one and in batches, of all ABIs. */
#include "random.h"

CUresult cuMemPrefetchAsync_v1(CUdeviceptr, size_t, CUdevice,
                               CUstream) __asm__("cuMemPrefetchAsync" PTSZ);
CUresult cuMemAdvise_v1(CUdeviceptr, size_t, CUmem_advise, CUdevice) __asm__("cuMemAdvise");

static int find_managed(void)
{
    for (int i = object_count; i-- > 0;)
        if (objects[i].family == LINEAR && objects[i].managed)
            return i;
    return -1;
}

static void batch(CUdeviceptr address, size_t size)
{
    const cudaStream_t stream = random_stream();
    CUdeviceptr addresses[2] = {address, address};
    void *runtime_addresses[2] = {(void *)address, (void *)address};
    size_t sizes[2] = {size, size / 2 + 1}, starts[1] = {0};
    CUmemLocation to[1] = {{.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = current_device()}};
    struct cudaMemLocation runtime_to[1] = {
        {.type = cudaMemLocationTypeDevice, .id = current_device()}};
    switch (pick(6)) {
    case 0:
        LOG(cuMemPrefetchBatchAsync(addresses, sizes, 2, to, starts, 1, 0, stream));
        break;
    case 1:
        LOG(cuMemDiscardBatchAsync(addresses, sizes, 2, 0, stream));
        break;
    case 2:
        LOG(cuMemDiscardAndPrefetchBatchAsync(addresses, sizes, 2, to, starts, 1, 0, stream));
        break;
    case 3:
        LOG(cudaMemPrefetchBatchAsync(runtime_addresses, sizes, 2, runtime_to, starts, 1, 0,
                                      stream));
        break;
    case 4:
        LOG(cudaMemDiscardBatchAsync(runtime_addresses, sizes, 2, 0, stream));
        break;
    default:
        LOG(cudaMemDiscardAndPrefetchBatchAsync(runtime_addresses, sizes, 2, runtime_to, starts, 1,
                                                0, stream));
    }
}

void STEP(hint)(void)
{
    const int index = find_managed();
    if (index < 0)
        return;
    const CUdeviceptr address = (CUdeviceptr)objects[index].pointer;
    void *const pointer = objects[index].pointer;
    const size_t size = objects[index].size;
    const cudaStream_t stream = random_stream();
    const CUmemLocation to = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = current_device()};
    const struct cudaMemLocation runtime_to = {.type = cudaMemLocationTypeDevice,
                                               .id = current_device()};
    switch (pick(12)) {
    case 0:
        LOG_AS("cuMemPrefetchAsync" PTSZ,
               cuMemPrefetchAsync_v1(address, size, pick(2) ? CU_DEVICE_CPU : 0, stream));
        break;
    case 1:
        LOG(cuMemPrefetchAsync(address, size, to, 0, stream));
        break;
    case 2:
        LOG(cudaMemPrefetchAsync(pointer, size, runtime_to, 0, stream));
        break;
    case 3:
        LOG_AS("cuMemAdvise",
               cuMemAdvise_v1(address, size, CU_MEM_ADVISE_SET_READ_MOSTLY, CU_DEVICE_CPU));
        break;
    case 4:
        LOG(cuMemAdvise(address, size, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, to));
        break;
    case 5:
        LOG(cudaMemAdvise(pointer, size, cudaMemAdviseSetAccessedBy, runtime_to));
        break;
    case 6:
        LOG(cuStreamAttachMemAsync(stream, address, 0, CU_MEM_ATTACH_GLOBAL));
        break;
    case 7:
        LOG(cudaStreamAttachMemAsync(stream, pointer, 0, cudaMemAttachHost));
        break;
    default:
        batch(address, size);
    }
}
