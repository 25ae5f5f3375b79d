/* The driver hooks' records of allocations, frees, copies and sets. */
#include "fake.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define OUT_OF_MEMORY 2
#define NOWHERE ((void *)8) /* an out-parameter that no hook may touch */

REAL(CUresult, cuMemAlloc_v2, (CUdeviceptr * address, size_t size), { *address = 0x7000; })
REAL(CUresult, cuMemAlloc, (CUdeviceptr_v1 * address, unsigned int size), { *address = 0x70; })
REAL(CUresult, cuMemFree_v2, (CUdeviceptr address), {})
REAL(CUresult, cuMemAllocPitch_v2,
     (CUdeviceptr * address, size_t *pitch, size_t width, size_t height, unsigned int element), {
         *address = 0x7000;
         *pitch = 512;
     })
REAL(CUresult, cuMemHostRegister_v2, (void *address, size_t size, unsigned int flags), {})
REAL(CUresult, cuMemHostUnregister, (void *address), {})
REAL(CUresult, cuModuleGetGlobal_v2,
     (CUdeviceptr * address, size_t *size, CUmodule module, const char *name), {
         if (address)
             *address = 0x9000;
         if (size)
             *size = 24;
     })

static void an_allocation_is_recorded_after_the_call(void **unused)
{
    CUdeviceptr address = 0;
    USE(cuMemAlloc_v2);
    assert_int_equal(cuMemAlloc_v2(&address, 100), 0);
    assert_int_equal(address, 0x7000);
    assert_int_equal(records_at_call, 0);
    assert_int_equal(record_count(), 1);
    assert_record(0, GM_EVENT_ALLOC, 0x7000, 100);
    assert_int_equal(record_at(0)->kind, GM_KIND_DEVICE);
    assert_int_equal(record_at(0)->api, GM_API_cuMemAlloc_v2);
}

static void a_slow_allocation_tells_how_long_it_took(void **unused)
{
    CUdeviceptr address = 0;
    USE(cuMemAlloc_v2);
    USE(cuMemFree_v2);
    assert_int_equal(cuMemAlloc_v2(&address, 100), 0);
    assert_int_equal(record_at(0)->extra, FAKE_NS);
    assert_int_equal(cuMemFree_v2(address), 0);
    assert_int_equal(record_at(1)->extra, 0);
    calls_are_fast(2);
    for (uint32_t i = 2; i < 5; i++)
        assert_int_equal(cuMemAlloc_v2(&address, 100), 0);
    assert_int_equal(record_at(2)->extra, 0);
    assert_int_equal(record_at(3)->extra, 0);
    assert_int_equal(record_at(4)->extra, FAKE_NS);
}

static void an_allocation_of_the_32_bit_binary_interface_is_recorded_too(void **unused)
{
    CUdeviceptr_v1 address[2] = {0, 0xffffffff};
    USE(cuMemAlloc);
    assert_int_equal(cuMemAlloc(address, 100), 0);
    assert_record(0, GM_EVENT_ALLOC, 0x70, 100);
    assert_int_equal(address[1], 0xffffffff);
}

static void a_refused_allocation_is_recorded_with_its_error(void **unused)
{
    USE(cuMemAlloc_v2);
    real_result = OUT_OF_MEMORY;
    assert_int_equal(cuMemAlloc_v2(NOWHERE, 100), OUT_OF_MEMORY);
    assert_int_equal(record_count(), 1);
    assert_record(0, GM_EVENT_ALLOC_FAILED, 0, 100);
    assert_int_equal(record_at(0)->extra, OUT_OF_MEMORY);
    assert_int_equal(cuMemAlloc_v2(NULL, 5), OUT_OF_MEMORY);
    assert_record(1, GM_EVENT_ALLOC_FAILED, 0, 5);
}

REAL(CUresult, cuLaunchKernel_ptsz,
     (CUfunction function, unsigned int x, unsigned int y, unsigned int z, unsigned int a,
      unsigned int b, unsigned int c, unsigned int shared, CUstream stream, void **parameters,
      void **extra),
     {})
REAL(CUresult, cuEventQuery, (CUevent event), {})
REAL(CUresult, cuModuleLoadData, (CUmodule * module, const void *image),
     { *module = (CUmodule)0x40; })

REAL(CUresult, cuOccupancyMaxActiveBlocksPerMultiprocessor,
     (int *blocks, CUfunction function, int size, size_t shared), {})
REAL(CUresult, cuMemAdvise,
     (CUdeviceptr address, size_t size, CUmem_advise advice, CUdevice device), {})

/* Code that is loaded late is loaded by a question about it; advice makes mappings. */
static void a_question_or_a_hint_may_be_refused_for_lack_of_memory(void **unused)
{
    int blocks;
    USE(cuOccupancyMaxActiveBlocksPerMultiprocessor);
    USE(cuMemAdvise);
    cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, NULL, 32, 0);
    assert_int_equal(record_count(), 0);
    real_result = OUT_OF_MEMORY;
    cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, NULL, 32, 0);
    cuMemAdvise(0x7000, 64, 3, 0);
    assert_record(0, GM_EVENT_ALLOC_FAILED, 0, 0);
    assert_int_equal(record_at(0)->aux, GM_PURPOSE_CODE);
    assert_record(1, GM_EVENT_ALLOC_FAILED, 0, 0);
    assert_int_equal(record_at(1)->aux, GM_PURPOSE_MAPPING);
    assert_int_equal(record_count(), 2);
}

