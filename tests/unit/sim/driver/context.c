/*
 * Contexts, streams, events, modules and launches of the simulated driver, and objects that end
 * with a context.
 */
#include "support.h"

#include <dlfcn.h>
#include <elf.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void a_reset_frees_what_the_context_held(void **state)
{
    CUdeviceptr linear, pooled, managed;
    void *pinned;
    static char buffer[100];
    unsigned int flags;
    int active;

    (void)state;
    assert_ok(cuMemAlloc(&linear, 100));
    assert_ok(cuMemAllocAsync(&pooled, 200, NULL));
    assert_ok(cuMemAllocManaged(&managed, 300, CU_MEM_ATTACH_GLOBAL));
    assert_ok(cuMemAllocHost(&pinned, 400));
    assert_ok(cuMemHostRegister(buffer, sizeof(buffer), 0));
    assert_ok(cuDevicePrimaryCtxReset(0));
    assert_int_equal(DELTA(0, GPUSIM_DEVICE, implicit_frees), 1);
    assert_int_equal(DELTA(0, GPUSIM_DEVICE, live), 200); /* pool memory stays */
    assert_int_equal(DELTA(0, GPUSIM_MANAGED, implicit_frees), 1);
    assert_int_equal(HOST_DELTA(GPUSIM_PINNED, implicit_frees), 1);
    assert_int_equal(HOST_DELTA(GPUSIM_REGISTERED, implicit_frees), 1);
    assert_int_equal(DELTA(0, GPUSIM_DEVICE, frees), 0);
    assert_ok(cuDevicePrimaryCtxGetState(0, &flags, &active));
    assert_int_equal(active, 0);
    assert_cuda(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuMemAlloc(&linear, 1));
    assert_ok(cuDevicePrimaryCtxRelease(0)); /* a reset releases nothing */
    assert_cuda(CUDA_ERROR_INVALID_CONTEXT, cuDevicePrimaryCtxRelease(0));
    assert_ok(cuDevicePrimaryCtxRetain(&context, 0));
    assert_ok(cuMemAlloc(&linear, 1));
    assert_ok(cuMemFree(linear));
    assert_ok(cuMemFreeAsync(pooled, NULL));
}

static void the_last_release_frees_the_others_do_not(void **state)
{
    CUdeviceptr pointer;
    CUcontext again;

    (void)state;
    assert_ok(cuDevicePrimaryCtxRetain(&again, 1));
    assert_ok(cuDevicePrimaryCtxRetain(&again, 1));
    assert_ok(cuCtxPushCurrent(again));
    assert_ok(cuMemAlloc(&pointer, 50));
    assert_ok(cuDevicePrimaryCtxRelease(1));
    assert_int_equal(DELTA(1, GPUSIM_DEVICE, live), 50);
    assert_ok(cuDevicePrimaryCtxRelease(1));
    assert_int_equal(DELTA(1, GPUSIM_DEVICE, live), 0);
    assert_int_equal(DELTA(1, GPUSIM_DEVICE, implicit_frees), 1);
    assert_ok(cuCtxPopCurrent(NULL));
}

static void contexts_are_a_stack(void **state)
{
    CUcontext own, popped, current;
    CUdevice device;

    (void)state;
    assert_ok(cuCtxCreate(&own, NULL, CU_CTX_SCHED_YIELD, 1));
    assert_ok(cuCtxGetDevice(&device));
    assert_int_equal(device, 1);
    assert_ok(cuCtxPopCurrent(&popped));
    assert_ptr_equal(popped, own);
    assert_ok(cuCtxGetDevice(&device));
    assert_int_equal(device, 0);
    assert_ok(cuCtxPushCurrent(own));
    assert_ok(cuCtxDestroy(own)); /* leaves the stack */
    assert_ok(cuCtxGetCurrent(&current));
    assert_ptr_equal(current, context);
    assert_cuda(CUDA_ERROR_INVALID_CONTEXT, cuCtxPushCurrent(own));
    assert_cuda(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(own));
    assert_cuda(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy(context)); /* primary */
}

