/*
 * The driver API over each road. The work is the same; ROAD says how the program finds its
 * functions:
 *   ROAD_LINKED        by the loader
 *   ROAD_DLSYM         dlopen("libcuda.so.1") and dlsym
 *   ROAD_PROC          cuGetProcAddress_v2 of a linked driver, 12.0 ABI
 *   ROAD_PROC_OLD      cuGetProcAddress of the 11.3 ABI, found by dlsym
 *   ROAD_PROC_SELF     cuGetProcAddress asked for itself, then for all else
 *   ROAD_PER_THREAD    the same with the per-thread default stream
 *   ROAD_ENTRY_POINT   cudaGetDriverEntryPointByVersion of the runtime
 */
#define __CUDA_API_VERSION_INTERNAL /* every ABI under its own name */
#include "../programs/plant.h"
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#ifdef ROAD_ENTRY_POINT
#include <cuda_runtime_api.h>
#endif

typedef void function(void);

#define TEXT(symbol) TEXT_AS_IS(symbol)
#define TEXT_AS_IS(symbol) #symbol

#ifdef ROAD_PER_THREAD
#define STREAM_FORM(name) name##_ptsz
#define FLAGS CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM
#else
#define STREAM_FORM(name) name
#define FLAGS CU_GET_PROC_ADDRESS_DEFAULT
#endif

/* FUNCTION(symbol, name that cuGetProcAddress knows, version of the ABI) */
#define FUNCTIONS                                                                                  \
    FUNCTION(cuInit, cuInit, 2000)                                                                 \
    FUNCTION(cuDeviceGet, cuDeviceGet, 2000)                                                       \
    FUNCTION(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000)                             \
    FUNCTION(cuCtxSetCurrent, cuCtxSetCurrent, 4000)                                               \
    FUNCTION(cuMemAlloc_v2, cuMemAlloc, 3020)                                                      \
    FUNCTION(cuMemFree_v2, cuMemFree, 3020)                                                        \
    FUNCTION(cuMemAllocPitch_v2, cuMemAllocPitch, 3020)                                            \
    FUNCTION(cuMemAllocManaged, cuMemAllocManaged, 6000)                                           \
    FUNCTION(cuMemAllocHost_v2, cuMemAllocHost, 3020)                                              \
    FUNCTION(cuMemFreeHost, cuMemFreeHost, 2000)                                                   \
    FUNCTION(cuMemCreate, cuMemCreate, 10020)                                                      \
    FUNCTION(cuMemRelease, cuMemRelease, 10020)                                                    \
    FUNCTION(STREAM_FORM(cuMemAllocAsync), cuMemAllocAsync, 11020)                                 \
    FUNCTION(STREAM_FORM(cuMemFreeAsync), cuMemFreeAsync, 11020)                                   \
    FUNCTION(STREAM_FORM(cuStreamSynchronize), cuStreamSynchronize, 7000)

#define FUNCTION(symbol, name, version) static __typeof__(symbol) *driver_##name;
FUNCTIONS
#undef FUNCTION

#ifdef ROAD_DLSYM
static function *find_function(const char *symbol, const char *name, int version)
{
    (void)name, (void)version;
    static void *library;
    if (library == NULL)
        library = dlopen("libcuda.so.1", RTLD_NOW);
    return (function *)dlsym(library, symbol);
}
#elif defined ROAD_ENTRY_POINT
static function *find_function(const char *symbol, const char *name, int version)
{
    (void)symbol;
    void *found = NULL;
    enum cudaDriverEntryPointQueryResult status;
    if (cudaGetDriverEntryPointByVersion(name, &found, (unsigned)version, cudaEnableDefault,
                                         &status) != cudaSuccess ||
        status != cudaDriverEntryPointSuccess)
        return NULL;
    return (function *)found;
}
#elif defined ROAD_PROC_OLD
static function *find_function(const char *symbol, const char *name, int version)
{
    (void)symbol;
    void *found = NULL;
    __typeof__(cuGetProcAddress) *get =
        (__typeof__(cuGetProcAddress) *)dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuGetProcAddress");
    return get(name, &found, version, FLAGS) == CUDA_SUCCESS ? (function *)found : NULL;
}
#elif defined ROAD_PROC || defined ROAD_PROC_SELF || defined ROAD_PER_THREAD
static function *find_function(const char *symbol, const char *name, int version)
{
    (void)symbol;
    void *found = NULL;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    __typeof__(cuGetProcAddress_v2) *get = cuGetProcAddress_v2;
#ifdef ROAD_PROC_SELF
    void *self = NULL;
    LOG(cuGetProcAddress_v2("cuGetProcAddress", &self, 12000, FLAGS, &status));
    get = (__typeof__(cuGetProcAddress_v2) *)self;
#endif
    CUresult result = get(name, &found, version, FLAGS, &status);
    printf("%s: %d, status %d\n", name, (int)result, (int)status);
    return result == CUDA_SUCCESS ? (function *)found : NULL;
}
#elif !defined ROAD_LINKED
#error "which road?"
#endif

static void find_all(void)
{
#ifdef ROAD_LINKED
#define FUNCTION(symbol, name, version) driver_##name = symbol;
#else
#define FUNCTION(symbol, name, version)                                                            \
    driver_##name = (__typeof__(symbol) *)find_function(TEXT(symbol), #name, version);             \
    if (driver_##name == NULL)                                                                     \
        printf("missing: %s\n", #name);
#endif
    FUNCTIONS
#undef FUNCTION
}

__attribute__((noinline)) static void forget_by_hand(void)
{
    CUdeviceptr address;
    LOG(driver_cuMemAlloc(&address, 654321));
    PLANTED(654321, 1);
}

static void linear(void)
{
    CUdeviceptr address[3], pitched, managed;
    size_t pitch = 0;
    for (int i = 0; i < 3; i++)
        LOG(driver_cuMemAlloc(&address[i], (size_t)10000 << i));
    LOG(driver_cuMemAllocPitch(&pitched, &pitch, 300, 7, 4));
    printf("pitch %zu\n", pitch);
    LOG(driver_cuMemAllocManaged(&managed, 1 << 16, CU_MEM_ATTACH_GLOBAL));
    LOG(driver_cuMemFree(managed));
    LOG(driver_cuMemFree(pitched));
    for (int i = 0; i < 3; i++)
        LOG(driver_cuMemFree(address[i]));
    LOG(driver_cuMemAlloc(&address[0], (size_t)1 << 60)); /* refused */
    LOG(driver_cuMemFree(0));
    LOG(driver_cuMemAlloc(NULL, 16));
}

static void host_and_stream_ordered(void)
{
    void *pinned;
    CUdeviceptr address;
    LOG(driver_cuMemAllocHost(&pinned, 1 << 13));
    LOG(driver_cuMemFreeHost(pinned));
    LOG(driver_cuMemAllocAsync(&address, 1 << 18, NULL));
    LOG(driver_cuMemFreeAsync(address, NULL));
    LOG(driver_cuStreamSynchronize(NULL));
}

static void physical(CUdevice device)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = {
        .type = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device},
    };
    LOG(driver_cuMemCreate(&handle, 2 << 20, &properties, 0));
    LOG(driver_cuMemRelease(handle));
}

int main(void)
{
    CUdevice device = 0;
    CUcontext context;
    find_all();
    LOG(driver_cuInit(0));
    LOG(driver_cuDeviceGet(&device, 0));
    LOG(driver_cuDevicePrimaryCtxRetain(&context, device));
    LOG(driver_cuCtxSetCurrent(context));
    linear();
    host_and_stream_ordered();
    physical(device);
    forget_by_hand();
    return 0;
}
