/*
 * cuBLASLt: every matrix product has one algorithm, which needs no workspace. PyTorch allocates its
 * workspace by a size of its own before it asks, so the answer does not change what is allocated.
 */
#include "common.h"

/* cublasLtMatmulHeuristicResult_t */
struct result {
    uint64_t algorithm[8];
    size_t workspace;
    int state; /* CUBLAS_STATUS_SUCCESS */
    float waves;
    int reserved[4];
};

#ifdef CUBLAS_VER_MAJOR
enum { VERSION = CUBLAS_VER_MAJOR * 10000 + CUBLAS_VER_MINOR * 100 + CUBLAS_VER_PATCH };
#else
enum { VERSION = GPUMEM_SONAME_MAJOR * 10000 };
#endif

ANSWER(cublasLtGetVersion, void)
{
    return VERSION;
}

ANSWER(cublasLtGetCudartVersion, void)
{
    return GPUMEM_SONAME_MAJOR * 1000;
}

ANSWER(cublasLtGetProperty, int type, int *value)
{
    return gpumem_stub_property(type, value, VERSION / 10000, VERSION / 100 % 100, VERSION % 100);
}

ANSWER(cublasLtMatmulAlgoGetHeuristic, void *handle, void *operation, void *a, void *b, void *c,
       void *d, void *preference, int wanted, struct result *results, int *count)
{
    (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference;
    if (wanted < 1 || !results || !count)
        return 7; /* CUBLAS_STATUS_INVALID_VALUE */
    results[0] = (struct result){.waves = 1};
    *count = 1;
    return 0;
}

ANSWER(cublasLtMatmulAlgoGetIds, void *handle, int compute, int scale, int a, int b, int c, int d,
       int wanted, int *ids, int *count)
{
    (void)handle, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
    if (wanted >= 1 && ids)
        ids[0] = 0;
    if (count)
        *count = 1;
    return 0;
}

ANSWER(cublasLtMatmulAlgoCheck, void *handle, void *operation, void *a, void *b, void *c, void *d,
       const void *algorithm, struct result *found)
{
    (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d;
    if (found) {
        *found = (struct result){.waves = 1};
        if (algorithm)
            memcpy(found->algorithm, algorithm, sizeof(found->algorithm));
    }
    return 0;
}
