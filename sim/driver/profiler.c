/*
 * The profiler's switches: the driver accepts them, but has nothing to switch.
 */
#include "driver.h"

/* cudaProfiler.h declares them without the visibility that cuda.h gives to its own. */
GPUSIM_EXPORTED CUresult cuProfilerStart(void);
GPUSIM_EXPORTED CUresult cuProfilerStop(void);

CUresult cuProfilerStart(void)
{
    GPUSIM_ENTER_CONTEXT(context);
    (void)context;
    return CUDA_SUCCESS;
}

CUresult cuProfilerStop(void)
{
    GPUSIM_ENTER_CONTEXT(context);
    (void)context;
    return CUDA_SUCCESS;
}
