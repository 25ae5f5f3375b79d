/*
 * The simulated runtime keeps the documented behaviour of the runtime API, on the simulated driver.
 *
 * Built twice: against libcudart.so.13, and against the archive, where every function is bound
 * inside the executable. Runs with two devices of 64 MiB (sim_runtime.cmake).
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* needs the headers above */

#define MIB ((size_t)1 << 20)

#define assert_ok(call) assert_int_equal(call, cudaSuccess)

/* Fails with the given error, which is then the last error. */
#define assert_fails(error, call)                                                                  \
    do {                                                                                           \
        assert_int_equal(call, error);                                                             \
        assert_int_equal(cudaGetLastError(), error);                                               \
    } while (0)

static size_t free_bytes(void)
{
    size_t available = 0;
    size_t total = 0;
    assert_ok(cudaMemGetInfo(&available, &total));
    return available;
}

static void versions_are_told_without_a_context(void **state)
{
    (void)state;
    int version = 0;
    assert_ok(cudaRuntimeGetVersion(&version));
    assert_int_equal(version, CUDART_VERSION);
    assert_ok(cudaDriverGetVersion(&version));
    assert_true(version >= CUDART_VERSION);
    int count = 0;
    assert_ok(cudaGetDeviceCount(&count));
    assert_int_equal(count, 2);
}

static void properties_name_a_simulated_device_of_the_set_size(void **state)
{
    (void)state;
    struct cudaDeviceProp properties;
    assert_ok(cudaGetDeviceProperties(&properties, 1));
    assert_non_null(strcasestr(properties.name, "simulated"));
    assert_int_equal(properties.totalGlobalMem, 64 * MIB);
    int value = 0;
    assert_ok(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1));
    assert_int_equal(properties.warpSize, value);
    assert_int_equal(properties.warpSize, 32);
    assert_ok(cudaDeviceGetAttribute(&value, cudaDevAttrMaxGridDimZ, 1));
    assert_int_equal(properties.maxGridSize[2], value);
    assert_fails(cudaErrorInvalidDevice, cudaGetDeviceProperties(&properties, 2));
}

static void allocating_nothing_gives_null_and_success(void **state)
{
    (void)state;
    void *pointer = &pointer;
    assert_ok(cudaMalloc(&pointer, 0));
    assert_null(pointer);
    pointer = &pointer;
    assert_ok(cudaMallocHost(&pointer, 0));
    assert_null(pointer);
    size_t pitch = 1;
    pointer = &pointer;
    assert_ok(cudaMallocPitch(&pointer, &pitch, 0, 10));
    assert_null(pointer);
    pointer = &pointer;
    assert_ok(cudaMallocAsync(&pointer, 0, NULL));
    assert_null(pointer);
    assert_ok(cudaFree(NULL));
    assert_ok(cudaFreeHost(NULL));
    assert_ok(cudaFreeAsync(NULL, NULL));
    assert_ok(cudaFreeArray(NULL));
}

static void device_memory_is_taken_and_given_back(void **state)
{
    (void)state;
    size_t before = free_bytes();
    void *linear = NULL;
    assert_ok(cudaMalloc(&linear, 4 * MIB));
    assert_true(before - free_bytes() >= 4 * MIB);
    void *pitched = NULL;
    size_t pitch = 0;
    assert_ok(cudaMallocPitch(&pitched, &pitch, 1000, 16));
    assert_true(pitch >= 1000);
    struct cudaPitchedPtr volume;
    assert_ok(cudaMalloc3D(&volume, (struct cudaExtent){100, 7, 3}));
    assert_int_equal(volume.xsize, 100);
    assert_int_equal(volume.ysize, 7);
    assert_true(volume.pitch >= 100);
    void *managed = NULL;
    assert_ok(cudaMallocManaged(&managed, MIB, cudaMemAttachGlobal));
    memset(managed, 1, MIB); /* the host can touch it */
    assert_ok(cudaFree(linear));
    assert_ok(cudaFree(pitched));
    assert_ok(cudaFree(volume.ptr));
    assert_ok(cudaFree(managed));
    assert_int_equal(free_bytes(), before);
    assert_fails(cudaErrorInvalidValue, cudaFree(linear));
}

static void too_large_is_out_of_memory(void **state)
{
    (void)state;
    void *pointer = NULL;
    assert_fails(cudaErrorMemoryAllocation, cudaMalloc(&pointer, 65 * MIB));
    assert_fails(cudaErrorMemoryAllocation, cudaMalloc(&pointer, SIZE_MAX));
    struct cudaPitchedPtr volume;
    assert_fails(cudaErrorMemoryAllocation,
                 cudaMalloc3D(&volume, (struct cudaExtent){512, (size_t)1 << 40, (size_t)1 << 40}));
    assert_fails(cudaErrorMemoryAllocation, cudaMallocAsync(&pointer, 65 * MIB, NULL));
}

