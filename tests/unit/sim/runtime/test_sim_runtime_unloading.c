/*
 * A free after the runtime's own destructor returns cudaErrorCudartUnloading and does no harm.
 *
 * Linked with the archive, where a program can choose the order of destructors: this program's has
 * the lowest priority number, so it runs last.
 */
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void *pointer;

__attribute__((destructor(101))) static void free_too_late(void)
{
    cudaError_t error = cudaFree(pointer);
    if (error == cudaErrorCudartUnloading)
        return;
    fprintf(stderr, "a late free returned %d\n", (int)error);
    _exit(EXIT_FAILURE);
}

int main(void)
{
    return cudaMalloc(&pointer, 64) == cudaSuccess ? EXIT_SUCCESS : EXIT_FAILURE;
}
