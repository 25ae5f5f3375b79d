/* cuBLAS: its version, and the stream of a handle. */
#include "common.h"

#ifndef CUBLAS_VER_MAJOR
#define CUBLAS_VER_MAJOR GPUMEM_SONAME_MAJOR
#define CUBLAS_VER_MINOR 0
#define CUBLAS_VER_PATCH 0
#endif

ANSWER(cublasGetVersion_v2, void *handle, int *version)
{
    (void)handle;
    if (version)
        *version = CUBLAS_VER_MAJOR * 10000 + CUBLAS_VER_MINOR * 100 + CUBLAS_VER_PATCH;
    return 0;
}

ANSWER(cublasGetProperty, int type, int *value)
{
    return gpumem_stub_property(type, value, CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH);
}

ANSWER(cublasSetStream_v2, void **handle, void *stream)
{
    if (!handle)
        return 1; /* CUBLAS_STATUS_NOT_INITIALIZED */
    handle[0] = stream;
    return 0;
}

ANSWER(cublasGetStream_v2, void **handle, void **stream)
{
    if (!handle)
        return 1;
    if (stream)
        *stream = handle[0];
    return 0;
}

/* Modes read back as they were set; the first is "host" and "default". */
ANSWER(cublasSetPointerMode_v2, void **handle, int mode)
{
    if (handle)
        memcpy(&handle[1], &mode, sizeof(mode));
    return 0;
}

ANSWER(cublasGetPointerMode_v2, void **handle, int *mode)
{
    if (handle && mode)
        memcpy(mode, &handle[1], sizeof(*mode));
    return 0;
}

ANSWER(cublasSetMathMode, void **handle, int mode)
{
    if (handle)
        memcpy(&handle[2], &mode, sizeof(mode));
    return 0;
}

ANSWER(cublasGetMathMode, void **handle, int *mode)
{
    if (handle && mode)
        memcpy(mode, &handle[2], sizeof(*mode));
    return 0;
}
