/*
 * The part of PyTorch's C++ interface that the profiler's reports need, rewritten: names and
 * argument lists must give the same mangled symbols, the rest is ours.
 */
#ifndef REPLICA_C10_H
#define REPLICA_C10_H

#include <cstddef>
#include <cstdint>

#define REPLICA_API __attribute__((visibility("default")))

namespace c10
{

struct Device {
    int8_t type;
    int8_t index;
};

constexpr int8_t kCPU = 0;
constexpr int8_t kCUDA = 1;

/* size: bytes, negative for a block given back; the totals are those after it. */
REPLICA_API void reportMemoryUsageToProfiler(void *address, int64_t size, size_t allocated,
                                             size_t reserved, Device device);
REPLICA_API void reportOutOfMemoryToProfiler(int64_t size, size_t allocated, size_t reserved,
                                             Device device);

} // namespace c10

#endif
