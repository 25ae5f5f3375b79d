/*
 * Segments whose physical memory can be taken away and brought back under the same addresses, as
 * inference servers with a sleep mode do: virtual memory management below a pool of PyTorch's that
 * does not notice. The blocks of the pool stay alive.
 *
 * For tests: one thread, one device, a table of fixed size; a call that fails ends the process.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>

#define SEGMENTS_MAX 64

static struct {
    CUdeviceptr address;
    size_t size; /* rounded up to the granularity; 0: no segment */
} segments[SEGMENTS_MAX];

static void expect(CUresult result, const char *what)
{
    if (result == CUDA_SUCCESS)
        return;
    fprintf(stderr, "%s: error %d\n", what, (int)result);
    exit(1);
}

static CUmemAllocationProp properties(void)
{
    return (CUmemAllocationProp){
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
    };
}

static void map(CUdeviceptr address, size_t size)
{
    CUmemAllocationProp memory = properties();
    CUmemAccessDesc access = {.location = memory.location,
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    expect(cuMemCreate(&handle, size, &memory, 0), "cuMemCreate");
    expect(cuMemMap(address, size, 0, handle, 0), "cuMemMap");
    expect(cuMemSetAccess(address, size, &access, 1), "cuMemSetAccess");
    expect(cuMemRelease(handle), "cuMemRelease"); /* the mapping keeps it */
}

/* The two functions that PyTorch's pluggable allocator asks for. */
void *sleep_malloc(ssize_t size, int device, void *stream);
void *sleep_malloc(ssize_t size, int device, void *stream)
{
    CUmemAllocationProp memory = properties();
    size_t granularity = 0, number = 0;
    (void)device;
    (void)stream;
    expect(cuMemGetAllocationGranularity(&granularity, &memory, CU_MEM_ALLOC_GRANULARITY_MINIMUM),
           "cuMemGetAllocationGranularity");
    while (number < SEGMENTS_MAX && segments[number].size)
        number++;
    if (number == SEGMENTS_MAX)
        return NULL;
    size_t rounded = ((size_t)size + granularity - 1) / granularity * granularity;
    segments[number].size = rounded;
    expect(cuMemAddressReserve(&segments[number].address, rounded, 0, 0, 0), "cuMemAddressReserve");
    map(segments[number].address, rounded);
    return (void *)segments[number].address; /* the driver takes an address as a number */
}

void sleep_free(void *pointer, ssize_t size, int device, void *stream);
void sleep_free(void *pointer, ssize_t size, int device, void *stream)
{
    (void)size;
    (void)device;
    (void)stream;
    for (size_t i = 0; i < SEGMENTS_MAX; i++) {
        if (!segments[i].size || segments[i].address != (CUdeviceptr)pointer)
            continue;
        expect(cuMemUnmap(segments[i].address, segments[i].size), "cuMemUnmap");
        expect(cuMemAddressFree(segments[i].address, segments[i].size), "cuMemAddressFree");
        segments[i].size = 0;
    }
}

/* Returns all physical memory; nothing may use the blocks until sleep_wake(). */
void sleep_all(void);
void sleep_all(void)
{
    for (size_t i = 0; i < SEGMENTS_MAX; i++)
        if (segments[i].size)
            expect(cuMemUnmap(segments[i].address, segments[i].size), "cuMemUnmap");
}

void sleep_wake(void);
void sleep_wake(void)
{
    for (size_t i = 0; i < SEGMENTS_MAX; i++)
        if (segments[i].size)
            map(segments[i].address, segments[i].size);
}
