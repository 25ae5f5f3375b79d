/* cuSOLVER: its version. */
#include "common.h"

#ifndef CUSOLVER_VER_MAJOR
#define CUSOLVER_VER_MAJOR GPUMEM_SONAME_MAJOR
#define CUSOLVER_VER_MINOR 0
#define CUSOLVER_VER_PATCH 0
#endif

ANSWER(cusolverGetVersion, int *version)
{
    if (version)
        *version = CUSOLVER_VER_MAJOR * 1000 + CUSOLVER_VER_MINOR * 100 + CUSOLVER_VER_PATCH;
    return 0;
}

ANSWER(cusolverGetProperty, int type, int *value)
{
    return gpumem_stub_property(type, value, CUSOLVER_VER_MAJOR, CUSOLVER_VER_MINOR,
                                CUSOLVER_VER_PATCH);
}