static void nothing_works_without_a_context(void **state)
{
    CUdeviceptr pointer;
    CUdevice device;

    (void)state;
    assert_ok(cuCtxSetCurrent(NULL));
    assert_cuda(CUDA_ERROR_INVALID_CONTEXT, cuMemAlloc(&pointer, 1));
    assert_cuda(CUDA_ERROR_INVALID_CONTEXT, cuCtxGetDevice(&device));
    assert_int_equal(oracle->rejected - before.rejected, 1);
    assert_ok(cuCtxSetCurrent(context));
}

static void streams_and_events_end_with_their_context(void **state)
{
    CUcontext own;
    CUstream stream;
    CUevent start, end;
    float milliseconds;
    int priority;

    (void)state;
    assert_ok(cuCtxCreate(&own, NULL, 0, 0));
    assert_ok(cuStreamCreateWithPriority(&stream, 0, -3));
    assert_ok(cuStreamGetPriority(stream, &priority));
    assert_int_equal(priority, -3);
    assert_ok(cuEventCreate(&start, 0));
    assert_ok(cuEventCreate(&end, 0));
    assert_cuda(CUDA_ERROR_INVALID_HANDLE, cuEventElapsedTime(&milliseconds, start, end));
    assert_ok(cuEventRecord(start, stream));
    assert_ok(cuEventRecord(end, stream));
    assert_ok(cuEventElapsedTime(&milliseconds, start, end));
    assert_true(milliseconds >= 0);
    assert_ok(cuCtxDestroy(own));
    assert_cuda(CUDA_ERROR_INVALID_HANDLE, cuStreamSynchronize(stream));
    assert_cuda(CUDA_ERROR_INVALID_HANDLE, cuEventQuery(start));
}

static void CUDA_CB count_callback(CUstream stream, CUresult status, void *data)
{
    (void)stream;
    if (status == CUDA_SUCCESS)
        ++*(int *)data;
}

static void default_streams_are_streams(void **state)
{
    unsigned long long legacy, legacy_again, own;
    int calls = 0;

    (void)state;
    assert_ok(cuStreamGetId(NULL, &legacy));
    assert_ok(cuStreamGetId(CU_STREAM_LEGACY, &legacy_again));
    assert_ok(cuStreamGetId(CU_STREAM_PER_THREAD, &own));
    assert_int_equal(legacy, legacy_again);
    assert_int_not_equal(legacy, own);
    assert_ok(cuStreamAddCallback(NULL, count_callback, &calls, 0));
    assert_int_equal(calls, 1);
    assert_cuda(CUDA_ERROR_INVALID_HANDLE, cuStreamQuery((CUstream)&calls));
}

static void variables_of_a_library_are_zero_and_not_counted(void **state)
{
    CUresult (*register_variable)(CUlibrary, const char *, size_t, int);
    void *symbol = dlsym(RTLD_DEFAULT, "gpumem_sim_register_variable");
    CUlibrary library;
    CUmodule module;
    CUdeviceptr pointer, again;
    size_t size;
    int value = 1;

    (void)state;
    assert_non_null(symbol);
    memcpy(&register_variable, &symbol, sizeof(symbol));
    assert_ok(cuLibraryLoadData(&library, "code", NULL, NULL, 0, NULL, NULL, 0));
    assert_ok(register_variable(library, "table", 256, 0));
    assert_ok(register_variable(library, "shared", 16, 1));
    assert_ok(cuLibraryGetGlobal(&pointer, &size, library, "table"));
    assert_int_equal(size, 256);
    assert_ok(cuMemcpyDtoH(&value, pointer, sizeof(value)));
    assert_int_equal(value, 0);
    assert_ok(cuLibraryGetModule(&module, library));
    assert_ok(cuModuleGetGlobal(&again, NULL, module, "table"));
    assert_int_equal(again, pointer);
    assert_cuda(CUDA_ERROR_NOT_FOUND, cuLibraryGetGlobal(&again, &size, library, "absent"));
    assert_ok(cuLibraryGetManaged(&again, &size, library, "shared"));
    *(char *)(uintptr_t)again = 1;
    assert_int_equal(oracle->device[0].live, before.device[0].live);
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemFree(pointer));
    assert_ok(cuLibraryUnload(library));
    assert_cuda(CUDA_ERROR_INVALID_VALUE, cuMemcpyDtoH(&value, pointer, sizeof(value)));
    assert_cuda(CUDA_ERROR_INVALID_HANDLE, cuLibraryUnload(library));
}

