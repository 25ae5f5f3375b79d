/*
 * Compiles only if every prototype of api.table is the one in the installed CUDA headers: it
 * declares each function twice, and two types of one function are an error.
 */
#define __CUDA_API_VERSION_INTERNAL /* declares all ABIs of each function, and hides the macros    \
                                       for them */
#include <cuda.h>
#include <cuda_runtime_api.h>
#define GM_CUDA_HEADERS
/* Types that the declarations need and headers before 13.4 lack. */
#include "newer_types.h"

#include "gm_api.h"

int main(void)
{
    return 0;
}
