/*
 * A tool as CUDA_INJECTION64_PATH names it: says by the environment that it was initialised, and
 * how often.
 */
#include <stdlib.h>

int InitializeInjection(void);

int InitializeInjection(void)
{
    const char *before = getenv("GPUMEM_TEST_INJECTED");

    return setenv("GPUMEM_TEST_INJECTED", before ? "again" : "once", 1) == 0;
}
