/*
 * Random program: mistakes. CUDA refuses each of them; by then the recorder has recorded a free and
 * must take it back.
 */
#include "random.h"

/* Frees of memory that never existed. */
static void free_nonsense(void)
{
    size_t free_bytes;
    switch (pick(8)) {
    case 0:
        LOG(cudaFree((void *)(uintptr_t)(0x1000 + pick(1 << 20))));
        break;
    case 1:
        LOG(cudaFree(NULL)); /* no mistake, and no free */
        break;
    case 2:
        LOG(cudaFreeHost((void *)(uintptr_t)0x4000));
        break;
    case 3:
        LOG(cuMemFree(0xdead000));
        break;
    case 4:
        LOG(cudaMalloc(NULL, 64));
        break;
    case 5:
        LOG(cuMemRelease(0x1234567));
        break;
    case 6:
        LOG(cuMemUnmap(0x40000000, GRANULARITY));
        break;
    default:
        LOG(cuMemGetInfo(&free_bytes, NULL));
    }
}

/* Frees of the wrong kind, or of an address inside an allocation, which lives on. */
static void free_wrongly(void)
{
    const int index = find((enum family)pick(FAMILIES));
    if (index < 0)
        return;
    void *const pointer = objects[index].pointer;
    switch (objects[index].family) {
    case LINEAR:
        if (objects[index].size > 512 && pick(2))
            LOG(cuMemFree((CUdeviceptr)pointer + 256));
        else if (pick(2))
            LOG(cudaFreeHost(pointer));
        else
            LOG(cuIpcCloseMemHandle((CUdeviceptr)pointer));
        break;
    case PINNED:
        pick(2) ? LOG(cudaFree(pointer)) : LOG(cudaHostUnregister(pointer));
        break;
    case REGISTERED:
        pick(2) ? LOG(cuMemFreeHost(pointer)) : LOG(cuMemFree((CUdeviceptr)pointer));
        break;
    case MAPPING:
        pick(2) ? LOG(cudaFree(pointer)) : LOG(cuMemFreeAsync((CUdeviceptr)pointer, NULL));
        LOG(cuMemAddressFree((CUdeviceptr)pointer, objects[index].size)); /* still mapped */
        break;
    case OPENED:
        pick(2) ? LOG(cudaFree(pointer)) : LOG(cuMemFreeAsync((CUdeviceptr)pointer, NULL));
        break;
    case ARRAY:
        LOG(cudaFreeMipmappedArray(pointer));
        break;
    case MIPMAPPED:
        LOG(cudaFreeArray(pointer));
        break;
    default:
        LOG(cudaFree(pointer)); /* a handle is not an address */
    }
}

#ifndef RACING
/* Where threads race, another thread could own the address by the second time. */
static void free_twice(void)
{
    const int index = find(LINEAR);
    if (index < 0 || free_linear(objects[index]) != 0)
        return;
    free_linear(objects[index]);
    forget(index);
}
#endif

void mistake_step(void)
{
    switch (pick(3)) {
    case 0:
        free_nonsense();
        break;
#ifndef RACING
    case 1:
        free_twice();
        break;
#endif
    default:
        free_wrongly();
    }
    cudaGetLastError();
}
