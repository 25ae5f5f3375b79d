/* Built twice, with two names for ALLOCATE of the same length: all addresses are the same. */
#include <cuda.h>
#include "plant.h"

static void ALLOCATE(void)
{
    CUdeviceptr address;
    cuMemAlloc(&address, 4096);
    PLANTED(4096, 1);
}

__attribute__((visibility("default"))) void allocate_once(void)
{
    ALLOCATE();
}
