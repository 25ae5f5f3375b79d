/* Random program: linear, pitched and managed memory, and the frees of everything cuMemFree
 * ends. */
#include "random.h"

static void keep_linear(void *address, size_t size)
{
    keep((struct object){.family = LINEAR, .pointer = address, .size = size, .in_context = 1});
}

void linear_step(void)
{
    void *address = NULL;
    size_t pitch, size = random_size(), width = 1 + pick(3000), height = 1 + pick(60);
    struct cudaPitchedPtr cube;
    CUdeviceptr driver_address;
    switch (pick(8)) {
    case 0:
        if (LOG(cudaMalloc(&address, size)) == 0)
            keep_linear(address, size);
        break;
    case 1:
        if (LOG(cudaMallocPitch(&address, &pitch, width, height)) == 0)
            keep_linear(address, pitch * height);
        break;
    case 2:
        if (LOG(cudaMalloc3D(&cube,
                             (struct cudaExtent){1 + pick(500), 1 + pick(20), 1 + pick(6)})) == 0)
            keep_linear(cube.ptr, cube.pitch);
        break;
    case 3:
        if (LOG(cudaMallocManaged(&address, size,
                                  pick(2) ? cudaMemAttachGlobal : cudaMemAttachHost)) == 0)
            keep((struct object){
                .family = LINEAR, .pointer = address, .size = size, .in_context = 1, .managed = 1});
        break;
    case 4:
        if (LOG(cuMemAllocManaged(&driver_address, size, CU_MEM_ATTACH_GLOBAL)) == 0)
            keep((struct object){.family = LINEAR,
                                 .pointer = (void *)driver_address,
                                 .size = size,
                                 .in_context = 1,
                                 .managed = 1});
        break;
    case 5:
        if (LOG(cuMemAlloc(&driver_address, size)) == 0)
            keep_linear((void *)driver_address, size);
        break;
    case 6:
        if (LOG(cuMemAllocPitch(&driver_address, &pitch, width, height, 4u << pick(3))) == 0)
            keep_linear((void *)driver_address, pitch * height);
        break;
    default:
        LOG(cudaMalloc(&address, (size_t)1 << 45)); /* more than any device has */
    }
}

/* Each of these frees all of these kinds: stream-ordered memory by cuMemFree, linear memory by
 * cudaFreeAsync.
 */
int free_linear(struct object object)
{
    switch (pick(4)) {
    case 0:
        return LOG(cudaFree(object.pointer));
    case 1:
        return LOG(cuMemFree((CUdeviceptr)object.pointer));
    case 2:
        return LOG(cudaFreeAsync(object.pointer, random_stream()));
    default:
        return LOG(cuMemFreeAsync((CUdeviceptr)object.pointer, random_stream()));
    }
}