static unsigned int kernels_in_file(const void *image, size_t size)
{
    char path[] = "/tmp/gpumem-test-cubin.XXXXXX";
    int file = mkstemp(path);
    CUlibrary library;
    unsigned int count;

    assert_true(file >= 0);
    assert_int_equal(write(file, image, size), size);
    close(file);
    assert_ok(cuLibraryLoadFromFile(&library, path, NULL, NULL, 0, NULL, NULL, 0));
    unlink(path);
    assert_ok(cuLibraryGetKernelCount(&count, library));
    assert_ok(cuLibraryUnload(library));
    return count;
}

/* A cubin as compilers write it, as far as its symbols go. */
static void variables_and_kernels_of_a_cubin_are_found(void **state)
{
    static const char names[] = "\0constant\0kernel\0elsewhere\0called";
    struct {
        Elf64_Ehdr head;
        Elf64_Shdr sections[3];
        Elf64_Sym symbols[5];
        char names[sizeof(names)];
    } cubin = {
        .head = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64},
                 .e_machine = 190, /* EM_CUDA */
                 .e_shoff = offsetof(typeof(cubin), sections),
                 .e_shnum = 3},
        .sections = {{0},
                     {.sh_type = SHT_SYMTAB,
                      .sh_offset = offsetof(typeof(cubin), symbols),
                      .sh_size = sizeof(cubin.symbols),
                      .sh_link = 2},
                     {.sh_type = SHT_STRTAB,
                      .sh_offset = offsetof(typeof(cubin), names),
                      .sh_size = sizeof(names)}},
        .symbols =
            {{0},
             {.st_name = 1, .st_info = STT_OBJECT, .st_shndx = 5, .st_size = 96},
             {.st_name = 10, .st_info = STT_FUNC, .st_other = 0x10, .st_shndx = 6, .st_size = 640},
             {.st_name = 17, .st_info = STT_OBJECT, .st_shndx = SHN_UNDEF, .st_size = 8},
             {.st_name = 27, .st_info = STT_FUNC, .st_shndx = 7, .st_size = 64}},
    };
    CUmodule module;
    CUdeviceptr pointer;
    size_t size;
    unsigned int count;

    (void)state;
    memcpy(cubin.names, names, sizeof(names));
    assert_ok(cuModuleLoadData(&module, &cubin));
    assert_ok(cuModuleGetGlobal(&pointer, &size, module, "constant"));
    assert_int_equal(size, 96);
    assert_cuda(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&pointer, &size, module, "kernel"));
    assert_cuda(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&pointer, &size, module, "elsewhere"));
    assert_ok(cuModuleGetFunctionCount(&count, module));
    assert_int_equal(count, 1);
    assert_ok(cuModuleUnload(module));
    assert_int_equal(kernels_in_file(&cubin, sizeof(cubin)), 1);
    assert_int_equal(kernels_in_file(&cubin, offsetof(typeof(cubin), names)), 0); /* cut */
    cubin.head.e_machine = EM_X86_64;
    assert_ok(cuModuleLoadData(&module, &cubin));
    assert_cuda(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&pointer, &size, module, "constant"));
    assert_ok(cuModuleUnload(module));
}