static int launch_once(void)
{
    return cuLaunchKernel_ptsz(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static void a_refusal_of_what_is_no_allocation_is_recorded_with_its_purpose(void **unused)
{
    CUmodule module;
    USE(cuLaunchKernel_ptsz);
    USE(cuModuleLoadData);
    assert_int_equal(launch_once(), 0);
    assert_int_equal(record_count(), 0);
    real_result = 1;
    assert_int_equal(launch_once(), 1);
    assert_int_equal(cuModuleLoadData(&module, ""), 1);
    assert_int_equal(record_count(), 0);
    real_result = OUT_OF_MEMORY;
    assert_int_equal(launch_once(), OUT_OF_MEMORY);
    assert_int_equal(errno, REAL_ERRNO);
    assert_record(0, GM_EVENT_ALLOC_FAILED, 0, 0);
    assert_int_equal(record_at(0)->kind, GM_KIND_NONE);
    assert_int_equal(record_at(0)->aux, GM_PURPOSE_LAUNCH);
    assert_int_equal(record_at(0)->extra, OUT_OF_MEMORY);
    assert_int_equal(record_at(0)->api, GM_API_cuLaunchKernel_ptsz);
    assert_int_equal(cuModuleLoadData(&module, ""), OUT_OF_MEMORY);
    assert_record(1, GM_EVENT_ALLOC_FAILED, 0, 0);
    assert_int_equal(record_at(1)->aux, GM_PURPOSE_CODE);
    assert_int_equal(record_count(), 2);
}

static void a_device_that_failed_is_told_once(void **unused)
{
    USE(cuEventQuery);
    USE(cuLaunchKernel_ptsz);
    real_result = 600; /* not ready */
    assert_int_equal(cuEventQuery(NULL), 600);
    assert_int_equal(record_count(), 0);
    real_result = 719;
    for (int i = 0; i < 3; i++)
        assert_int_equal(cuEventQuery(NULL), 719);
    assert_int_equal(launch_once(), 719);
    assert_int_equal(record_count(), 1);
    assert_record(0, GM_EVENT_ALLOC_FAILED, 0, 0);
    assert_int_equal(record_at(0)->extra, 719);
    assert_int_equal(record_at(0)->aux, GM_PURPOSE_WAIT);
}

static void out_parameters_may_be_absent(void **unused)
{
    size_t size = 0;
    USE(cuModuleGetGlobal_v2);
    assert_int_equal(cuModuleGetGlobal_v2(NULL, &size, NULL, "x"), 0);
    assert_record(0, GM_EVENT_GLOBAL, 0, 24);
    assert_int_equal(cuModuleGetGlobal_v2(NULL, NULL, NULL, "x"), 0);
    assert_record(1, GM_EVENT_GLOBAL, 0, 0);
}

static void a_free_is_recorded_before_the_call(void **unused)
{
    USE(cuMemFree_v2);
    assert_int_equal(cuMemFree_v2(0x7000), 0);
    assert_int_equal(records_at_call, 1);
    assert_int_equal(record_count(), 1);
    assert_record(0, GM_EVENT_FREE, 0x7000, 0);
}

static void a_free_that_fails_is_taken_back(void **unused)
{
    USE(cuMemFree_v2);
    real_result = 719;
    assert_int_equal(cuMemFree_v2(0x7000), 719);
    assert_int_equal(record_count(), 2);
    assert_record(1, GM_EVENT_UNDO, 0x7000, 0);
    assert_int_equal(record_at(1)->kind, GM_EVENT_FREE);
    assert_int_equal(record_at(1)->extra, 719);
}

static void a_free_of_null_is_forwarded_and_not_recorded(void **unused)
{
    USE(cuMemFree_v2);
    real_result = 1;
    assert_int_equal(cuMemFree_v2(0), 1);
    assert_int_equal(calls, 1);
    assert_int_equal(record_count(), 0);
}

static void errno_stays_what_the_real_function_made_it(void **unused)
{
    CUdeviceptr address;
    USE(cuMemAlloc_v2);
    errno = 0;
    cuMemAlloc_v2(&address, 1);
    assert_int_equal(errno, REAL_ERRNO);
    USE(cuMemFree_v2);
    errno = 0;
    cuMemFree_v2(address);
    assert_int_equal(errno, REAL_ERRNO);
}

static void nothing_is_recorded_in_a_process_that_is_not(void **unused)
{
    CUdeviceptr address = 0;
    set_recorded(false);
    USE(cuMemAlloc_v2);
    USE(cuMemFree_v2);
    assert_int_equal(cuMemAlloc_v2(&address, 1), 0);
    assert_int_equal(address, 0x7000);
    assert_int_equal(cuMemFree_v2(address), 0);
    real_result = 1;
    assert_int_equal(cuMemFree_v2(address), 1);
    assert_int_equal(record_count(), 0);
}

static void a_function_that_does_not_exist_says_so(void **unused)
{
    CUdeviceptr address = 1;
    assert_int_equal(cuMemAlloc_v2(&address, 1), CUDA_ERROR_NOT_FOUND);
    assert_int_equal(cudaDeviceReset(), cudaErrorUnknown);
    assert_int_equal(address, 1);
    assert_int_equal(record_count(), 0);
}

static void pitched_memory_has_the_size_of_the_returned_pitch(void **unused)
{
    CUdeviceptr address;
    size_t pitch;
    USE(cuMemAllocPitch_v2);
    assert_int_equal(cuMemAllocPitch_v2(&address, &pitch, 500, 3, 4), 0);
    assert_record(0, GM_EVENT_ALLOC, 0x7000, 512 * 3);
    real_result = OUT_OF_MEMORY;
    assert_int_equal(cuMemAllocPitch_v2(&address, NULL, 500, 3, 4), OUT_OF_MEMORY);
    assert_record(1, GM_EVENT_ALLOC_FAILED, 0, 500 * 3);
}

static void registered_memory_lives_at_its_own_address(void **unused)
{
    char memory[64];
    USE(cuMemHostRegister_v2);
    USE(cuMemHostUnregister);
    assert_int_equal(cuMemHostRegister_v2(memory, sizeof(memory), 0), 0);
    assert_int_equal(cuMemHostUnregister(memory), 0);
    assert_record(0, GM_EVENT_ALLOC, memory, sizeof(memory));
    assert_int_equal(record_at(0)->kind, GM_KIND_REGISTERED);
    assert_record(1, GM_EVENT_FREE, memory, 0);
    real_result = 712; /* it is registered already */
    assert_int_equal(cuMemHostRegister_v2(memory, sizeof(memory), 0), 712);
    assert_record(2, GM_EVENT_ALLOC_FAILED, 0, sizeof(memory));
}

/* ---- arrays ---------------------------------------------------------------------------------- */

#define ARRAY ((CUarray)0xa000)
#define MIPMAP ((CUmipmappedArray)0xb000)
enum { UNSIGNED_INT8 = 0x01, HALF = 0x10, FLOAT = 0x20, NV12 = 0xb0, P010 = 0x9f };

REAL(CUresult, cuArrayCreate_v2, (CUarray * handle, const CUDA_ARRAY_DESCRIPTOR *shape),
     { *handle = ARRAY; })
REAL(CUresult, cuArray3DCreate_v2, (CUarray * handle, const CUDA_ARRAY3D_DESCRIPTOR *shape),
     { *handle = ARRAY; })
REAL(CUresult, cuMipmappedArrayCreate,
     (CUmipmappedArray * handle, const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels),
     { *handle = MIPMAP; })

static uint64_t size_of_array(CUDA_ARRAY3D_DESCRIPTOR shape, unsigned levels)
{
    CUarray array;
    CUmipmappedArray mipmap;
    USE(cuArray3DCreate_v2);
    USE(cuMipmappedArrayCreate);
    if (levels)
        cuMipmappedArrayCreate(&mipmap, &shape, levels);
    else
        cuArray3DCreate_v2(&array, &shape);
    const struct gm_record *record = record_at(record_count() - 1);
    assert_int_equal(record->type, GM_EVENT_ALLOC);
    assert_int_equal(record->kind, GM_KIND_ARRAY);
    assert_int_equal(record->flags, GM_FLAG_ESTIMATED | (levels ? GM_FLAG_MIPMAPPED : 0));
    assert_int_equal(record->address, levels ? GM_WORD(MIPMAP) : GM_WORD(ARRAY));
    return record->size;
}

static void the_size_of_an_array_is_estimated_from_its_shape(void **unused)
{
    CUDA_ARRAY_DESCRIPTOR flat = {.Width = 10, .Height = 0, .Format = HALF, .NumChannels = 4};
    CUDA_ARRAY3D_DESCRIPTOR shape = {
        .Width = 10, .Height = 6, .Depth = 5, .Format = FLOAT, .NumChannels = 2};
    CUarray array;
    USE(cuArrayCreate_v2);
    cuArrayCreate_v2(&array, &flat);
    assert_record(0, GM_EVENT_ALLOC, ARRAY, 10 * 2 * 4);
    assert_int_equal(size_of_array(shape, 0), 10 * 6 * 5 * 4 * 2);
    shape.Format = NV12;
    assert_int_equal(size_of_array(shape, 0), 10 * 6 * 5 * 2);
    shape.Format = P010;
    assert_int_equal(size_of_array(shape, 0), 10 * 6 * 5 * 2 * 2);
}

static void a_mipmapped_array_is_the_sum_of_its_levels(void **unused)
{
    CUDA_ARRAY3D_DESCRIPTOR shape = {
        .Width = 8, .Height = 2, .Depth = 4, .Format = UNSIGNED_INT8, .NumChannels = 1};
    assert_int_equal(size_of_array(shape, 3), 8 * 2 * 4 + 4 * 1 * 2 + 2 * 1 * 1);
    shape.Flags = CUDA_ARRAY3D_LAYERED; /* depth counts layers, which are not halved */
    assert_int_equal(size_of_array(shape, 3), 8 * 2 * 4 + 4 * 1 * 4 + 2 * 1 * 4);
}

static void a_sparse_array_has_no_memory_of_its_own(void **unused)
{
    CUDA_ARRAY3D_DESCRIPTOR shape = {
        .Width = 8, .Height = 8, .Format = UNSIGNED_INT8, .NumChannels = 1};
    shape.Flags = CUDA_ARRAY3D_SPARSE;
    assert_int_equal(size_of_array(shape, 0), 0);
    shape.Flags = CUDA_ARRAY3D_DEFERRED_MAPPING;
    assert_int_equal(size_of_array(shape, 2), 0);
}

static void an_array_without_a_description_is_left_to_the_driver(void **unused)
{
    CUarray array;
    USE(cuArrayCreate_v2);
    real_result = 1;
    assert_int_equal(cuArrayCreate_v2(&array, NULL), 1);
    assert_int_equal(calls, 1);
    assert_record(0, GM_EVENT_ALLOC_FAILED, 0, 0);
}

/* ---- virtual memory management, multicast ---------------------------------------------------- */

REAL(CUresult, cuMemCreate,
     (CUmemGenericAllocationHandle * handle, size_t size, const CUmemAllocationProp *properties,
      unsigned long long flags),
     { *handle = 0xc000; })
REAL(CUresult, cuMemMap,
     (CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
      unsigned long long flags),
     {})
REAL(CUresult, cuMemUnmap, (CUdeviceptr address, size_t size), {})
REAL(CUresult, cuMemRelease, (CUmemGenericAllocationHandle handle), {})
REAL(CUresult, cuMemImportFromShareableHandle,
     (CUmemGenericAllocationHandle * handle, void *shared, CUmemAllocationHandleType type),
     { *handle = 0xc001; })
REAL(CUresult, cuMulticastUnbind,
     (CUmemGenericAllocationHandle handle, CUdevice device, size_t offset, size_t size), {})
REAL(CUresult, cuMulticastBindMem,
     (CUmemGenericAllocationHandle multicast, size_t offset, CUmemGenericAllocationHandle memory,
      size_t memory_offset, size_t size, unsigned long long flags),
     {})
REAL(CUresult, cuMulticastBindMem_v2,
     (CUmemGenericAllocationHandle multicast, CUdevice device, size_t offset,
      CUmemGenericAllocationHandle memory, size_t memory_offset, size_t size,
      unsigned long long flags),
     {})
REAL(CUresult, cuMulticastBindAddr_v2,
     (CUmemGenericAllocationHandle multicast, CUdevice device, size_t offset, CUdeviceptr memory,
      size_t size, unsigned long long flags),
     {})
REAL(CUresult, cuLogicalEndpointCreate,
     (CUlogicalEndpointId id, const CUlogicalEndpointProp *properties), {})
REAL(CUresult, cuLogicalEndpointDestroy, (CUlogicalEndpointId id), {})
REAL(CUresult, cuLogicalEndpointBindMem,
     (CUlogicalEndpointId id, CUdevice device, cuuint64_t offset,
      CUmemGenericAllocationHandle memory, cuuint64_t memory_offset, cuuint64_t size,
      unsigned long long flags),
     {})
REAL(CUresult, cuLogicalEndpointUnbind,
     (CUlogicalEndpointId id, CUdevice device, cuuint64_t offset, cuuint64_t size), {})

static void physical_memory_is_on_the_device_of_its_location(void **unused)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 3}};
    USE(cuMemCreate);
    cuMemCreate(&handle, 4096, &properties, 0);
    assert_record(0, GM_EVENT_VMM_CREATE, 0xc000, 4096);
    assert_int_equal(record_at(0)->kind, GM_KIND_VMM);
    assert_int_equal(record_at(0)->device, 3);
    properties.location.type = 3; /* a NUMA node of the host */
    cuMemCreate(&handle, 4096, &properties, 0);
    assert_int_equal(record_at(1)->kind, GM_KIND_HOST_VMM);
    properties.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE_LOCALITY_DOMAIN, 0x0702};
    cuMemCreate(&handle, 4096, &properties, 0); /* domain 7 of device 2 */
    assert_int_equal(record_at(2)->kind, GM_KIND_VMM);
    assert_int_equal(record_at(2)->device, 2);
    properties.location = (CUmemLocation){5, -2}; /* invisible: a device, but no record says
                                                   * which */
    cuMemCreate(&handle, 4096, &properties, 0);
    assert_int_equal(record_at(3)->kind, GM_KIND_VMM);
    assert_int_equal(record_at(3)->device, -1);
    real_result = OUT_OF_MEMORY;
    cuMemCreate(NOWHERE, 4096, &properties, 0);
    assert_record(4, GM_EVENT_ALLOC_FAILED, 0, 4096);
    assert_int_equal(record_at(4)->extra, OUT_OF_MEMORY);
}

