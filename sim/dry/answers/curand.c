/* cuRAND: its version. */
#include "common.h"

#ifndef CURAND_VER_MAJOR
#define CURAND_VER_MAJOR GPUMEM_SONAME_MAJOR
#define CURAND_VER_MINOR 0
#define CURAND_VER_PATCH 0
#endif

ANSWER(curandGetVersion, int *version)
{
    if (version)
        *version = CURAND_VER_MAJOR * 1000 + CURAND_VER_MINOR * 100 + CURAND_VER_PATCH;
    return 0;
}

ANSWER(curandGetProperty, int type, int *value)
{
    return gpumem_stub_property(type, value, CURAND_VER_MAJOR, CURAND_VER_MINOR, CURAND_VER_PATCH);
}
