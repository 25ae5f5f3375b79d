/* Names of CUDA's error numbers, at the layer that gave them. */
#ifndef GPUMEM_REPORT_RENDER_CUDA_ERROR_H
#define GPUMEM_REPORT_RENDER_CUDA_ERROR_H

#include <stdbool.h>
#include <stdint.h>

/* "CUDA_ERROR_OUT_OF_MEMORY", of the runtime "cudaErrorMemoryAllocation". The other layer's name
 * where this one has none; NULL for a number that nobody knows. */
const char *gm_cuda_error_name(uint32_t status, bool of_runtime);

#endif
