/* Stands for the header that comes with a math library: declarations in the shapes that such headers have. */
#ifndef GPUMEM_TESTS_DRY_CUBLAS_API_H
#define GPUMEM_TESTS_DRY_CUBLAS_API_H

#include <stddef.h>

#define CUBLASWINAPI
#define CUBLASAPI
#define CUBLAS_VER_MAJOR 13
#define CUBLAS_VER_MINOR 7
#define CUBLAS_VER_PATCH 2

typedef enum { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_NOT_INITIALIZED = 1 } cublasStatus_t;
struct cublasContext;
typedef struct cublasContext *cublasHandle_t;
typedef struct {
    double x, y;
} cuDoubleComplex;

CUBLASAPI cublasStatus_t CUBLASWINAPI cublasCreate_v2(cublasHandle_t *handle);
CUBLASAPI cublasStatus_t CUBLASWINAPI cublasDestroy_v2(cublasHandle_t handle);
CUBLASAPI cublasStatus_t CUBLASWINAPI cublasGetVersion_v2(cublasHandle_t handle, int *version);
/* Not in the real library: an out-parameter behind numbers that travel in other registers, and one that is the
   seventh. */
CUBLASAPI cublasStatus_t CUBLASWINAPI cublasTest_bufferSize(cublasHandle_t handle, double a,
                                                            cuDoubleComplex b, float c, int d,
                                                            const size_t *in, size_t *bytes);
CUBLASAPI cublasStatus_t CUBLASWINAPI cublasTestBufferSizeOnStack(int a, int b, int c, int d, int e,
                                                                  int f, size_t *bytes);
CUBLASAPI const char *CUBLASWINAPI cublasGetStatusString(cublasStatus_t status);

#endif