static void *malloc_with_an_error(void *unused)
{
    (void)unused;
    void *pointer = NULL;
    cudaError_t error = cudaMalloc(&pointer, SIZE_MAX);
    return (void *)(uintptr_t)(error == cudaErrorMemoryAllocation &&
                               cudaPeekAtLastError() == cudaErrorMemoryAllocation);
}

static void the_last_error_stays_until_fetched_and_is_of_one_thread(void **state)
{
    (void)state;
    pthread_t thread;
    void *as_expected = NULL;
    assert_int_equal(pthread_create(&thread, NULL, malloc_with_an_error, NULL), 0);
    assert_int_equal(pthread_join(thread, &as_expected), 0);
    assert_non_null(as_expected);
    assert_int_equal(cudaPeekAtLastError(), cudaSuccess);

    void *pointer = NULL;
    assert_int_equal(cudaMalloc(NULL, 16), cudaErrorInvalidValue);
    assert_ok(cudaMalloc(&pointer, 16));
    assert_ok(cudaFree(pointer));
    assert_int_equal(cudaPeekAtLastError(), cudaErrorInvalidValue);
    assert_int_equal(cudaGetLastError(), cudaErrorInvalidValue);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

static void errors_have_names_and_texts(void **state)
{
    (void)state;
    assert_string_equal(cudaGetErrorName(cudaErrorMemoryAllocation), "cudaErrorMemoryAllocation");
    assert_string_equal(cudaGetErrorString(cudaErrorMemoryAllocation), "out of memory");
    assert_string_equal(cudaGetErrorName(cudaErrorUnknown), "cudaErrorUnknown");
    assert_string_equal(cudaGetErrorName((cudaError_t)12345), "unrecognized error code");
}

static void pinned_memory_has_a_device_pointer(void **state)
{
    (void)state;
    void *pinned = NULL;
    void *device_pointer = NULL;
    unsigned flags = 0;
    assert_ok(cudaHostAlloc(&pinned, 4096, cudaHostAllocMapped | cudaHostAllocPortable));
    assert_ok(cudaHostGetDevicePointer(&device_pointer, pinned, 0));
    assert_non_null(device_pointer);
    assert_ok(cudaHostGetFlags(&flags, pinned));
    assert_int_equal(flags & cudaHostAllocPortable, cudaHostAllocPortable);
    assert_ok(cudaFreeHost(pinned));
    assert_fails(cudaErrorInvalidValue, cudaFreeHost(pinned));

    void *own = aligned_alloc(4096, 8192);
    assert_ok(cudaHostRegister(own, 8192, cudaHostRegisterDefault));
    assert_fails(cudaErrorHostMemoryAlreadyRegistered,
                 cudaHostRegister(own, 8192, cudaHostRegisterDefault));
    assert_ok(cudaHostUnregister(own));
    assert_fails(cudaErrorHostMemoryNotRegistered, cudaHostUnregister(own));
    free(own);
}

static void pointer_attributes_tell_kinds_apart(void **state)
{
    (void)state;
    struct cudaPointerAttributes attributes;
    void *pointer = NULL;
    assert_ok(cudaMalloc(&pointer, 256));
    assert_ok(cudaPointerGetAttributes(&attributes, (char *)pointer + 100));
    assert_int_equal(attributes.type, cudaMemoryTypeDevice);
    assert_int_equal(attributes.device, 0);
    assert_ok(cudaFree(pointer));
    assert_ok(cudaMallocManaged(&pointer, 256, cudaMemAttachGlobal));
    assert_ok(cudaPointerGetAttributes(&attributes, pointer));
    assert_int_equal(attributes.type, cudaMemoryTypeManaged);
    assert_ok(cudaFree(pointer));
    assert_ok(cudaMallocHost(&pointer, 256));
    assert_ok(cudaPointerGetAttributes(&attributes, pointer));
    assert_int_equal(attributes.type, cudaMemoryTypeHost);
    assert_ptr_equal(attributes.hostPointer, pointer);
    assert_ok(cudaFreeHost(pointer));
    assert_ok(cudaPointerGetAttributes(&attributes, &attributes));
    assert_int_equal(attributes.type, cudaMemoryTypeUnregistered);
    assert_int_equal(attributes.device, cudaInvalidDeviceId);
}

static void linear_copies_and_sets_move_bytes(void **state)
{
    (void)state;
    char from[300];
    char to[300];
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (char)i;
    char *device = NULL;
    assert_ok(cudaMalloc((void **)&device, 2 * sizeof from));
    assert_ok(cudaMemcpy(device, from, sizeof from, cudaMemcpyHostToDevice));
    assert_ok(cudaMemcpy(device + sizeof from, device, sizeof from, cudaMemcpyDeviceToDevice));
    assert_ok(cudaMemcpy(to, device + sizeof from, sizeof to, cudaMemcpyDefault));
    assert_memory_equal(from, to, sizeof to);
    assert_ok(cudaMemset(device, 0x1207, 100));
    assert_ok(cudaMemcpyAsync(to, device, sizeof to, cudaMemcpyDeviceToHost, NULL));
    assert_ok(cudaStreamSynchronize(NULL));
    assert_int_equal(to[0], 7);
    assert_int_equal(to[99], 7);
    assert_int_equal(to[100], from[100]);
    assert_ok(cudaMemcpy(device, from, 0, cudaMemcpyHostToDevice));
    assert_fails(cudaErrorInvalidMemcpyDirection,
                 cudaMemcpy(device, from, 1, (enum cudaMemcpyKind)5));
    assert_ok(cudaFree(device));
}

static void pitched_copies_leave_the_gaps_alone(void **state)
{
    (void)state;
    char from[5][20];
    char to[5][30];
    memset(to, 'x', sizeof to);
    for (int row = 0; row < 5; row++)
        memset(from[row], 'a' + row, sizeof from[row]);
    void *device = NULL;
    size_t pitch = 0;
    assert_ok(cudaMallocPitch(&device, &pitch, 20, 5));
    assert_ok(cudaMemcpy2D(device, pitch, from, 20, 20, 5, cudaMemcpyHostToDevice));
    assert_ok(cudaMemset2D(device, pitch, 'z', 3, 2));
    assert_ok(cudaMemcpy2D(to, 30, device, pitch, 20, 5, cudaMemcpyDeviceToHost));
    assert_int_equal(to[0][2], 'z');
    assert_int_equal(to[1][2], 'z');
    assert_int_equal(to[2][2], 'c');
    assert_int_equal(to[4][19], 'e');
    assert_int_equal(to[4][20], 'x');
    assert_fails(cudaErrorInvalidPitchValue,
                 cudaMemcpy2D(device, pitch, from, 10, 20, 5, cudaMemcpyHostToDevice));
    assert_ok(cudaFree(device));
}

static void batches_copy_every_part(void **state)
{
    (void)state;
    int from[2] = {1, 2};
    int to[2] = {0, 0};
    const void *sources[] = {&from[0], &from[1]};
    void *destinations[] = {&to[1], &to[0]};
    size_t sizes[] = {sizeof from[0], sizeof from[1]};
    struct cudaMemcpyAttributes attributes = {.srcAccessOrder = cudaMemcpySrcAccessOrderStream};
    size_t first = 0;
    cudaStream_t stream = NULL;
    assert_ok(cudaStreamCreate(&stream));
    assert_ok(
        cudaMemcpyBatchAsync(destinations, sources, sizes, 2, &attributes, &first, 1, stream));
    assert_ok(cudaStreamSynchronize(stream));
    assert_int_equal(to[0], 2);
    assert_int_equal(to[1], 1);
    assert_ok(cudaStreamDestroy(stream));
}

static void volumes_are_set_slice_by_slice(void **state)
{
    (void)state;
    struct cudaPitchedPtr volume;
    assert_ok(cudaMalloc3D(&volume, (struct cudaExtent){8, 4, 3}));
    size_t slice = volume.pitch * 4;
    assert_ok(cudaMemset(volume.ptr, 1, slice * 3));
    assert_ok(cudaMemset3D(volume, 2, (struct cudaExtent){8, 2, 3}));
    char *copy = malloc(slice * 3);
    assert_ok(cudaMemcpy(copy, volume.ptr, slice * 3, cudaMemcpyDeviceToHost));
    for (size_t z = 0; z < 3; z++) {
        assert_int_equal(copy[z * slice + volume.pitch + 7], 2);
        assert_int_equal(copy[z * slice + 2 * volume.pitch], 1);
    }
    free(copy);
    assert_ok(cudaFree(volume.ptr));
}

static void managed_memory_takes_hints(void **state)
{
    (void)state;
    void *pointer = NULL;
    struct cudaMemLocation device = {.type = cudaMemLocationTypeDevice, .id = 0};
    int preferred = -1;
    assert_ok(cudaMallocManaged(&pointer, MIB, cudaMemAttachGlobal));
    assert_ok(cudaMemAdvise(pointer, MIB, cudaMemAdviseSetPreferredLocation, device));
    assert_ok(cudaMemPrefetchAsync(pointer, MIB, device, 0, NULL));
    assert_ok(cudaMemRangeGetAttribute(&preferred, sizeof preferred,
                                       cudaMemRangeAttributePreferredLocation, pointer, MIB));
    assert_int_equal(preferred, 0);
    assert_ok(cudaFree(pointer));
}

static void arrays_take_positions_in_elements(void **state)
{
    (void)state;
    struct cudaChannelFormatDesc channels =
        cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat);
    cudaArray_t array = NULL;
    assert_ok(cudaMalloc3DArray(&array, &channels, (struct cudaExtent){4, 3, 2}, 0));
    struct cudaChannelFormatDesc told;
    struct cudaExtent extent;
    unsigned flags = 1;
    assert_ok(cudaArrayGetInfo(&told, &extent, &flags, array));
    assert_memory_equal(&told, &channels, sizeof told);
    assert_int_equal(extent.depth, 2);
    float from[2][3][4];
    float to[2] = {0};
    for (int i = 0; i < 24; i++)
        (&from[0][0][0])[i] = (float)i;
    assert_ok(cudaMemcpy3D(&(struct cudaMemcpy3DParms){.srcPtr = {from, 4 * sizeof(float), 4, 3},
                                                       .dstArray = array,
                                                       .extent = {4, 3, 2},
                                                       .kind = cudaMemcpyHostToDevice}));
    assert_ok(cudaMemcpy3D(&(struct cudaMemcpy3DParms){.srcArray = array,
                                                       .srcPos = {2, 1, 1},
                                                       .dstPtr = {to, sizeof to, 2, 1},
                                                       .extent = {2, 1, 1},
                                                       .kind = cudaMemcpyDeviceToHost}));
    assert_true(to[0] == from[1][1][2] && to[1] == from[1][1][3]);
    assert_ok(cudaFreeArray(array));
    assert_fails(cudaErrorInvalidChannelDescriptor,
                 cudaMallocArray(&array, &(struct cudaChannelFormatDesc){.x = 7}, 4, 4, 0));
}

