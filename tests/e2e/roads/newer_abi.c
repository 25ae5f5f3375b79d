/*
 * Asks a future driver for today's ABIs and for its own, in the order of the first argument, over
 * the road of the second, and calls both. It prints the same with or without a tool in between,
 * unless a call gets an argument too many.
 *
 *   newer_abi STEPS proc|proc_old|entry_point|dlsym|default|linked
 *
 * Steps: a, b find the ABIs of today and those of the future; A, B call them; c finds one that only
 * sets memory; i initialises; f goes on in a child, too.
 */
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAG 0x41420043u
#define CHECK(call) printf("%s: %d\n", #call, (int)(call))

typedef CUresult alloc_today(CUdeviceptr *, size_t);
typedef CUresult free_today(CUdeviceptr);
typedef CUresult alloc_async_today(CUdeviceptr *, size_t, CUstream);
typedef CUresult set_today(CUdeviceptr, unsigned char, size_t);
typedef CUresult alloc_future(unsigned, CUdeviceptr *, size_t);
typedef CUresult free_future(unsigned, CUdeviceptr);
typedef CUresult alloc_async_future(unsigned, CUdeviceptr *, size_t, CUstream);
typedef CUresult set_future(unsigned, CUdeviceptr, unsigned char, size_t);

static const char *road;
static void *library;

#ifdef LINKED
CUresult cuMemAlloc_v3(unsigned, CUdeviceptr *, size_t);
CUresult cuMemAllocAsync_v2(unsigned, CUdeviceptr *, size_t, CUstream);
CUresult cuMemAllocAsync_v2_ptsz(unsigned, CUdeviceptr *, size_t, CUstream);
#endif

static void *find_function(const char *name, int version, int flags, const char *symbol)
{
    void *found = NULL;
    CUdriverProcAddressQueryResult status;
    enum cudaDriverEntryPointQueryResult runtime_status;
    if (strcmp(road, "dlsym") == 0)
        return symbol ? dlsym(library, symbol) : NULL;
    if (strcmp(road, "default") == 0)
        return symbol ? dlsym(RTLD_DEFAULT, symbol) : NULL;
    if (strcmp(road, "entry_point") == 0)
        cudaGetDriverEntryPointByVersion(
            name, &found, (unsigned)version,
            flags == 2 ? cudaEnablePerThreadDefaultStream : cudaEnableDefault, &runtime_status);
    else if (strcmp(road, "proc_old") == 0)
        ((__typeof__(cuGetProcAddress) *)dlsym(library, "cuGetProcAddress"))(name, &found, version,
                                                                             (cuuint64_t)flags);
    else
        ((__typeof__(cuGetProcAddress_v2) *)dlsym(library, "cuGetProcAddress_v2"))(
            name, &found, version, (cuuint64_t)flags, &status);
    return found;
}

static alloc_today *alloc_a;
static free_today *free_a;
static alloc_async_today *async_a;
static set_today *set_a;
static alloc_future *alloc_b;
static free_future *free_b;
static alloc_async_future *async_b, *thread_b;
static set_future *set_b;

static void find_today(void)
{
    alloc_a = (alloc_today *)find_function("cuMemAlloc", 13000, 0, "cuMemAlloc_v2");
    free_a = (free_today *)find_function("cuMemFree", 13000, 0, "cuMemFree_v2");
    async_a = (alloc_async_today *)find_function("cuMemAllocAsync", 13000, 0, "cuMemAllocAsync");
    set_a = (set_today *)find_function("cuMemsetD8", 13000, 0, "cuMemsetD8_v2");
}

static void find_future(void)
{
#ifdef LINKED
    alloc_b = cuMemAlloc_v3;
    async_b = cuMemAllocAsync_v2;
    thread_b = cuMemAllocAsync_v2_ptsz;
    return;
#endif
    alloc_b = (alloc_future *)find_function("cuMemAlloc", 14000, 0, "cuMemAlloc_v3");
    free_b = (free_future *)find_function("cuMemFree", 14010, 0, NULL);
    async_b =
        (alloc_async_future *)find_function("cuMemAllocAsync", 14000, 0, "cuMemAllocAsync_v2");
    thread_b =
        (alloc_async_future *)find_function("cuMemAllocAsync", 14000, 2, "cuMemAllocAsync_v2_ptsz");
    set_b = (set_future *)find_function("cuMemsetD8", 14000, 0, NULL);
}

/* Memory allocated by one ABI is freed by the other's function, if it has one. */
static void release(CUdeviceptr address)
{
    if (free_b)
        CHECK(free_b(TAG, address));
    else
        CHECK(free_a(address));
}

static void call_future(void)
{
    CUdeviceptr address = 0;
    CHECK(alloc_b(TAG, &address, 70000));
    if (set_b)
        CHECK(set_b(TAG, address, 1, 70000));
    release(address);
    CHECK(async_b(TAG, &address, 1 << 20, NULL));
    release(address);
    CHECK(thread_b(TAG, &address, 1 << 20, NULL));
    release(address);
    CHECK(alloc_b(0, &address, 70000));
}

static void call_today(void)
{
    CUdeviceptr address = 0;
    CHECK(alloc_a(&address, 60000));
    CHECK(set_a(address, 2, 60000));
    CHECK(free_a(address));
    CHECK(async_a(&address, 1 << 19, NULL));
    CHECK(free_a(address));
}

int main(int count, char **arguments)
{
    CUcontext context;
    if (count != 3)
        return 2;
    road = arguments[2];
    library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    setvbuf(stdout, NULL, _IONBF, 0);
    for (const char *step = arguments[1]; *step; step++) {
        if (*step == 'a')
            find_today();
        else if (*step == 'b')
            find_future();
        else if (*step == 'c')
            set_b = (set_future *)find_function("cuMemsetD8", 14000, 0, NULL);
        else if (*step == 'f' && fork() != 0)
            wait(NULL);
        else if (*step == 'A')
            call_today();
        else if (*step == 'B')
            call_future();
        else if (*step == 'i') {
            CHECK(((__typeof__(cuInit) *)dlsym(library, "cuInit"))(0));
            CHECK(((__typeof__(cuDevicePrimaryCtxRetain) *)dlsym(
                library, "cuDevicePrimaryCtxRetain"))(&context, 0));
            CHECK(((__typeof__(cuCtxSetCurrent) *)dlsym(library, "cuCtxSetCurrent"))(context));
        }
    }
    return 0;
}
