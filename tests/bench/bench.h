/*
 * What the programs of the benchmarks share. Those that use the device include cuda.h before.
 */
#ifndef GPUMEM_TESTS_BENCH_BENCH_H
#define GPUMEM_TESTS_BENCH_BENCH_H

#include <stdlib.h>
#include <time.h>

static inline double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

#ifdef CUDA_VERSION
/* The thread's context, the primary one of device 0. */
static inline void open_device(void)
{
    CUcontext context;
    CUdevice device;
    if (cuInit(0) != 0 || cuDeviceGet(&device, 0) != 0 ||
        cuDevicePrimaryCtxRetain(&context, device) != 0 || cuCtxSetCurrent(context) != 0)
        exit(1);
}
#endif

#endif
