/* Stands for NVIDIA's library: what it does must never happen in a dry run. */
#include "include/cublas_api.h"
#include <stdio.h>
#include <stdlib.h>

static void never(const char *name)
{
    fprintf(stderr, "the original %s ran\n", name);
    abort();
}

__attribute__((constructor)) static void mapped(void)
{
    never("library");
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
    (void)handle;
    never("cublasCreate_v2");
    return CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    (void)handle;
    never("cublasDestroy_v2");
    return CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version)
{
    (void)handle, (void)version;
    never("cublasGetVersion_v2");
    return CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasTest_bufferSize(cublasHandle_t handle, double a, cuDoubleComplex b, float c,
                                     int d, const size_t *in, size_t *bytes)
{
    (void)handle, (void)a, (void)b, (void)c, (void)d, (void)in, (void)bytes;
    never("cublasTest_bufferSize");
    return CUBLAS_STATUS_NOT_INITIALIZED;
}

cublasStatus_t cublasTestBufferSizeOnStack(int a, int b, int c, int d, int e, int f, size_t *bytes)
{
    (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)bytes;
    never("cublasTestBufferSizeOnStack");
    return CUBLAS_STATUS_NOT_INITIALIZED;
}

const char *cublasGetStatusString(cublasStatus_t status)
{
    (void)status;
    never("cublasGetStatusString");
    return NULL;
}