/* The deprecated linear array copies run on from one row into the next. */
static void consecutive_array_copies_wrap_at_rows(void **state)
{
    (void)state;
    struct cudaChannelFormatDesc channels =
        cudaCreateChannelDesc(8, 0, 0, 0, cudaChannelFormatKindUnsigned);
    cudaArray_t first = NULL;
    cudaArray_t second = NULL;
    assert_ok(cudaMallocArray(&first, &channels, 10, 4, 0));
    assert_ok(cudaMallocArray(&second, &channels, 7, 8, 0));
    const char from[] = "abcdefghijklmnopqrstuvwxyz0123";
    char to[31] = "";
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    assert_ok(cudaMemcpyToArray(first, 3, 0, from, 30, cudaMemcpyHostToDevice));
    assert_ok(cudaMemcpyArrayToArray(second, 2, 1, first, 3, 0, 30, cudaMemcpyDeviceToDevice));
    assert_ok(cudaMemcpyFromArray(to, second, 2, 1, 30, cudaMemcpyDeviceToHost));
#pragma GCC diagnostic pop
    assert_string_equal(to, from);
    assert_ok(cudaMemcpy2DFromArray(to, 4, first, 0, 1, 4, 1, cudaMemcpyDeviceToHost));
    assert_memory_equal(to, "hijk", 4);
    assert_ok(cudaFreeArray(first));
    assert_ok(cudaFreeArray(second));
}