/* PTX as nvcc, LLVM and Triton write it. */
static void variables_and_kernels_of_ptx_are_found(void **state)
{
    static const char text[] =
        "//\n// Generated\n//\n.version 8.8\n.target sm_90a\n.address_size 64\n\n"
        "\t// .globl\tkernel\n"
        ".global .align 128 .b8 buffer_for_constant_1_0[4] = {0, 0, 128, 63};\n"
        ".visible .global .align 8 .f64 scale;\n"
        ".visible .const .align 16 .v4 .f32 table[3][5];\n"
        ".global .attribute(.managed) .align 4 .u32 shared_with_host;\n"
        ".extern .global .align 4 .b8 elsewhere[8];\n"
        ".extern .shared .align 16 .b8 dynamic[];\n"
        ".weak .global .f16x2 pair;\n"
        ".func (.param .b32 result) helper(.param .b32 x) { ret; }\n"
        ".visible .entry kernel(\n\t.param .u64 kernel_param_0\n)\n"
        "{\n\t.reg .b32 \t%r<3>;\n\tld.global.f32 %f1, [%rd1];\n\tret;\n}\n"
        ".entry second ( .param .u64 p ) { ret; }\n";
    static const struct {
        const char *name;
        size_t bytes;
    } variables[] = {{"buffer_for_constant_1_0", 4},
                     {"scale", 8},
                     {"table", 240},
                     {"shared_with_host", 4},
                     {"pair", 4}};
    CUmodule module;
    CUdeviceptr pointer;
    size_t size;
    unsigned int count;

    (void)state;
    assert_ok(cuModuleLoadData(&module, text));
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++) {
        assert_ok(cuModuleGetGlobal(&pointer, &size, module, variables[i].name));
        assert_int_equal(size, variables[i].bytes);
    }
    assert_cuda(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&pointer, &size, module, "elsewhere"));
    assert_cuda(CUDA_ERROR_NOT_FOUND, cuModuleGetGlobal(&pointer, &size, module, "dynamic"));
    assert_ok(cuModuleGetFunctionCount(&count, module));
    assert_int_equal(count, 2);
    assert_ok(cuModuleUnload(module));
    assert_int_equal(kernels_in_file(text, sizeof(text) - 1), 2);
}

static void launches_check_their_arguments(void **state)
{
    CUmodule module;
    CUfunction function;
    int blocks, grid, block;

    (void)state;
    assert_ok(cuModuleLoadData(&module, "code"));
    assert_ok(cuModuleGetFunction(&function, module, "kernel"));
    assert_ok(cuLaunchKernel(function, 1, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL));
    assert_cuda(CUDA_ERROR_INVALID_VALUE,
                cuLaunchKernel(function, 0, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL));
    assert_cuda(CUDA_ERROR_INVALID_VALUE,
                cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, NULL, NULL, NULL));
    assert_ok(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 256, 0));
    assert_int_equal(blocks, 8);
    assert_ok(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, NULL, 0, 0));
    assert_int_equal(block, 1024);
    assert_ok(cuModuleUnload(module));
    assert_cuda(CUDA_ERROR_INVALID_HANDLE,
                cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
}

/* ---- threads --------------------------------------------------------------------------------- */

static void *allocate_and_free(void *unused)
{
    CUdeviceptr pointers[16];

    (void)unused;
    if (cuCtxSetCurrent(context) != CUDA_SUCCESS)
        return "no context";
    for (int round = 0; round < 50; round++) {
        for (size_t i = 0; i < 16; i++) {
            CUresult result = i % 2 ? cuMemAlloc(&pointers[i], 1000 * (i + 1))
                                    : cuMemAllocAsync(&pointers[i], 1000, CU_STREAM_PER_THREAD);
            if (result != CUDA_SUCCESS || cuMemsetD8(pointers[i], 1, 1000) != CUDA_SUCCESS)
                return "cannot allocate";
        }
        for (size_t i = 0; i < 16; i++) {
            if (cuMemFree(pointers[15 - i]) != CUDA_SUCCESS)
                return "cannot free";
        }
    }
    return NULL;
}

static void threads_allocate_at_once(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    void *error;

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_free, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], &error), 0);
        assert_null(error);
    }
    assert_int_equal(DELTA(0, GPUSIM_DEVICE, allocs), THREADS * 50 * 16);
    assert_int_equal(DELTA(0, GPUSIM_DEVICE, frees), THREADS * 50 * 16);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start_test, end_test)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_reset_frees_what_the_context_held),
        TEST(the_last_release_frees_the_others_do_not),
        TEST(contexts_are_a_stack),
        TEST(nothing_works_without_a_context),
        TEST(streams_and_events_end_with_their_context),
        TEST(default_streams_are_streams),
        TEST(variables_of_a_library_are_zero_and_not_counted),
        TEST(variables_and_kernels_of_a_cubin_are_found),
        TEST(variables_and_kernels_of_ptx_are_found),
        TEST(launches_check_their_arguments),
        TEST(threads_allocate_at_once),
    };

    return cmocka_run_group_tests(tests, start_driver, NULL);
}
