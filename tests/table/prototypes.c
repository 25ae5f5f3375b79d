/*
 * Compiles only if every prototype of api.table is the one in the CUDA headers at hand: declared
 * twice, a function with two types is an error.
 */
#define __CUDA_API_VERSION_INTERNAL /* declares all ABIs of each function, and hides the macros    \
                                       for them */
#include <cuda.h>
#include <cuda_runtime_api.h>
#define GM_CUDA_HEADERS
/* What headers before 13.4 lack, which the declarations need. */
#include "newer_types.h"

#include "gm_api.h"

int main(void)
{
    return 0;
}