static void mipmaps_have_levels(void **state)
{
    (void)state;
    struct cudaChannelFormatDesc channels =
        cudaCreateChannelDesc(8, 8, 0, 0, cudaChannelFormatKindUnsigned);
    cudaMipmappedArray_t mipmap = NULL;
    cudaArray_t level = NULL;
    struct cudaExtent extent;
    assert_ok(cudaMallocMipmappedArray(&mipmap, &channels, (struct cudaExtent){64, 32, 0}, 3, 0));
    assert_ok(cudaGetMipmappedArrayLevel(&level, mipmap, 2));
    assert_ok(cudaArrayGetInfo(NULL, &extent, NULL, level));
    assert_int_equal(extent.width, 16);
    assert_int_equal(extent.height, 8);
    assert_ok(cudaFreeMipmappedArray(mipmap));
}

static void pools_serve_stream_ordered_memory(void **state)
{
    (void)state;
    cudaStream_t stream = NULL;
    cudaMemPool_t pool = NULL;
    void *pointer = NULL;
    uint64_t used = 1;
    struct cudaMemPoolProps properties = {.allocType = cudaMemAllocationTypePinned,
                                          .location = {.type = cudaMemLocationTypeDevice, .id = 0}};
    assert_ok(cudaStreamCreate(&stream));
    assert_ok(cudaMemPoolCreate(&pool, &properties));
    assert_ok(cudaMallocFromPoolAsync(&pointer, MIB, pool, stream));
    assert_ok(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    assert_true(used >= MIB);
    assert_ok(cudaMemsetAsync(pointer, 0, MIB, stream));
    assert_ok(cudaFreeAsync(pointer, stream));
    assert_ok(cudaStreamSynchronize(stream));
    assert_ok(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used));
    assert_int_equal(used, 0);
    assert_ok(cudaMemPoolTrimTo(pool, 0));
    assert_ok(cudaMemPoolDestroy(pool));
    assert_ok(cudaDeviceGetDefaultMemPool(&pool, 0));
    assert_non_null(pool);
    assert_ok(cudaMallocAsync(&pointer, 100, stream));
    assert_ok(cudaFree(pointer)); /* any free function takes it */
    assert_ok(cudaStreamDestroy(stream));
}

