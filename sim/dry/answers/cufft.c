/* cuFFT: plans are small numbers, and need no workspace. */
#include "common.h"

#ifndef CUFFT_VER_MAJOR
#define CUFFT_VER_MAJOR GPUMEM_SONAME_MAJOR
#define CUFFT_VER_MINOR 0
#define CUFFT_VER_PATCH 0
#endif

static int plans;

static long new_plan(int *plan)
{
    if (!plan)
        return 4; /* CUFFT_INVALID_VALUE */
    *plan = __atomic_add_fetch(&plans, 1, __ATOMIC_RELAXED);
    return 0;
}

static void no_workspace(size_t *bytes)
{
    if (bytes)
        *bytes = 0;
}

ANSWER(cufftCreate, int *plan)
{
    return new_plan(plan);
}

ANSWER(cufftPlan1d, int *plan, int x, int type, int batch)
{
    (void)x, (void)type, (void)batch;
    return new_plan(plan);
}

ANSWER(cufftPlan2d, int *plan, int x, int y, int type)
{
    (void)x, (void)y, (void)type;
    return new_plan(plan);
}

ANSWER(cufftPlan3d, int *plan, int x, int y, int z, int type)
{
    (void)x, (void)y, (void)z, (void)type;
    return new_plan(plan);
}

ANSWER(cufftPlanMany, int *plan, int rank, int *n, int *in, int in_stride, int in_distance,
       int *out, int out_stride, int out_distance, int type, int batch)
{
    (void)rank, (void)n, (void)in, (void)in_stride, (void)in_distance, (void)out, (void)out_stride;
    (void)out_distance, (void)type, (void)batch;
    return new_plan(plan);
}

/* Their last parameter is the size of the workspace. */
ANSWER(cufftXtMakePlanMany, int plan, int rank, void *n, void *in, long in_stride, long in_distance,
       int in_type, void *out, long out_stride, long out_distance, int out_type, long batch,
       size_t *bytes, int type)
{
    (void)plan, (void)rank, (void)n, (void)in, (void)in_stride, (void)in_distance, (void)in_type;
    (void)out, (void)out_stride, (void)out_distance, (void)out_type, (void)batch, (void)type;
    no_workspace(bytes);
    return 0;
}

ANSWER(cufftGetVersion, int *version)
{
    if (version)
        *version = CUFFT_VER_MAJOR * 1000 + CUFFT_VER_MINOR * 100 + CUFFT_VER_PATCH;
    return 0;
}

ANSWER(cufftGetProperty, int type, int *value)
{
    return gpumem_stub_property(type, value, CUFFT_VER_MAJOR, CUFFT_VER_MINOR, CUFFT_VER_PATCH);
}
