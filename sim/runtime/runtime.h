/*
 * What the files of the simulated CUDA runtime share.
 *
 * The runtime owns no memory: every call becomes calls of the driver, which is found as NVIDIA's
 * runtime finds it (driver.c). Handles of the runtime API are the driver's handles; where each API
 * has its own structure, a check next to the cast compares the layouts at compile time.
 *
 * Files that define functions with a per-thread-default-stream form are compiled twice, the second
 * time with CUDA_API_PER_THREAD_DEFAULT_STREAM: the CUDA headers then rename the functions to their
 * _ptsz/_ptds forms and DRIVER() takes the driver's per-thread forms. Such a file holds no other
 * exported function, and its helpers are static.
 */
#ifndef GPUMEM_SIM_RUNTIME_H
#define GPUMEM_SIM_RUNTIME_H

#include "driver_functions.h"
#include <cuda.h>
#include <cudaProfilerTypedefs.h>
#include <cudaTypedefs.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifndef GPUSIM_CUDART_MAJOR
#define GPUSIM_CUDART_MAJOR 13
#endif
#define GPUSIM_CUDART_VERSION (GPUSIM_CUDART_MAJOR == 12 ? 12080 : CUDART_VERSION)

#define GPUSIM_DRIVER_FIELD(name, version, per_thread_version)                                     \
    PFN_##name##_v##version name##_v##version;
struct gpusim_driver {
    GPUSIM_DRIVER_FUNCTIONS(GPUSIM_DRIVER_FIELD)
};
#undef GPUSIM_DRIVER_FIELD

/* Filled by gpusim_driver_open(); a function the driver does not have answers NOT_SUPPORTED. */
extern struct gpusim_driver gpusim_driver;
extern struct gpusim_driver gpusim_driver_per_thread;
extern PFN_cuGetProcAddress_v12000 gpusim_get_proc_address;

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define GPUSIM_DRIVER_TABLE gpusim_driver_per_thread
#else
#define GPUSIM_DRIVER_TABLE gpusim_driver
#endif

/* The driver function `name` in the ABI of driver version `version`. Both macros paste their
 * arguments directly: cuda.h defines many names as macros of themselves with a suffix. */
#define DRIVER(name, version) (GPUSIM_DRIVER_TABLE.name##_v##version)

/* The whole body of a runtime function that is one driver call. */
#define CALL(name, version, ...)                                                                   \
    (gpusim_enter() ? gpusim_finish(GPUSIM_DRIVER_TABLE.name##_v##version(__VA_ARGS__))            \
                    : gpusim_refusal())
#define CALL_WITHOUT_CONTEXT(name, version, ...)                                                   \
    (gpusim_enter_without_context()                                                                \
         ? gpusim_finish(GPUSIM_DRIVER_TABLE.name##_v##version(__VA_ARGS__))                       \
         : gpusim_refusal())

/* driver.c: finds and initialises the driver once; the error of that one time is kept. */
cudaError_t gpusim_driver_open(void);
/* Declares a __device__ variable to the driver, because only the host code knows its size. */
CUresult gpusim_driver_register_variable(CUlibrary library, const char *name, size_t bytes,
                                         bool managed);

/* context.c: makes the driver ready, and a context current on this thread. False: refused, the
 * error is recorded and gpusim_refusal() returns it. */
bool gpusim_enter(void);
bool gpusim_enter_without_context(void);
cudaError_t gpusim_refusal(void);
/* The device a call without a device argument means. Needs no context and creates none. */
int gpusim_current_device(void);
/* The primary context of a device, retained for the life of the process or until a reset. */
cudaError_t gpusim_primary_context(int device, CUcontext *context);
CUcontext gpusim_current_context(void);

/* error.c: both record a failure as this thread's last error and return it. */
cudaError_t gpusim_fail(cudaError_t error);
cudaError_t gpusim_finish(CUresult result);
/* The whole body of a generated stub; int, because stubs are declared without the headers. */
int gpusim_not_supported(void);

/* registration.c: kernels and variables that host code registered, loaded at first use. The
 * functions record nothing. gpusim_find_kernel() also takes the kernel handles remembered. */
cudaError_t gpusim_find_kernel(const void *function, CUkernel *kernel);
cudaError_t gpusim_find_variable(const void *symbol, CUdeviceptr *address, size_t *bytes);
void gpusim_remember_kernel(CUkernel kernel);

/* array.c */
cudaError_t gpusim_array_format(const struct cudaChannelFormatDesc *channels,
                                CUarray_format *format, unsigned *channel_count);
struct cudaChannelFormatDesc gpusim_channel_description(CUarray_format format,
                                                        unsigned channel_count);
/* Bytes of one element of an array; 0 when the driver does not know the array. */
size_t gpusim_array_element_bytes(CUarray array);

/* copy_descriptor.c: the driver's description of a 3D copy. */
cudaError_t gpusim_describe_copy(const struct cudaMemcpy3DParms *from, CUDA_MEMCPY3D *to);
cudaError_t gpusim_describe_peer_copy(const struct cudaMemcpy3DPeerParms *from,
                                      CUDA_MEMCPY3D_PEER *to);
void gpusim_describe_copy_back(const CUDA_MEMCPY3D *from, struct cudaMemcpy3DParms *to);
/* The same for a linear copy, as graph nodes need it. */
void gpusim_describe_linear_copy(void *destination, const void *source, size_t bytes,
                                 enum cudaMemcpyKind kind, CUDA_MEMCPY3D *to);
/* The two sides of a copy kind; false for a value that is not a kind. */
bool gpusim_memory_types(enum cudaMemcpyKind kind, CUmemorytype *source, CUmemorytype *destination);

/* Device addresses are integers in the driver API and pointers in the runtime API. */
_Static_assert(sizeof(CUdeviceptr) == sizeof(void *), "device addresses fit a pointer");

static inline CUdeviceptr gpusim_device_address(const void *pointer)
{
    return (CUdeviceptr)(uintptr_t)pointer;
}

static inline void *gpusim_pointer(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

/* An out-parameter of the runtime API, as the driver takes it. */
static inline CUdeviceptr *gpusim_out(void **pointer)
{
    return (CUdeviceptr *)(void *)pointer;
}

#endif