static void a_mapping_tells_its_offset(void **unused)
{
    USE(cuMemMap);
    USE(cuMemUnmap);
    USE(cuMemRelease);
    cuMemMap(0x20000, 8192, 4096, 0xc000, 0);
    assert_record(0, GM_EVENT_VMM_MAP, 0x20000, 8192);
    assert_int_equal(record_at(0)->aux, 0xc000);
    assert_record(1, GM_EVENT_DETAIL, 4096, 0);
    cuMemUnmap(0x20000, 8192);
    assert_record(2, GM_EVENT_VMM_UNMAP, 0x20000, 8192);
    assert_int_equal(records_at_call, 3);
    real_result = 1;
    cuMemRelease(0xc000);
    assert_record(3, GM_EVENT_VMM_RELEASE, 0xc000, 0);
    assert_record(4, GM_EVENT_UNDO, 0xc000, 0);
    assert_int_equal(record_at(4)->kind, GM_EVENT_VMM_RELEASE);
    cuMemMap(0x20000, 8192, 4096, 0xc000, 0);
    assert_int_equal(record_count(), 5);
}

REAL(CUresult, cuMemMapArrayAsync, (CUarrayMapInfo * list, unsigned count, CUstream stream), {})
REAL(CUresult, cuArrayDestroy, (CUarray array), {})

