// A kernel and its module, compiled by nvcc with the runtime that nvcc links: what comes out of it is the same
// with and without the preload. Four allocations of 4 MiB at the peak, one of them never freed.
#include <cstdio>
#include <cstdlib>

__global__ void add(const float *one, const float *other, float *sum, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        sum[i] = one[i] + other[i];
}

#define CALL(call)                                                                                 \
    do {                                                                                           \
        int result = (int)(call);                                                                  \
        if (result != 0) {                                                                         \
            printf("STOPPED %s answered %d\n", #call, result);                                     \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

int main()
{
    const int count = 1 << 20;
    const size_t bytes = count * sizeof(float);
    float *host = static_cast<float *>(malloc(bytes));
    float *one, *other, *sum, *kept;
    CALL(cudaMalloc(&one, bytes));
    CALL(cudaMalloc(&other, bytes));
    CALL(cudaMalloc(&sum, bytes));
    CALL(cudaMalloc(&kept, bytes));
    for (int i = 0; i < count; i++)
        host[i] = static_cast<float>(i);
    CALL(cudaMemcpy(one, host, bytes, cudaMemcpyHostToDevice));
    CALL(cudaMemcpy(other, host, bytes, cudaMemcpyHostToDevice));
    add<<<count / 256, 256>>>(one, other, sum, count);
    CALL(cudaGetLastError());
    CALL(cudaMemcpy(host, sum, bytes, cudaMemcpyDeviceToHost));
    double total = 0;
    for (int i = 0; i < count; i++)
        total += host[i];
    printf("sum %.1f\n", total);
    CALL(cudaFree(one));
    CALL(cudaFree(other));
    CALL(cudaFree(sum));
    free(host);
    return 0;
}