/* Declared only for programs built with the per-thread default stream. */
extern cudaError_t cudaMallocAsync_ptsz(void **pointer, size_t bytes, cudaStream_t stream);
extern cudaError_t cudaFreeAsync_ptsz(void *pointer, cudaStream_t stream);
extern cudaError_t cudaMemcpy_ptds(void *to, const void *from, size_t bytes,
                                   enum cudaMemcpyKind kind);

static void per_thread_forms_work(void **state)
{
    (void)state;
    void *pointer = NULL;
    int from = 5;
    int to = 0;
    assert_ok(cudaMallocAsync_ptsz(&pointer, sizeof from, NULL));
    assert_ok(cudaMemcpy_ptds(pointer, &from, sizeof from, cudaMemcpyHostToDevice));
    assert_ok(cudaMemcpy_ptds(&to, pointer, sizeof from, cudaMemcpyDeviceToHost));
    assert_int_equal(to, 5);
    assert_ok(cudaFreeAsync_ptsz(pointer, NULL));
}

static void captured_allocations_live_from_the_launch(void **state)
{
    (void)state;
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t executable = NULL;
    void *pointer = NULL;
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    size_t nodes = 0;
    assert_ok(cudaStreamCreate(&stream));
    assert_ok(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    assert_ok(cudaStreamIsCapturing(stream, &status));
    assert_int_equal(status, cudaStreamCaptureStatusActive);
    assert_ok(cudaMallocAsync(&pointer, MIB, stream));
    assert_ok(cudaMemsetAsync(pointer, 9, MIB, stream));
    assert_ok(cudaStreamEndCapture(stream, &graph));
    assert_ok(cudaGraphGetNodes(graph, NULL, &nodes));
    assert_int_equal(nodes, 2);
    assert_ok(cudaGraphInstantiate(&executable, graph, 0));
    assert_ok(cudaGraphLaunch(executable, stream));
    assert_ok(cudaStreamSynchronize(stream));
    unsigned char byte = 0;
    assert_ok(cudaMemcpy(&byte, (char *)pointer + MIB - 1, 1, cudaMemcpyDeviceToHost));
    assert_int_equal(byte, 9);
    assert_ok(cudaFreeAsync(pointer, stream));
    assert_ok(cudaGraphExecDestroy(executable));
    assert_ok(cudaGraphDestroy(graph));
    assert_ok(cudaDeviceGraphMemTrim(0));
    assert_ok(cudaStreamDestroy(stream));
}

static void graph_nodes_are_translated(void **state)
{
    (void)state;
    cudaGraph_t graph = NULL;
    cudaGraphNode_t allocation = NULL;
    cudaGraphNode_t copy = NULL;
    cudaGraphNode_t release = NULL;
    cudaGraphExec_t executable = NULL;
    int from = 77;
    int to = 0;
    assert_ok(cudaGraphCreate(&graph, 0));
    struct cudaGraphNodeParams parameters = {.type = cudaGraphNodeTypeMemAlloc};
    parameters.alloc.poolProps.allocType = cudaMemAllocationTypePinned;
    parameters.alloc.poolProps.location.type = cudaMemLocationTypeDevice;
    parameters.alloc.bytesize = 4096;
    assert_ok(cudaGraphAddNode(&allocation, graph, NULL, NULL, 0, &parameters));
    void *pointer = parameters.alloc.dptr;
    assert_non_null(pointer);
    cudaGraphNode_t last = NULL;
    assert_ok(cudaGraphAddMemcpyNode1D(&copy, graph, &allocation, 1, pointer, &from, sizeof from,
                                       cudaMemcpyHostToDevice));
    assert_ok(cudaGraphAddMemcpyNode1D(&last, graph, &copy, 1, &to, pointer, sizeof to,
                                       cudaMemcpyDeviceToHost));
    assert_ok(cudaGraphAddMemFreeNode(&release, graph, &last, 1, pointer));
    struct cudaMemcpy3DParms told;
    assert_ok(cudaGraphMemcpyNodeGetParams(last, &told));
    assert_ptr_equal(told.srcPtr.ptr, pointer);
    assert_int_equal(told.extent.width, sizeof to);
    assert_int_equal(told.kind, cudaMemcpyDeviceToHost);
    assert_ok(cudaGraphInstantiate(&executable, graph, 0));
    assert_ok(cudaGraphLaunch(executable, NULL));
    assert_ok(cudaStreamSynchronize(NULL));
    assert_int_equal(to, 77);
    assert_ok(cudaGraphExecDestroy(executable));
    assert_ok(cudaGraphDestroy(graph));
}

/* Does by hand what nvcc's host code does. */
extern void **__cudaRegisterFatBinary(void *image);
extern void __cudaRegisterFatBinaryEnd(void **handle);
extern void __cudaUnregisterFatBinary(void **handle);
extern char __cudaInitModule(void **handle);
extern void __cudaRegisterFunction(void **handle, const char *host, char *device, const char *name,
                                   int thread_limit, uint3 *thread, uint3 *block, dim3 *block_dim,
                                   dim3 *grid_dim, int *warp_size);
extern void __cudaRegisterVar(void **handle, char *host, char *device, const char *name,
                              int external, size_t bytes, int constant, int global);
extern void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                                     int external, size_t bytes, int constant, int global);
extern unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared_bytes,
                                            cudaStream_t stream);