static void a_tile_of_a_sparse_array_is_a_mapping(void **unused)
{
    CUarrayMapInfo tiles[2] = {{.resource = {.array = (CUarray)0xa000},
                                .subresource = {.sparseLevel = {.offsetX = 64, .extentWidth = 64}},
                                .memOperationType = CU_MEM_OPERATION_TYPE_MAP,
                                .memHandle = {0xc000},
                                .offset = 65536},
                               {.resource = {.array = (CUarray)0xa000},
                                .subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL,
                                .subresource = {.miptail = {.offset = 0, .size = 65536}},
                                .memOperationType = CU_MEM_OPERATION_TYPE_MAP,
                                .memHandle = {0xc001}}};
    USE(cuMemMapArrayAsync);
    USE(cuArrayDestroy);
    cuMemMapArrayAsync(tiles, 2, NULL);
    const uint64_t place = record_at(1)->address;
    assert_int_equal(record_count(), 6);
    assert_record(0, GM_EVENT_VMM_UNMAP, place, 1); /* what may have been there */
    assert_record(1, GM_EVENT_VMM_MAP, place, 1);
    assert_int_equal(record_at(1)->aux, 0xc000);
    assert_record(2, GM_EVENT_DETAIL, 65536, 0);
    assert_int_equal(record_at(4)->aux, 0xc001);
    assert_int_not_equal(record_at(4)->address, place);
    assert_int_equal(place & ~0xffffffffull,
                     GM_TILES_OF(0xa000ull)); /* where the array's end finds it */
    tiles[0].memOperationType = 2;            /* unmap */
    tiles[0].memHandle.memHandle = 0;
    tiles[0].offset = 0;
    cuMemMapArrayAsync(tiles, 1, NULL);
    assert_int_equal(record_count(), 7);
    assert_record(6, GM_EVENT_VMM_UNMAP, place, 1);
    real_result = 1;
    cuMemMapArrayAsync(tiles, 1, NULL);
    cuArrayDestroy((CUarray)0xa000);
    real_result = 0;
    assert_int_equal(record_count(), 9); /* a free, and its UNDO */
}

