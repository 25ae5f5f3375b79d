/*
 * libc10_cuda.so of the replica: a new caching allocator by the published rules of PyTorch's. It
 * behaves like PyTorch's towards others: it calls cudaMalloc and cudaFree through the PLT, reports
 * each block to libc10 with the device's mutex held, and is loaded with local symbols.
 *
 *   - Sizes are multiples of 512 bytes. Up to 1 MiB is small and comes from segments of 2 MiB;
 *     up to 10 MiB from segments of 20 MiB; beyond that a segment is the size in steps of 2 MiB.
 *   - A free block serves the best-fitting request of its stream and pool. The remainder becomes a
 *     block if it is at least 512 bytes (small) or more than 1 MiB (large).
 *   - The allocator joins neighbouring free blocks.
 *   - After a refused segment it returns every cached segment without a live block to the driver,
 *     tries once more, then reports out of memory.
 */
#include "c10.h"
#include <cuda_runtime_api.h>
#include <iterator>
#include <mutex>
#include <random>
#include <set>
#include <sys/types.h>
#include <unordered_map>
#include <vector>

namespace
{

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kUnit = 512;
constexpr size_t kSmall = kMiB;
constexpr size_t kSmallSegment = 2 * kMiB;
constexpr size_t kMedium = 10 * kMiB;
constexpr size_t kMediumSegment = 20 * kMiB;
constexpr size_t kStep = 2 * kMiB;

size_t round_up(size_t size, size_t unit)
{
    return (size + unit - 1) / unit * unit;
}

size_t segment_size(size_t size)
{
    if (size <= kSmall)
        return kSmallSegment;
    return size < kMedium ? kMediumSegment : round_up(size, kStep);
}

/* The source of segments instead of CUDA, as with PyTorch's MemPool of a pluggable allocator. */
using CustomMalloc = void *(ssize_t size, int device, void *stream);
using CustomFree = void(void *address, ssize_t size, int device, void *stream);
CustomMalloc *custom_malloc;
CustomFree *custom_free;

struct Block;
struct Order {
    bool operator()(const Block *one, const Block *other) const;
};
using Pool = std::set<Block *, Order>;

struct Block {
    char *address;
    size_t size;
    int stream;
    Pool *pool;
    Block *previous; /* neighbours in the segment */
    Block *next;
};

bool Order::operator()(const Block *one, const Block *other) const
{
    if (one->stream != other->stream)
        return one->stream < other->stream;
    if (one->size != other->size)
        return one->size < other->size;
    return one->address < other->address;
}

class Allocator
{
  public:
    explicit Allocator(int device) : device_{c10::kCUDA, static_cast<int8_t>(device)}
    {
    }

    void *allocate(size_t asked, int stream)
    {
        std::lock_guard<std::recursive_mutex> lock(mutex_);
        size_t size = asked < kUnit ? kUnit : round_up(asked, kUnit);
        Pool &pool = size <= kSmall ? small_ : large_;
        Block *block = find(pool, size, stream);
        if (!block)
            block = make_segment(pool, size, stream);
        if (!block) {
            release_cached();
            block = make_segment(pool, size, stream);
        }
        if (!block) {
            c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(size), allocated_, reserved_,
                                             device_);
            return nullptr;
        }
        split(block, size);
        live_[block->address] = block;
        allocated_ += block->size;
        c10::reportMemoryUsageToProfiler(block->address, static_cast<int64_t>(block->size),
                                         allocated_, reserved_, device_);
        return block->address;
    }

    bool free(void *address)
    {
        std::lock_guard<std::recursive_mutex> lock(mutex_);
        auto found = live_.find(address);
        if (found == live_.end())
            return false;
        Block *block = found->second;
        live_.erase(found);
        allocated_ -= block->size;
        c10::reportMemoryUsageToProfiler(block->address, -static_cast<int64_t>(block->size),
                                         allocated_, reserved_, device_);
        block = join(block, block->previous);
        block = join(block, block->next);
        block->pool->insert(block);
        return true;
    }

    void empty_cache()
    {
        std::lock_guard<std::recursive_mutex> lock(mutex_);
        release_cached();
    }

    size_t allocated()
    {
        std::lock_guard<std::recursive_mutex> lock(mutex_);
        return allocated_;
    }

    size_t reserved()
    {
        std::lock_guard<std::recursive_mutex> lock(mutex_);
        return reserved_;
    }

