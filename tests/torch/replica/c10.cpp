/*
 * libc10.so of the replica: the original report functions, which only count, so that a test sees
 * that they still get their calls and arguments; and a caller of them inside the library, like
 * PyTorch's CPU allocator.
 */
#include "c10.h"
#include <atomic>
#include <cstdlib>

namespace
{
std::atomic<uint64_t> calls, digest;

void count(uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
    calls.fetch_add(1, std::memory_order_relaxed);
    digest.fetch_add(a * 3 + b * 5 + c * 7 + d * 11, std::memory_order_relaxed);
}
} // namespace

namespace c10
{
void reportMemoryUsageToProfiler(void *address, int64_t size, size_t allocated, size_t reserved,
                                 Device device)
{
    (void)address; /* differs from run to run */
    count(static_cast<uint64_t>(size), allocated, reserved, static_cast<uint64_t>(device.index));
}

void reportOutOfMemoryToProfiler(int64_t size, size_t allocated, size_t reserved, Device device)
{
    count(static_cast<uint64_t>(size), allocated, reserved, static_cast<uint64_t>(device.index));
}
} // namespace c10

extern "C" {

/* Reports that reached the originals, and a sum over their arguments. */
REPLICA_API uint64_t replica_reports(void)
{
    return calls;
}

REPLICA_API uint64_t replica_digest(void)
{
    return digest;
}

/* Host memory, reported like a block of device -1 of type CPU. */
REPLICA_API void *replica_cpu_malloc(size_t size)
{
    void *address = malloc(size);
    c10::reportMemoryUsageToProfiler(address, static_cast<int64_t>(size), 0, 0,
                                     c10::Device{c10::kCPU, -1});
    return address;
}

REPLICA_API void replica_cpu_free(void *address, size_t size)
{
    c10::reportMemoryUsageToProfiler(address, -static_cast<int64_t>(size), 0, 0,
                                     c10::Device{c10::kCPU, -1});
    free(address);
}
}
