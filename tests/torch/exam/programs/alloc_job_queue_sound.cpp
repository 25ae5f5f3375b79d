// exam: 6 sound
// A pipeline of four stages whose buffers are made once, and a result per job that goes with it.
#include <cuda_runtime.h>

#include <cstdio>
#include <memory>
#include <vector>

struct Free {
    void operator()(void *pointer) const
    {
        cudaFree(pointer);
    }
};
using Buffer = std::unique_ptr<void, Free>;

static Buffer make(size_t size)
{
    void *pointer = nullptr;
    if (cudaMalloc(&pointer, size) != cudaSuccess)
        pointer = nullptr;
    return Buffer(pointer);
}

int main()
{
    std::vector<Buffer> stages;
    for (int stage = 0; stage < 4; stage++)
        stages.push_back(make(4u << 20));
    Buffer result = make(1u << 20);
    for (int job = 0; job < 300; job++) {
        for (auto &stage : stages)
            cudaMemset(stage.get(), job, 4u << 20);
        cudaMemset(result.get(), 0, 1u << 20);
    }
    std::printf("done\n");
}