extern cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared_bytes,
                                              void *stream);

static const struct {
    int magic;
    int version;
    const void *data;
    void *unused;
} fat_binary = {0x466243b1, 1, "no code", NULL};

static char kernel_stub;
static char variable_shadow;
static void *managed_pointer;

static void registered_kernels_and_variables_are_found(void **state)
{
    (void)state;
    void **handle = __cudaRegisterFatBinary((void *)(uintptr_t)&fat_binary);
    __cudaRegisterFunction(handle, &kernel_stub, NULL, "kernel", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterVar(handle, &variable_shadow, NULL, "variable", 0, 40, 0, 0);
    __cudaRegisterManagedVar(handle, &managed_pointer, NULL, "managed", 0, 16, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);

    void *arguments[] = {NULL};
    dim3 grid = {4, 1, 1};
    dim3 block = {32, 1, 1};
    assert_int_equal(__cudaPushCallConfiguration(grid, block, 12, cudaStreamPerThread), 0);
    dim3 told_grid;
    dim3 told_block;
    size_t shared = 0;
    cudaStream_t stream = NULL;
    assert_ok(__cudaPopCallConfiguration(&told_grid, &told_block, &shared, &stream));
    assert_int_equal(told_grid.x, 4);
    assert_int_equal(shared, 12);
    assert_ptr_equal(stream, cudaStreamPerThread);
    assert_fails(cudaErrorMissingConfiguration,
                 __cudaPopCallConfiguration(&told_grid, &told_block, &shared, &stream));

    assert_ok(cudaLaunchKernel(&kernel_stub, grid, block, arguments, 0, NULL));
    assert_fails(cudaErrorInvalidDeviceFunction,
                 cudaLaunchKernel(&variable_shadow, grid, block, arguments, 0, NULL));
    cudaKernel_t kernel = NULL;
    assert_ok(cudaGetKernel(&kernel, &kernel_stub));
    assert_ok(cudaLaunchKernel((const void *)kernel, grid, block, arguments, 0, NULL));
    struct cudaFuncAttributes attributes;
    assert_ok(cudaFuncGetAttributes(&attributes, &kernel_stub));
    assert_true(attributes.maxThreadsPerBlock > 0);
    int blocks = 0;
    assert_ok(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &kernel_stub, 128, 0));
    assert_true(blocks > 0);

    size_t bytes = 0;
    void *address = NULL;
    assert_ok(cudaGetSymbolSize(&bytes, &variable_shadow));
    assert_int_equal(bytes, 40);
    assert_ok(cudaGetSymbolAddress(&address, &variable_shadow));
    assert_non_null(address);
    int from = 3;
    int to = 0;
    assert_ok(cudaMemcpyToSymbol(&variable_shadow, &from, 4, 36, cudaMemcpyHostToDevice));
    assert_ok(cudaMemcpyFromSymbol(&to, &variable_shadow, 4, 36, cudaMemcpyDeviceToHost));
    assert_int_equal(to, 3);
    assert_fails(cudaErrorInvalidValue,
                 cudaMemcpyToSymbol(&variable_shadow, &from, 4, 37, cudaMemcpyHostToDevice));
    assert_fails(cudaErrorInvalidSymbol, cudaGetSymbolSize(&bytes, &to));

    assert_true(__cudaInitModule(handle));
    assert_non_null(managed_pointer);
    *(int *)managed_pointer = 1;
    assert_ok(cudaGetSymbolSize(&bytes, managed_pointer));
    assert_int_equal(bytes, 16);

    __cudaUnregisterFatBinary(handle);
    assert_fails(cudaErrorInvalidDeviceFunction,
                 cudaLaunchKernel(&kernel_stub, grid, block, arguments, 0, NULL));
}