static void an_import_is_recorded_and_so_is_its_failure(void **unused)
{
    CUmemGenericAllocationHandle handle;
    USE(cuMemImportFromShareableHandle);
    cuMemImportFromShareableHandle(&handle, NULL, 1);
    assert_record(0, GM_EVENT_VMM_IMPORT, 0xc001, 0);
    real_result = 1;
    cuMemImportFromShareableHandle(&handle, NULL, 1);
    assert_record(1, GM_EVENT_ALLOC_FAILED, 0, 0);
    assert_int_equal(record_at(1)->kind, GM_KIND_EXTERNAL);
}

REAL(CUresult, cuMemExportToShareableHandle,
     (void *shareable, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
      unsigned long long flags),
     {})

/* The handle that the trace says an import is of, where 0xc000 was exported. */
static uint64_t owner_of_import(void *exported, void *imported, CUmemAllocationHandleType type)
{
    CUmemGenericAllocationHandle handle;
    cuMemExportToShareableHandle(exported, 0xc000, type, 0);
    cuMemImportFromShareableHandle(&handle, imported, type);
    assert_record(record_count() - 1, GM_EVENT_VMM_IMPORT, 0xc001, 0);
    return record_at(record_count() - 1)->aux;
}

static void an_import_of_memory_of_this_process_names_its_handle(void **unused)
{
    char bytes[2][64] = {"memory", "other memory"}, same[64] = "memory";
    int file = memfd_create("memory", MFD_CLOEXEC), other = memfd_create("memory", MFD_CLOEXEC);
    int again = dup(file), node = open("/dev/null", O_RDONLY | O_CLOEXEC);
    USE(cuMemExportToShareableHandle);
    USE(cuMemImportFromShareableHandle);
    assert_int_equal(owner_of_import(&file, (void *)(intptr_t)again, 1), 0xc000);
    assert_int_equal(owner_of_import(&file, (void *)(intptr_t)other, 1), 0);
    assert_int_equal(owner_of_import(&node, (void *)(intptr_t)node, 1), 0); /* all are alike */
    assert_int_equal(owner_of_import(bytes[0], same, 8), 0xc000);
    assert_int_equal(owner_of_import(bytes[0], bytes[1], 8), 0);
    close(file);
    close(other);
    close(again);
    close(node);
}

/* Memory that is gone gave its handle to other memory, which nobody exported. */
static void a_handle_given_out_anew_is_not_what_was_exported(void **unused)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    char bytes[64] = "memory";
    USE(cuMemExportToShareableHandle);
    USE(cuMemImportFromShareableHandle);
    USE(cuMemCreate);
    cuMemExportToShareableHandle(bytes, 0xc000, 8, 0);
    cuMemCreate(&handle, 64, &properties, 0);
    assert_int_equal(handle, 0xc000);
    cuMemImportFromShareableHandle(&handle, bytes, 8);
    assert_int_equal(record_at(record_count() - 1)->aux, 0);
}

/* The memory has another handle, an import's, which was exported since: the one that is gone takes nothing from it. */
static void memory_stays_exported_by_its_other_handle(void **unused)
{
    CUmemGenericAllocationHandle handle;
    CUmemAllocationProp properties = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    char bytes[64] = "memory";
    USE(cuMemExportToShareableHandle);
    USE(cuMemImportFromShareableHandle);
    USE(cuMemCreate);
    cuMemExportToShareableHandle(bytes, 0xc000, 8, 0);
    cuMemExportToShareableHandle(bytes, 0xd000, 8, 0);
    cuMemCreate(&handle, 64, &properties, 0);
    assert_int_equal(handle, 0xc000);
    cuMemImportFromShareableHandle(&handle, bytes, 8);
    assert_int_equal(record_at(record_count() - 1)->aux, 0xd000);
}

static void unbinding_multicast_memory_names_device_and_place(void **unused)
{
    USE(cuMulticastUnbind);
    cuMulticastUnbind(0xd000, 2, 64, 128);
    assert_record(0, GM_EVENT_MULTICAST_UNBIND, 0xd000, 128);
    assert_int_equal(record_at(0)->device, 2);
    assert_int_equal(record_at(0)->aux, 64);
}

