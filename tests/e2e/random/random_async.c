/* Random program: stream-ordered allocation, from the device's pool, our own and another
 * device's. */
#include "random.h"

static void keep_of_pool(void *address, size_t size, const struct object *pool)
{
    keep_on(pool ? pool->device : current_device(),
            (struct object){.family = LINEAR, .pointer = address, .size = size});
}

void STEP(async)(void)
{
    void *address;
    CUdeviceptr driver_address;
    const size_t size = random_size();
    const int index = find(POOL);
    const struct object *pool = index >= 0 && pick(2) ? &objects[index] : NULL;
    const int driver = pick(2) != 0;
    if (pool && pool->device != current_device() && !pool->imported) {
        const struct cudaMemAccessDesc access = {
            .location = {.type = cudaMemLocationTypeDevice, .id = current_device()},
            .flags = cudaMemAccessFlagsProtReadWrite};
        LOG(cudaMemPoolSetAccess(pool->pointer, &access, 1));
    }
    if (pool && driver) {
        if (LOG(cuMemAllocFromPoolAsync(&driver_address, size, pool->pointer, random_stream())) ==
            0)
            keep_of_pool((void *)driver_address, size, pool);
    } else if (pool) {
        if (LOG(cudaMallocFromPoolAsync(&address, size, pool->pointer, random_stream())) == 0)
            keep_of_pool(address, size, pool);
    } else if (driver) {
        if (LOG(cuMemAllocAsync(&driver_address, size, random_stream())) == 0)
            keep_of_pool((void *)driver_address, size, NULL);
    } else if (LOG(cudaMallocAsync(&address, size, random_stream())) == 0) {
        keep_of_pool(address, size, NULL);
    }
    const int freed = find(LINEAR);
    if (freed < 0 || pick(2))
        return;
    if (pick(2) ? LOG(cudaFreeAsync(objects[freed].pointer, random_stream())) == 0
                : LOG(cuMemFreeAsync((CUdeviceptr)objects[freed].pointer, random_stream())) == 0)
        forget(freed);
}
