/* A library of its own for limits.c; ROOM makes it another size. */
#include <cuda.h>

void allocate_in_plugin(int keep);
char room_in_plugin[ROOM];

void allocate_in_plugin(int keep)
{
    CUdeviceptr address;
    if (cuMemAlloc(&address, 999) == 0 && !keep)
        cuMemFree(address);
}