static void each_thread_has_its_device_and_memory_is_of_that_device(void **state)
{
    (void)state;
    void *pointer = NULL;
    int device = -1;
    struct cudaPointerAttributes attributes;
    assert_ok(cudaSetDevice(1));
    assert_ok(cudaGetDevice(&device));
    assert_int_equal(device, 1);
    assert_ok(cudaMalloc(&pointer, 1000));
    assert_ok(cudaPointerGetAttributes(&attributes, pointer));
    assert_int_equal(attributes.device, 1);
    assert_fails(cudaErrorInvalidDevice, cudaSetDevice(2));
    assert_ok(cudaGetDevice(&device));
    assert_int_equal(device, 1);
    assert_ok(cudaSetDevice(0));
    void *here = NULL;
    assert_ok(cudaMalloc(&here, 1000));
    assert_ok(cudaMemset(here, 6, 1000));
    assert_ok(cudaMemcpyPeer(pointer, 1, here, 0, 1000));
    char byte = 0;
    assert_ok(cudaMemcpy(&byte, (char *)pointer + 999, 1, cudaMemcpyDefault));
    assert_int_equal(byte, 6);
    assert_ok(cudaFree(here));
    assert_ok(cudaFree(pointer));
}

static void a_reset_frees_and_the_next_call_starts_anew(void **state)
{
    (void)state;
    size_t before = free_bytes();
    void *pointer = NULL;
    assert_ok(cudaMalloc(&pointer, MIB));
    assert_ok(cudaDeviceReset());
    assert_fails(cudaErrorInvalidValue, cudaFree(pointer));
    assert_int_equal(free_bytes(), before);
    assert_ok(cudaMalloc(&pointer, MIB));
    assert_ok(cudaFree(pointer));
}

struct reset_race {
    pthread_barrier_t barrier;
    cudaError_t before;
    cudaError_t after;
};

static void *allocate_before_and_after(void *data)
{
    struct reset_race *race = data;
    void *pointer = NULL;
    race->before = cudaMalloc(&pointer, 64);
    pthread_barrier_wait(&race->barrier);
    pthread_barrier_wait(&race->barrier);
    race->after = cudaMalloc(&pointer, 64);
    cudaFree(pointer);
    return NULL;
}

static void a_reset_in_one_thread_reaches_the_others(void **state)
{
    (void)state;
    struct reset_race race = {.before = cudaErrorUnknown, .after = cudaErrorUnknown};
    pthread_t thread;
    pthread_barrier_init(&race.barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, allocate_before_and_after, &race), 0);
    pthread_barrier_wait(&race.barrier);
    assert_ok(cudaDeviceReset());
    pthread_barrier_wait(&race.barrier);
    pthread_join(thread, NULL);
    pthread_barrier_destroy(&race.barrier);
    assert_ok(race.before);
    assert_ok(race.after);
}

