/* cuSPARSELt: its version. Its objects are structs of the caller, so creating one needs nothing. */
#include "common.h"

#ifndef CUSPARSELT_VER_MAJOR
#define CUSPARSELT_VER_MAJOR GPUMEM_SONAME_MAJOR
#define CUSPARSELT_VER_MINOR 6
#define CUSPARSELT_VER_PATCH 0
#endif

ANSWER(cusparseLtGetVersion, const void *handle, int *version)
{
    (void)handle;
    if (version)
        *version = CUSPARSELT_VER_MAJOR * 1000 + CUSPARSELT_VER_MINOR * 100 + CUSPARSELT_VER_PATCH;
    return 0;
}
