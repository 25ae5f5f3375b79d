// exam: 6 sound
// The same class; what requests leave behind is dropped when there are fifty.
#include <cuda_runtime.h>

#include <cstdio>
#include <map>
#include <memory>
#include <vector>

struct Buffer {
    void *data = nullptr;

    __attribute__((noinline)) explicit Buffer(size_t bytes)
    {
        cudaMalloc(&data, bytes);
    }
    ~Buffer()
    {
        cudaFree(data);
    }
};

using Owned = std::unique_ptr<Buffer>;

static std::vector<Owned> load()
{
    std::vector<Owned> weights;
    for (int layer = 0; layer < 40; layer++)
        weights.push_back(Owned(new Buffer(8u << 20)));
    return weights;
}

static void answer()
{
    Owned scratch(new Buffer(1u << 20));
    cudaMemset(scratch->data, 0, 1u << 20);
}

static void note(std::map<int, Owned> &logs, int request)
{
    if (logs.size() == 50)
        logs.erase(logs.begin());
    logs[request] = Owned(new Buffer(64u << 10));
}

int main()
{
    std::vector<Owned> weights = load();
    std::map<int, Owned> logs;
    for (int request = 0; request < 500; request++) {
        answer();
        note(logs, request);
    }
    std::printf("%zu\n", logs.size());
}
