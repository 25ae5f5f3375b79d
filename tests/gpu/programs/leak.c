/*
 * A planted leak, for gpumem and compute-sanitizer alike: 3 allocations of 1 MiB are never freed,
 * all others are. The context is destroyed, because only then does compute-sanitizer judge.
 */
#include "ledger.h"
#include <cuda.h>

#define MIB ((size_t)1 << 20)

static void forget(void)
{
    CUdeviceptr address;
    CALL(cuMemAlloc(&address, MIB));
}

static void remember(void)
{
    CUdeviceptr address;
    CALL(cuMemAlloc(&address, 2 * MIB));
    CALL(cuMemFree(address));
}

int main(void)
{
    CUdevice device;
    CUcontext context;
    CALL(cuInit(0));
    CALL(cuDeviceGet(&device, 0));
    CALL(cuDevicePrimaryCtxRetain(&context, device));
    CALL(cuCtxSetCurrent(context));
    for (int i = 0; i < 3; i++) {
        forget();
        remember();
    }
    CALL(cuDevicePrimaryCtxRelease(device));
    return 0;
}
