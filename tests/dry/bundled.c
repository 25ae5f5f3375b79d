/* Stands for NVIDIA's runtime in a wheel: what it does must never happen in a dry run. */
#include <stddef.h>
#include <stdlib.h>

int cudaMalloc(void **memory, size_t bytes);

int cudaMalloc(void **memory, size_t bytes)
{
    (void)memory, (void)bytes;
    abort();
}
