// exam: 7 sick churn
// A solver that allocates its workspace anew in each iteration.
#include <cuda_runtime.h>

#include <cstdio>

static double residual(float *field, size_t count)
{
    float *scratch = nullptr;
    if (cudaMalloc((void **)&scratch, count * sizeof *scratch) != cudaSuccess) // cause
        return -1;
    cudaMemcpy(scratch, field, count * sizeof *scratch, cudaMemcpyDeviceToDevice);
    cudaFree(scratch); // cause
    return 0;
}

int main()
{
    size_t count = 1u << 20;
    float *field = nullptr;
    cudaMalloc((void **)&field, count * sizeof *field);
    double sum = 0;
    for (int iteration = 0; iteration < 500; iteration++)
        sum += residual(field, count);
    cudaFree(field);
    std::printf("%g\n", sum);
}