static void a_context_of_the_driver_api_is_used_as_it_is(void **state)
{
    (void)state;
    CUresult (*create)(CUcontext *, unsigned, CUdevice) = NULL;
    CUresult (*destroy)(CUcontext) = NULL;
    CUresult (*set_current)(CUcontext) = NULL;
    enum cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
    assert_ok(cudaGetDriverEntryPointByVersion("cuCtxCreate", (void **)&create, 3020,
                                               cudaEnableDefault, &found));
    assert_int_equal(found, cudaDriverEntryPointSuccess);
    assert_ok(cudaGetDriverEntryPointByVersion("cuCtxDestroy", (void **)&destroy, 4000,
                                               cudaEnableDefault, &found));
    assert_ok(cudaGetDriverEntryPointByVersion("cuCtxSetCurrent", (void **)&set_current, 4000,
                                               cudaEnableDefault, &found));
    void *missing = &missing;
    assert_ok(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &missing, 13000,
                                               cudaEnableDefault, &found));
    assert_int_equal(found, cudaDriverEntryPointSymbolNotFound);
    assert_null(missing);

    CUcontext context = NULL;
    int device = 0;
    void *pointer = NULL;
    assert_int_equal(create(&context, 0, 1), CUDA_SUCCESS);
    assert_ok(cudaGetDevice(&device));
    assert_int_equal(device, 1);
    assert_ok(cudaMalloc(&pointer, 64));
    assert_int_equal(destroy(context), CUDA_SUCCESS);
    set_current(NULL);
    assert_ok(cudaSetDevice(0));
    assert_fails(cudaErrorInvalidValue, cudaFree(pointer)); /* it ended with its context */
}

static void count_call(void *data)
{
    ++*(int *)data;
}

static void events_and_host_functions_run_in_streams(void **state)
{
    (void)state;
    cudaStream_t stream = NULL;
    cudaEvent_t start = NULL;
    cudaEvent_t end = NULL;
    int calls = 0;
    float milliseconds = -1;
    assert_ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    assert_ok(cudaEventCreate(&start));
    assert_ok(cudaEventCreateWithFlags(&end, cudaEventBlockingSync));
    assert_ok(cudaEventRecord(start, stream));
    assert_ok(cudaLaunchHostFunc(stream, count_call, &calls));
    assert_ok(cudaEventRecord(end, stream));
    assert_ok(cudaEventSynchronize(end));
    assert_int_equal(calls, 1);
    assert_ok(cudaEventElapsedTime(&milliseconds, start, end));
    assert_true(milliseconds >= 0);
    assert_ok(cudaStreamWaitEvent(stream, end, 0));
    assert_ok(cudaStreamQuery(stream));
    assert_ok(cudaEventDestroy(start));
    assert_ok(cudaEventDestroy(end));
    assert_ok(cudaStreamDestroy(stream));
    assert_ok(cudaDeviceSynchronize());
}

static void what_is_not_simulated_says_so(void **state)
{
    (void)state;
    cudaSurfaceObject_t surface = 0;
    struct cudaResourceDesc resource = {.resType = cudaResourceTypeArray};
    assert_fails(cudaErrorNotSupported, cudaCreateSurfaceObject(&surface, &resource));
    assert_fails(cudaErrorNotSupported, cudaGraphicsMapResources(1, NULL, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_are_told_without_a_context),
        cmocka_unit_test(properties_name_a_simulated_device_of_the_set_size),
        cmocka_unit_test(allocating_nothing_gives_null_and_success),
        cmocka_unit_test(device_memory_is_taken_and_given_back),
        cmocka_unit_test(too_large_is_out_of_memory),
        cmocka_unit_test(the_last_error_stays_until_fetched_and_is_of_one_thread),
        cmocka_unit_test(errors_have_names_and_texts),
        cmocka_unit_test(pinned_memory_has_a_device_pointer),
        cmocka_unit_test(pointer_attributes_tell_kinds_apart),
        cmocka_unit_test(linear_copies_and_sets_move_bytes),
        cmocka_unit_test(pitched_copies_leave_the_gaps_alone),
        cmocka_unit_test(batches_copy_every_part),
        cmocka_unit_test(volumes_are_set_slice_by_slice),
        cmocka_unit_test(managed_memory_takes_hints),
        cmocka_unit_test(arrays_take_positions_in_elements),
        cmocka_unit_test(consecutive_array_copies_wrap_at_rows),
        cmocka_unit_test(mipmaps_have_levels),
        cmocka_unit_test(pools_serve_stream_ordered_memory),
        cmocka_unit_test(per_thread_forms_work),
        cmocka_unit_test(captured_allocations_live_from_the_launch),
        cmocka_unit_test(graph_nodes_are_translated),
        cmocka_unit_test(registered_kernels_and_variables_are_found),
        cmocka_unit_test(each_thread_has_its_device_and_memory_is_of_that_device),
        cmocka_unit_test(a_reset_frees_and_the_next_call_starts_anew),
        cmocka_unit_test(a_reset_in_one_thread_reaches_the_others),
        cmocka_unit_test(a_context_of_the_driver_api_is_used_as_it_is),
        cmocka_unit_test(events_and_host_functions_run_in_streams),
        cmocka_unit_test(what_is_not_simulated_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
