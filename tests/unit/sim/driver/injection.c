/*
 * A tool for CUDA_INJECTION64_PATH: an environment variable counts how often it was initialised.
 */
#include <stdlib.h>

int InitializeInjection(void);

int InitializeInjection(void)
{
    const char *before = getenv("GPUMEM_TEST_INJECTED");

    return setenv("GPUMEM_TEST_INJECTED", before ? "again" : "once", 1) == 0;
}
