/* cuSPARSE: its version. */
#include "common.h"

#ifndef CUSPARSE_VER_MAJOR
#define CUSPARSE_VER_MAJOR GPUMEM_SONAME_MAJOR
#define CUSPARSE_VER_MINOR 0
#define CUSPARSE_VER_PATCH 0
#endif

ANSWER(cusparseGetVersion, void *handle, int *version)
{
    (void)handle;
    if (version)
        *version = CUSPARSE_VER_MAJOR * 1000 + CUSPARSE_VER_MINOR * 100 + CUSPARSE_VER_PATCH;
    return 0;
}

ANSWER(cusparseGetProperty, int type, int *value)
{
    return gpumem_stub_property(type, value, CUSPARSE_VER_MAJOR, CUSPARSE_VER_MINOR,
                                CUSPARSE_VER_PATCH);
}