/* Both interfaces in one process: each forwards to its own function. */
static void binding_multicast_memory_names_the_place_and_maybe_the_device(void **unused)
{
    USE(cuMulticastBindMem_v2);
    USE(cuMulticastBindMem);
    USE(cuMulticastBindAddr_v2);
    cuMulticastBindMem_v2(0xd000, 3, 64, 0xc000, 32, 128, 0);
    assert_record(0, GM_EVENT_MULTICAST_BIND, 0xd000, 128);
    assert_int_equal(record_at(0)->aux, 0xc000);
    assert_int_equal(record_at(0)->device, 3);
    assert_record(1, GM_EVENT_DETAIL, 64, 0);
    cuMulticastBindMem(0xd000, 64, 0xc000, 32, 128, 0);
    assert_record(2, GM_EVENT_MULTICAST_BIND, 0xd000, 128);
    assert_int_equal(record_at(2)->device, -1);
    cuMulticastBindAddr_v2(0xd000, 1, 96, 0x7000, 256, 0);
    assert_record(4, GM_EVENT_MULTICAST_BIND, 0xd000, 256);
    assert_int_equal(record_at(4)->aux, 0x7000);
    assert_int_equal(record_at(4)->device, 1);
    assert_record(5, GM_EVENT_DETAIL, 96, 0);
}

static void a_logical_endpoint_keeps_what_is_bound_to_it(void **unused)
{
    const CUlogicalEndpointProp properties = {.size = 4096};
    USE(cuLogicalEndpointCreate);
    USE(cuLogicalEndpointDestroy);
    USE(cuLogicalEndpointBindMem);
    USE(cuLogicalEndpointUnbind);
    cuLogicalEndpointCreate(0, &properties);
    const uint64_t handle = record_at(0)->address;
    assert_int_not_equal(handle, 0);
    assert_record(0, GM_EVENT_MULTICAST_CREATE, handle, 4096);
    cuLogicalEndpointBindMem(0, 2, 64, 0xc000, 32, 128, 0);
    assert_record(1, GM_EVENT_MULTICAST_BIND, handle, 128);
    assert_int_equal(record_at(1)->aux, 0xc000);
    assert_int_equal(record_at(1)->device, 2);
    assert_record(2, GM_EVENT_DETAIL, 64, 0);
    cuLogicalEndpointUnbind(0, 2, 64, 128);
    assert_record(3, GM_EVENT_MULTICAST_UNBIND, handle, 128);
    assert_int_equal(records_at_call, 4);
    real_result = 1;
    cuLogicalEndpointDestroy(0);
    assert_record(4, GM_EVENT_VMM_RELEASE, handle, 0);
    assert_record(5, GM_EVENT_UNDO, handle, 0);
}

/* ---- copies and sets ------------------------------------------------------------------------- */

REAL(CUresult, cuMemcpyWithAttributesAsync,
     (CUdeviceptr to, CUdeviceptr from, size_t size, CUmemcpyAttributes *attributes,
      CUstream stream),
     {})
REAL(CUresult, cuMemcpy3DWithAttributesAsync,
     (CUDA_MEMCPY3D_BATCH_OP * operation, unsigned long long flags, CUstream stream), {})
REAL(CUresult, cuFabricCpyBatchAsync,
     (size_t count, CUDA_FABRIC_COPY_BATCH_OP *operations, unsigned long long flags,
      CUstream stream),
     {})
REAL(CUresult, cuMemcpyHtoD_v2, (CUdeviceptr to, const void *from, size_t size), {})
REAL(CUresult, cuMemcpyAsync, (CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream), {})
REAL(CUresult, cuMemcpy2D_v2, (const CUDA_MEMCPY2D *copy), {})
REAL(CUresult, cuMemcpy3D_v2, (const CUDA_MEMCPY3D *copy), {})
REAL(CUresult, cuMemcpyBatchAsync_v2,
     (CUdeviceptr * to, CUdeviceptr *from, size_t *sizes, size_t count,
      CUmemcpyAttributes *attributes, size_t *indexes, size_t attribute_count, CUstream stream),
     {})
REAL(CUresult, cuMemsetD2D32_v2,
     (CUdeviceptr to, size_t pitch, unsigned int value, size_t width, size_t height), {})

static void a_copy_tells_direction_size_and_time(void **unused)
{
    char from[16];
    USE(cuMemcpyHtoD_v2);
    USE(cuMemcpyAsync);
    cuMemcpyHtoD_v2(0x7000, from, 16);
    assert_record(0, GM_EVENT_COPY, 0x7000, 16);
    assert_int_equal(record_at(0)->kind, GM_COPY_HOST_TO_DEVICE);
    assert_int_equal(record_at(0)->aux, GM_WORD(from));
    assert_int_equal(record_at(0)->extra, FAKE_NS);
    assert_int_equal(record_at(0)->flags, 0);
    cuMemcpyAsync(0x7000, 0x8000, 99, NULL);
    assert_int_equal(record_at(1)->kind, GM_COPY_UNKNOWN);
    assert_int_equal(record_at(1)->flags, GM_FLAG_ASYNC);
    real_result = 1;
    cuMemcpyAsync(0x7000, 0x8000, 99, NULL);
    assert_int_equal(record_count(), 2);
}

