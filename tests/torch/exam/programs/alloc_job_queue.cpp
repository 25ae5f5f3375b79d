// exam: 6 sick retained growing leak
// A queue of jobs; each finished job's result stays on the device until the store goes.
#include <cuda_runtime.h>

#include <cstdio>
#include <map>
#include <stdexcept>

class Buffer
{
    void *pointer = nullptr;

  public:
    explicit Buffer(size_t size)
    {
        if (cudaMalloc(&pointer, size) != cudaSuccess) // cause
            throw std::runtime_error("no memory");
    }
    Buffer(Buffer &&other) noexcept : pointer(other.pointer)
    {
        other.pointer = nullptr;
    }
    Buffer(const Buffer &) = delete;
    ~Buffer()
    {
        if (pointer)
            cudaFree(pointer);
    }
    void clear(size_t size)
    {
        cudaMemset(pointer, 0, size);
    }
};

struct Store {
    std::map<int, Buffer> results;
};

static void run(Store &store, int job)
{
    size_t size = 1u << 20;
    Buffer scratch(size);
    scratch.clear(size);
    Buffer result(size / 2); // cause
    result.clear(size / 2);
    store.results.emplace(job, std::move(result));
}

int main()
{
    Store store;
    for (int job = 0; job < 300; job++)
        run(store, job);
    std::printf("%zu results\n", store.results.size());
}
