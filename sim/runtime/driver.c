/*
 * Finds the driver exactly as NVIDIA's runtime does, so that a tool between a runtime and its
 * driver sees the same road here: dlopen("libcuda.so.1"), one dlsym("cuGetProcAddress_v2"), a
 * request with an empty name, and one request per function and stream form.
 *
 * Relies on libcuda.so.1 being the simulated driver or a hook above it; it uses only public API,
 * apart from gpumem_sim_register_variable, which is looked up only by a program that registers
 * device variables.
 */
#include "runtime.h"
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

struct gpusim_driver gpusim_driver;
struct gpusim_driver gpusim_driver_per_thread;
PFN_cuGetProcAddress_v12000 gpusim_get_proc_address;

struct request {
    const char *name;
    int version;
    int per_thread_version;
    size_t offset;
};

#define REQUEST(name, version, per_thread_version)                                                 \
    {#name, version, per_thread_version, offsetof(struct gpusim_driver, name##_v##version)},
static const struct request requests[] = {GPUSIM_DRIVER_FUNCTIONS(REQUEST)};
#undef REQUEST

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t open_error;
static void *library;

static CUresult missing_function(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

static void *request(const char *name, int version, cuuint64_t flags)
{
    void *function = NULL;
    CUresult result = gpusim_get_proc_address(name, &function, version, flags, NULL);
    return result == CUDA_SUCCESS && function ? function : (void *)missing_function;
}

static void request_all(void)
{
    for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++) {
        const struct request *wanted = &requests[i];
        void *plain = request(wanted->name, wanted->version, CU_GET_PROC_ADDRESS_DEFAULT);
        void *per_thread = plain;
        if (wanted->per_thread_version)
            per_thread = request(wanted->name, wanted->per_thread_version,
                                 CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
        memcpy((char *)&gpusim_driver + wanted->offset, &plain, sizeof plain);
        memcpy((char *)&gpusim_driver_per_thread + wanted->offset, &per_thread, sizeof per_thread);
    }
}

static cudaError_t open_driver(void)
{
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library)
        return cudaErrorInsufficientDriver;
    void *symbol = dlsym(library, "cuGetProcAddress_v2");
    if (!symbol)
        return cudaErrorInsufficientDriver;
    gpusim_get_proc_address = (PFN_cuGetProcAddress_v12000)symbol;
    void *ignored = NULL;
    gpusim_get_proc_address("", &ignored, 0, CU_GET_PROC_ADDRESS_DEFAULT, NULL);
    request_all();

    int version = 0;
    CUresult result = DRIVER(cuDriverGetVersion, 2020)(&version);
    if (result != CUDA_SUCCESS)
        return (cudaError_t)result;
    if (version / 1000 < GPUSIM_CUDART_MAJOR)
        return cudaErrorInsufficientDriver;
    return (cudaError_t)DRIVER(cuInit, 2000)(0);
}

static void open_once(void)
{
    open_error = open_driver();
}

cudaError_t gpusim_driver_open(void)
{
    pthread_once(&once, open_once);
    return open_error;
}

CUresult gpusim_driver_register_variable(CUlibrary into, const char *name, size_t bytes,
                                         bool managed)
{
    typedef CUresult (*register_variable)(CUlibrary, const char *, size_t, int);
    register_variable function = (register_variable)dlsym(library, "gpumem_sim_register_variable");
    return function ? function(into, name, bytes, managed) : CUDA_ERROR_NOT_SUPPORTED;
}
