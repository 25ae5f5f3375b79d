// exam: 6 sick retained growing leak
// All memory goes through one buffer class, most of it steady; the sessions' logs are never dropped.
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

struct Model {
    std::vector<Owned> weights;

    Model()
    {
        for (int layer = 0; layer < 40; layer++)
            weights.push_back(Owned(new Buffer(8u << 20)));
    }
};

struct Server {
    Model model;
    std::map<int, Owned> logs;

    __attribute__((noinline)) void answer(int request)
    {
        Owned scratch(new Buffer(1u << 20));
        cudaMemset(scratch->data, 0, 1u << 20);
    }
    __attribute__((noinline)) void note(int request)
    {
        logs[request] = Owned(new Buffer(64u << 10)); // cause
    }
};

int main()
{
    Server server;
    for (int request = 0; request < 500; request++) {
        server.answer(request);
        server.note(request);
    }
    std::printf("%zu\n", server.logs.size());
}