  private:
    Block *find(Pool &pool, size_t size, int stream)
    {
        Block key{nullptr, size, stream, nullptr, nullptr, nullptr};
        auto found = pool.lower_bound(&key);
        if (found == pool.end() || (*found)->stream != stream)
            return nullptr;
        Block *block = *found;
        pool.erase(found);
        return block;
    }

    Block *make_segment(Pool &pool, size_t size, int stream)
    {
        void *address = nullptr;
        size_t bytes = segment_size(size);
        cudaSetDevice(device_.index);
        if (custom_malloc) {
            address = custom_malloc(static_cast<ssize_t>(bytes), device_.index, nullptr);
            if (!address)
                return nullptr;
        } else if (cudaMalloc(&address, bytes) != cudaSuccess) {
            cudaGetLastError(); /* the caller handles the error: do not leave it behind */
            return nullptr;
        }
        reserved_ += bytes;
        return new Block{static_cast<char *>(address), bytes, stream, &pool, nullptr, nullptr};
    }

    void split(Block *block, size_t size)
    {
        size_t left = block->size - size;
        if (block->pool == &small_ ? left < kUnit : left <= kMiB)
            return;
        Block *rest =
            new Block{block->address + size, left, block->stream, block->pool, block, block->next};
        if (rest->next)
            rest->next->previous = rest;
        block->next = rest;
        block->size = size;
        block->pool->insert(rest);
    }

    Block *join(Block *block, Block *neighbour)
    {
        if (!neighbour || live_.count(neighbour->address))
            return block;
        block->pool->erase(neighbour);
        Block *first = neighbour == block->previous ? neighbour : block;
        Block *second = first == block ? neighbour : block;
        first->size += second->size;
        first->next = second->next;
        if (first->next)
            first->next->previous = first;
        delete second;
        return first;
    }

    void release_cached()
    {
        for (Pool *pool : {&small_, &large_}) {
            for (auto at = pool->begin(); at != pool->end();) {
                Block *block = *at;
                if (block->previous || block->next) {
                    ++at;
                    continue;
                }
                at = pool->erase(at);
                if (custom_free)
                    custom_free(block->address, static_cast<ssize_t>(block->size), device_.index,
                                nullptr);
                else
                    cudaFree(block->address);
                reserved_ -= block->size;
                delete block;
            }
        }
    }

    std::recursive_mutex mutex_;
    c10::Device device_;
    Pool small_, large_; /* free blocks */
    std::unordered_map<void *, Block *> live_;
    size_t allocated_ = 0;
    size_t reserved_ = 0;
};

Allocator &allocator(int device)
{
    static Allocator all[] = {Allocator(0), Allocator(1), Allocator(2), Allocator(3)};
    return all[device];
}

} // namespace

extern "C" {

/* Address of a block, NULL when there is no memory. device: 0..3. */
REPLICA_API void *replica_malloc(int device, size_t size, int stream)
{
    return allocator(device).allocate(size, stream);
}

/* 0 when the address was not a live block. */
REPLICA_API int replica_free(int device, void *address)
{
    return allocator(device).free(address);
}

/* Must be set before the first block. */
REPLICA_API void replica_set_segments(CustomMalloc *allocate, CustomFree *release)
{
    custom_malloc = allocate;
    custom_free = release;
}

REPLICA_API void replica_empty_cache(int device)
{
    allocator(device).empty_cache();
}

REPLICA_API size_t replica_allocated(int device)
{
    return allocator(device).allocated();
}

REPLICA_API size_t replica_reserved(int device)
{
    return allocator(device).reserved();
}

/* Allocates and frees blocks of random sizes, `count` reports in total, and frees the rest. */
REPLICA_API void replica_churn(int device, unsigned seed, size_t count)
{
    std::mt19937 random(seed);
    std::vector<void *> live;
    while (count > live.size()) {
        if (live.size() > 64 || (!live.empty() && random() % 2)) {
            size_t at = random() % live.size();
            replica_free(device, live[at]);
            live[at] = live.back();
            live.pop_back();
        } else if (void *address = replica_malloc(device, size_t{1} << (random() % 23),
                                                  static_cast<int>(random() % 3))) {
            live.push_back(address);
        }
        count--;
    }
    for (void *address : live)
        replica_free(device, address);
}
}
