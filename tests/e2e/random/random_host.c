/* Random program: pinned and registered host memory, with all flags. */
#include "random.h"

#include <sys/mman.h>

CUresult cuMemHostRegister_v1(void *, size_t, unsigned) __asm__("cuMemHostRegister");
CUresult cuMemAllocHost_v1(void **, unsigned) __asm__("cuMemAllocHost");

static const unsigned flags_of_memory[] = {cudaHostAllocDefault, cudaHostAllocPortable,
                                           cudaHostAllocMapped, cudaHostAllocWriteCombined};

static void allocate(void)
{
    void *address = NULL;
    size_t size = random_size();
    const unsigned flags = flags_of_memory[pick(4)] | flags_of_memory[pick(4)];
    int result;
    switch (pick(5)) {
    case 0:
        result = LOG(cudaMallocHost(&address, size));
        break;
    case 1:
        result = LOG(cudaHostAlloc(&address, size, flags));
        break;
    case 2:
        result = LOG(cuMemHostAlloc(&address, size, flags));
        break;
    case 3:
        result = LOG(cuMemAllocHost(&address, size));
        break;
    default:
        result = LOG_AS("cuMemAllocHost", cuMemAllocHost_v1(&address, (unsigned)size));
    }
    if (result != 0)
        return;
    keep((struct object){.family = PINNED, .pointer = address, .size = size, .in_context = 1});
    if (pick(4) == 0)
        LOG(cudaHostGetDevicePointer(&address, address, 0)); /* an alias: not another life */
}

static void register_pages(void)
{
    static const unsigned flags_of_driver[] = {
        0, CU_MEMHOSTREGISTER_PORTABLE, CU_MEMHOSTREGISTER_DEVICEMAP, CU_MEMHOSTREGISTER_IOMEMORY,
        CU_MEMHOSTREGISTER_READ_ONLY};
    const unsigned flags = flags_of_driver[pick(5)];
    size_t size = (random_size() + 4095) & ~(size_t)4095;
    void *address = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int result;
    switch (pick(3)) {
    case 0:
        result = LOG(cudaHostRegister(address, size, flags)); /* the same numbers */
        break;
    case 1:
        result = LOG(cuMemHostRegister(address, size, flags));
        break;
    default:
        result = LOG_AS("cuMemHostRegister", cuMemHostRegister_v1(address, size, flags));
    }
    if (result != 0)
        return;
    keep((struct object){.family = REGISTERED, .pointer = address, .size = size, .in_context = 1});
    if (pick(4) == 0)
        LOG(cudaHostRegister(address, size, cudaHostRegisterDefault)); /* refused */
}

void host_step(void)
{
    pick(3) ? allocate() : register_pages();
}
