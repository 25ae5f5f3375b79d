/* Built twice, with two names for ALLOCATE of the same length: all addresses are the same.
 * `planted`: calls so far, at the last one. */
#include "plant.h"
#include <cuda.h>

static void ALLOCATE(int planted)
{
    CUdeviceptr address;
    cuMemAlloc(&address, 4096);
    (void)(planted && PLANTED(4096 * planted, planted));
}

__attribute__((visibility("default"))) void allocate_once(int planted)
{
    ALLOCATE(planted);
}
