// exam: 7 sound
// The solver whose workspace grows when it must, by half, and is kept.
#include <cuda_runtime.h>

#include <cstdio>

struct Workspace {
    void *pointer = nullptr;
    size_t size = 0;

    void *atleast(size_t wanted)
    {
        if (wanted > size) {
            cudaFree(pointer);
            size = wanted + wanted / 2;
            if (cudaMalloc(&pointer, size) != cudaSuccess)
                size = 0;
        }
        return pointer;
    }
    ~Workspace()
    {
        cudaFree(pointer);
    }
};

int main()
{
    Workspace workspace;
    for (int iteration = 0; iteration < 500; iteration++) {
        size_t wanted = (1u << 20) + static_cast<size_t>(iteration % 50) * 4096;
        cudaMemset(workspace.atleast(wanted), 0, wanted);
    }
    std::printf("%zu\n", workspace.size);
}