static void a_copy_by_description_names_the_side_that_its_type_says(void **unused)
{
    char host[16];
    CUDA_MEMCPY2D flat = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                          .srcHost = host,
                          .srcDevice = 0xbad,
                          .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                          .dstArray = ARRAY,
                          .dstDevice = 0xbad,
                          .WidthInBytes = 8,
                          .Height = 2};
    CUDA_MEMCPY3D deep = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                          .srcDevice = 0x8000,
                          .srcArray = ARRAY,
                          .dstMemoryType = 2,
                          .dstDevice = 0x7000,
                          .WidthInBytes = 8,
                          .Height = 2,
                          .Depth = 3};
    USE(cuMemcpy2D_v2);
    USE(cuMemcpy3D_v2);
    cuMemcpy2D_v2(&flat);
    assert_record(0, GM_EVENT_COPY, ARRAY, 16);
    assert_int_equal(record_at(0)->aux, GM_WORD(host));
    assert_int_equal(record_at(0)->kind, GM_COPY_HOST_TO_DEVICE);
    cuMemcpy3D_v2(&deep);
    assert_record(1, GM_EVENT_COPY, 0x7000, 48);
    assert_int_equal(record_at(1)->aux, 0x8000);
    assert_int_equal(record_at(1)->kind, GM_COPY_UNKNOWN);
    cuMemcpy2D_v2(NULL);
    assert_int_equal(record_count(), 2);
}

static void a_copy_with_attributes_is_a_copy(void **unused)
{
    CUDA_MEMCPY3D_BATCH_OP operation = {.width = 5, .height = 3, .depth = 2};
    operation.dst.pointer = 0x7000;
    operation.src.pointer = 0x8000;
    USE(cuMemcpyWithAttributesAsync);
    USE(cuMemcpy3DWithAttributesAsync);
    cuMemcpyWithAttributesAsync(0x7000, 0x8000, 16, NULL, NULL);
    assert_record(0, GM_EVENT_COPY, 0x7000, 16);
    assert_int_equal(record_at(0)->aux, 0x8000);
    assert_int_equal(record_at(0)->flags, GM_FLAG_ASYNC);
    cuMemcpy3DWithAttributesAsync(&operation, 0, NULL);
    assert_record(1, GM_EVENT_COPY, 0x7000, 30);
    assert_int_equal(record_at(1)->aux, 0x8000);
    real_result = 1;
    cuMemcpy3DWithAttributesAsync(NULL, 0, NULL);
    assert_int_equal(record_count(), 2);
}

static void a_copy_over_a_fabric_names_only_what_is_ours(void **unused)
{
    CUDA_FABRIC_COPY_BATCH_OP operations[2] = {{.size = 100}, {.size = 11}};
    operations[0].src.type = CU_FABRIC_COPY_OPERAND_TYPE_POINTER;
    operations[0].src.op.ptr.ptr = 0x8000;
    operations[0].dst.type = 2; /* an endpoint */
    operations[0].dst.op.le.id = 77;
    USE(cuFabricCpyBatchAsync);
    cuFabricCpyBatchAsync(2, operations, 0, NULL);
    assert_record(0, GM_EVENT_COPY, 0, 111);
    assert_int_equal(record_at(0)->aux, 0x8000);
    assert_int_equal(record_at(0)->kind, GM_COPY_PEER);
    operations[0].dst = operations[0].src;
    cuFabricCpyBatchAsync(1, operations, 0, NULL);
    assert_record(1, GM_EVENT_COPY, 0x8000, 100);
    assert_int_equal(record_at(1)->kind, GM_COPY_UNKNOWN);
    cuFabricCpyBatchAsync(0, NULL, 0, NULL);
    assert_int_equal(record_count(), 2);
}

static void a_batch_of_copies_is_one_record_with_the_sum(void **unused)
{
    CUdeviceptr to[] = {0x7000, 0x7100}, from[] = {0x8000, 0x8100};
    size_t sizes[] = {10, 20};
    USE(cuMemcpyBatchAsync_v2);
    cuMemcpyBatchAsync_v2(to, from, sizes, 2, NULL, NULL, 0, NULL);
    assert_int_equal(record_count(), 1);
    assert_record(0, GM_EVENT_COPY, 0x7000, 30);
    assert_int_equal(record_at(0)->aux, 0x8000);
    cuMemcpyBatchAsync_v2(to, from, sizes, 0, NULL, NULL, 0, NULL);
    assert_int_equal(record_count(), 1);
}

static void a_set_counts_bytes_not_elements(void **unused)
{
    USE(cuMemsetD2D32_v2);
    cuMemsetD2D32_v2(0x7000, 512, 0, 10, 3);
    assert_record(0, GM_EVENT_SET, 0x7000, 10 * 3 * 4);
}

/* ---- memory of others ------------------------------------------------------------------------ */

#define RESOURCE ((CUgraphicsResource)0xe000)

REAL(CUresult, cuGraphicsResourceGetMappedPointer_v2,
     (CUdeviceptr * address, size_t *size, CUgraphicsResource resource), {
         *address = 0x5000;
         *size = 77;
     })
REAL(CUresult, cuGraphicsUnmapResources,
     (unsigned int count, CUgraphicsResource *resources, CUstream stream), {})
REAL(CUresult, cuExternalMemoryGetMappedMipmappedArray,
     (CUmipmappedArray * mipmap, CUexternalMemory memory,
      const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *description),
     { *mipmap = MIPMAP; })
REAL(CUresult, cuCtxSetLimit, (CUlimit limit, size_t value), {})
REAL(CUresult, cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr address), {})

