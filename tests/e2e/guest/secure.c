/* Allocates, with the recorder linked to it, and prints whether the process has rights that its
 * user lacks. */
#include <cuda.h>
#include <stdio.h>
#include <sys/auxv.h>

int main(void)
{
    CUdevice device;
    CUcontext context;
    CUdeviceptr address;
    if (cuInit(0) || cuDeviceGet(&device, 0) || cuDevicePrimaryCtxRetain(&context, device) ||
        cuCtxSetCurrent(context) || cuMemAlloc(&address, 4096) || cuMemFree(address))
        return 1;
    printf("secure %d\n", getauxval(AT_SECURE) != 0);
    return 0;
}