static void a_mapped_resource_counts_once_until_it_is_unmapped(void **unused)
{
    CUdeviceptr address;
    size_t size;
    CUgraphicsResource both[] = {RESOURCE, (CUgraphicsResource)0xe100};
    USE(cuGraphicsResourceGetMappedPointer_v2);
    USE(cuGraphicsUnmapResources);
    for (int i = 0; i < 3; i++)
        cuGraphicsResourceGetMappedPointer_v2(&address, &size, RESOURCE);
    assert_int_equal(record_count(), 1);
    assert_record(0, GM_EVENT_ALLOC, 0x5000, 77);
    assert_int_equal(record_at(0)->kind, GM_KIND_EXTERNAL);
    real_result = 1;
    cuGraphicsUnmapResources(2, both, NULL);
    assert_int_equal(record_count(), 1);
    real_result = 0;
    cuGraphicsUnmapResources(2, both, NULL); /* no pointer was taken from the other */
    assert_int_equal(record_count(), 2);
    assert_record(1, GM_EVENT_FREE, 0x5000, 0);
    cuGraphicsResourceGetMappedPointer_v2(&address, &size, RESOURCE);
    assert_record(2, GM_EVENT_ALLOC, 0x5000, 77);
}

static void a_mipmapped_array_of_another_owner_has_the_size_of_its_shape(void **unused)
{
    CUmipmappedArray mipmap;
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC description = {
        .arrayDesc = {.Width = 8, .Height = 2, .Format = FLOAT, .NumChannels = 1}, .numLevels = 2};
    USE(cuExternalMemoryGetMappedMipmappedArray);
    cuExternalMemoryGetMappedMipmappedArray(&mipmap, NULL, &description);
    assert_record(0, GM_EVENT_ALLOC, MIPMAP, (8 * 2 + 4 * 1) * 4);
    assert_int_equal(record_at(0)->kind, GM_KIND_EXTERNAL);
    real_result = 1;
    cuExternalMemoryGetMappedMipmappedArray(&mipmap, NULL, NULL);
    assert_record(1, GM_EVENT_ALLOC_FAILED, 0, 0);
}

static void lending_memory_to_another_process_is_told(void **unused)
{
    CUipcMemHandle handle;
    USE(cuIpcGetMemHandle);
    cuIpcGetMemHandle(&handle, 0x7000);
    assert_record(0, GM_EVENT_HOST_CALL, 0x7000, 0);
    assert_int_equal(record_at(0)->api, GM_API_cuIpcGetMemHandle);
}

static void a_limit_is_told_with_its_value(void **unused)
{
    USE(cuCtxSetLimit);
    cuCtxSetLimit(2, 8 << 20);
    assert_record(0, GM_EVENT_HOST_CALL, 0, 0);
    assert_int_equal(record_at(0)->extra, 2);
    assert_int_equal(record_at(0)->aux, 8 << 20);
}

#define TEST(name) cmocka_unit_test_setup(name, start_over)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(an_allocation_is_recorded_after_the_call),
        TEST(a_slow_allocation_tells_how_long_it_took),
        TEST(an_allocation_of_the_32_bit_binary_interface_is_recorded_too),
        TEST(a_refused_allocation_is_recorded_with_its_error),
        TEST(a_refusal_of_what_is_no_allocation_is_recorded_with_its_purpose),
        TEST(a_question_or_a_hint_may_be_refused_for_lack_of_memory),
        TEST(a_device_that_failed_is_told_once),
        TEST(out_parameters_may_be_absent),
        TEST(a_free_is_recorded_before_the_call),
        TEST(a_free_that_fails_is_taken_back),
        TEST(a_free_of_null_is_forwarded_and_not_recorded),
        TEST(errno_stays_what_the_real_function_made_it),
        TEST(nothing_is_recorded_in_a_process_that_is_not),
        TEST(a_function_that_does_not_exist_says_so),
        TEST(pitched_memory_has_the_size_of_the_returned_pitch),
        TEST(registered_memory_lives_at_its_own_address),
        TEST(the_size_of_an_array_is_estimated_from_its_shape),
        TEST(a_mipmapped_array_is_the_sum_of_its_levels),
        TEST(a_sparse_array_has_no_memory_of_its_own),
        TEST(an_array_without_a_description_is_left_to_the_driver),
        TEST(physical_memory_is_on_the_device_of_its_location),
        TEST(a_mapping_tells_its_offset),
        TEST(a_tile_of_a_sparse_array_is_a_mapping),
        TEST(an_import_is_recorded_and_so_is_its_failure),
        TEST(an_import_of_memory_of_this_process_names_its_handle),
        TEST(a_handle_given_out_anew_is_not_what_was_exported),
        TEST(memory_stays_exported_by_its_other_handle),
        TEST(unbinding_multicast_memory_names_device_and_place),
        TEST(binding_multicast_memory_names_the_place_and_maybe_the_device),
        TEST(a_logical_endpoint_keeps_what_is_bound_to_it),
        TEST(a_copy_with_attributes_is_a_copy),
        TEST(a_copy_over_a_fabric_names_only_what_is_ours),
        TEST(a_copy_tells_direction_size_and_time),
        TEST(a_copy_by_description_names_the_side_that_its_type_says),
        TEST(a_batch_of_copies_is_one_record_with_the_sum),
        TEST(a_set_counts_bytes_not_elements),
        TEST(a_mapped_resource_counts_once_until_it_is_unmapped),
        TEST(a_mipmapped_array_of_another_owner_has_the_size_of_its_shape),
        TEST(lending_memory_to_another_process_is_told),
        TEST(a_limit_is_told_with_its_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
