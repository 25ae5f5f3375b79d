/* The owner of memory: the rule of report/judge/pool/libraries.h, one test for each of its clauses. */
#include "judge/analysis/library_table.h"
#include "names/stacks/known_libraries.h"
#include "trace_scene.h"

/* A stack by the files of its frames, innermost first: "@torch/x.py" is a Python file of a package,
 * anything else a module. */
static uint32_t stack_of(struct scene *scene, const char *const *frames, size_t count)
{
    uint32_t node = 0;
    for (size_t i = count; i-- > 0;) {
        char path[256];
        if (frames[i][0] == '@') {
            snprintf(path, sizeof(path), "/v/site-packages/%s", frames[i] + 1);
            uint32_t frame = writer_script_frame(&scene->writer, path, "function", 1);
            node = writer_node(&scene->writer, node, 0, frame, GM_NODE_SCRIPT);
        } else {
            snprintf(path, sizeof(path), "/lib/%s", frames[i]);
            uint16_t module = writer_module(&scene->writer, path);
            node = writer_node(&scene->writer, node, module, 0x100, GM_NODE_NATIVE);
        }
    }
    return node;
}

#define STACK(...)                                                                                 \
    stack_of(scene, (const char *const[]){__VA_ARGS__},                                            \
             sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void check_owner(struct scene *scene, unsigned kind, uint32_t stack, const char *name,
                        const char *pool)
{
    scene_analyse(scene);
    struct gm_libraries *libraries = gm_libraries_new(scene->trace);
    struct gm_library owner = gm_libraries_of(libraries, kind, stack);
    assert_string_equal(owner.name, name);
    assert_string_equal(owner.pool ? owner.pool : "none", pool ? pool : "none");
    gm_libraries_free(libraries);
}

/* One test: this stack has this owner. */
#define OWNER_TEST(test, kind, name, pool, ...)                                                    \
    static void test(void **state)                                                                 \
    {                                                                                              \
        struct scene *scene = *state;                                                              \
        check_owner(scene, kind, STACK(__VA_ARGS__), name, pool);                                  \
    }

OWNER_TEST(the_program_is_the_application, GM_KIND_DEVICE, "application", NULL, "libcudart.so.13",
           "train", "libc.so.6")
OWNER_TEST(a_librarys_own_call_is_the_librarys, GM_KIND_DEVICE, "NCCL", NULL, "libcuda.so.1",
           "libnccl.so.2", "libtorch_cuda.so", "libtorch_python.so", "python3.11")
OWNER_TEST(a_runtime_linked_into_a_library_is_the_librarys, GM_KIND_DEVICE, "cuBLAS", NULL,
           "libcuda.so.1", "libcublasLt.so.12", "libcublas.so.12", "app")
OWNER_TEST(a_tensor_is_pytorchs_in_its_pool, GM_KIND_DEVICE, "PyTorch", "PyTorch",
           "libcudart.so.13", "libc10_cuda.so", "libc10.so", "libtorch_cuda.so", "libtorch_cpu.so",
           "python3.11")
OWNER_TEST(a_workspace_from_pytorchs_pool_is_its_librarys, GM_KIND_DEVICE, "cuDNN", "PyTorch",
           "libcudart.so.13", "libc10_cuda.so", "libcudnn_ops.so.9", "libtorch_cuda.so", "app")
OWNER_TEST(a_program_that_asks_the_pool_is_the_application, GM_KIND_DEVICE, "application",
           "PyTorch", "libcudart.so.13", "libc10_cuda.so", "app")
OWNER_TEST(pinned_memory_has_its_own_pool, GM_KIND_PINNED, "PyTorch", "PyTorch", "libcudart.so.13",
           "libtorch_cuda.so", "libtorch_cpu.so")
OWNER_TEST(what_is_taken_past_the_pool_is_in_none, GM_KIND_DEVICE, "PyTorch", NULL, "libcuda.so.1",
           "libtorch_cuda.so")
OWNER_TEST(an_allocator_that_caches_nothing_is_passed_over, GM_KIND_DEVICE, "cuDF", NULL,
           "libcudart.so.13", "librmm.so", "libcudf.so", "python3.11")
OWNER_TEST(an_allocator_alone_owns, GM_KIND_DEVICE, "RMM", NULL, "libcudart.so.13", "librmm.so")
OWNER_TEST(an_unknown_library_has_its_file_name, GM_KIND_DEVICE, "libsolver.so.3", NULL,
           "libcudart.so.13", "libsolver.so.3", "libtorch_cuda.so")
OWNER_TEST(a_module_of_a_package_is_the_packages, GM_KIND_DEVICE, "vLLM", NULL, "libcuda.so.1",
           "x/site-packages/vllm/_C.abi3.so", "python3.11")
OWNER_TEST(cupy_is_its_own_pool, GM_KIND_DEVICE, "CuPy", "CuPy", "libcudart.so.13",
           "x/site-packages/cupy/cuda/memory.cpython-311-x86_64-linux-gnu.so", "python3.11")
OWNER_TEST(a_python_file_of_a_package_is_the_packages, GM_KIND_DEVICE, "Numba", NULL,
           "libcuda.so.1", "_ctypes.cpython-311.so", "libffi.so.8", "@numba/cuda/driver.py",
           "python3.11")
OWNER_TEST(any_other_python_file_is_the_application, GM_KIND_DEVICE, "application", NULL,
           "libcuda.so.1", "_ctypes.cpython-311.so", "@mine/train.py", "python3.11")
OWNER_TEST(roads_alone_tell_nothing, GM_KIND_DEVICE, "unknown", NULL, "libcuda.so.1",
           "libcudart.so.13", "libc.so.6")

static void every_byte_is_somebodys_at_each_moment(void **state)
{
    struct scene *scene = *state;
    uint32_t nccl = STACK("libcuda.so.1", "libnccl.so.2"), app = STACK("libcudart.so.13", "app");
    uint32_t torch = STACK("libcudart.so.13", "libc10_cuda.so", "libtorch_cuda.so");
    DEVICE_ALLOC(0x100000, 1 * MIB, .stack = nccl);
    DEVICE_ALLOC(0x200000, 2 * MIB, .stack = nccl);
    DEVICE_ALLOC(0x800000, 4 * MIB, .stack = torch);
    DEVICE_ALLOC(0x40000000, 7 * MIB, .stack = torch, .device = 1);
    FREE(0x800000);
    DEVICE_ALLOC(0x900000, 1 * MIB, .stack = app);
    EVENT(GM_EVENT_ALLOC_FAILED, .size = 64 * MIB, .kind = GM_KIND_DEVICE, .extra = 2);
    FREE(0x200000);
    EVENT(GM_EVENT_ALLOC, .address = 0x7000, .size = 512, .kind = GM_KIND_PINNED, .stack = app);
    const struct gm_analysis *analysis = scene_analyse(scene);
    struct gm_libraries *libraries = gm_libraries_new(scene->trace);
    struct gm_library_table table = gm_library_table_of(libraries, analysis, 0);
    static const struct {
        const char *name;
        uint64_t peak, end, failure;
    } expected[] = {
        {"PyTorch", 4 * MIB, 0, 0},
        {"NCCL", 3 * MIB, 1 * MIB, 3 * MIB},
        {"application", 0, 1 * MIB, 1 * MIB},
    };
    assert_int_equal(table.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(table.lines[i].name, expected[i].name);
        assert_int_equal(table.lines[i].at[GM_AT_PEAK].bytes, expected[i].peak);
        assert_int_equal(table.lines[i].at[GM_AT_END].bytes, expected[i].end);
        assert_int_equal(table.lines[i].at[GM_AT_FAILURE].bytes, expected[i].failure);
    }
    assert_int_equal(table.bytes[GM_AT_PEAK], analysis->device_peaks[0].owners.bytes);
    assert_int_equal(table.bytes[GM_AT_END], analysis->replay.ledger.counters.device[1].live);
    gm_library_table_free(&table);
    gm_libraries_free(libraries);
}

static void memory_of_the_drivers_pool_is_in_no_librarys(void **state)
{
    struct scene *scene = *state;
    uint32_t torch = STACK("libcudart.so.13", "libc10_cuda.so", "libtorch_cuda.so");
    uint32_t other = STACK("libcudart.so.13", "libc10_cuda.so", "libtorch_cpu.so");
    uint16_t ordered = writer_api(&scene->writer, "cudaMallocAsync");
    DEVICE_ALLOC(0x100000, 2 * MIB, .stack = torch, .api = ordered);
    DEVICE_ALLOC(0x800000, 1 * MIB, .stack = other);
    const struct gm_analysis *analysis = scene_analyse(scene);
    struct gm_libraries *libraries = gm_libraries_new(scene->trace);
    struct gm_library_table table = gm_library_table_of(libraries, analysis, 0);
    assert_int_equal(table.count, 2);
    assert_string_equal(table.lines[0].name, "PyTorch");
    assert_null(table.lines[0].pool);
    assert_string_equal(table.lines[1].pool, "PyTorch");
    gm_library_table_free(&table);
    gm_libraries_free(libraries);
}

static void a_file_name_names_its_library(void **state)
{
    static const struct gm_text paths[] = {{"/x/libnvinfer.so.10", 19}, {"libcusparseLt.so.0", 18}};
    (void)state;
    assert_string_equal(gm_known_library(paths[0])->name, "TensorRT");
    assert_string_equal(gm_known_library(paths[1])->name, "cuSPARSE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(the_program_is_the_application),
        SCENE_TEST(a_librarys_own_call_is_the_librarys),
        SCENE_TEST(a_runtime_linked_into_a_library_is_the_librarys),
        SCENE_TEST(a_tensor_is_pytorchs_in_its_pool),
        SCENE_TEST(a_workspace_from_pytorchs_pool_is_its_librarys),
        SCENE_TEST(a_program_that_asks_the_pool_is_the_application),
        SCENE_TEST(pinned_memory_has_its_own_pool),
        SCENE_TEST(what_is_taken_past_the_pool_is_in_none),
        SCENE_TEST(an_allocator_that_caches_nothing_is_passed_over),
        SCENE_TEST(an_allocator_alone_owns),
        SCENE_TEST(an_unknown_library_has_its_file_name),
        SCENE_TEST(a_module_of_a_package_is_the_packages),
        SCENE_TEST(cupy_is_its_own_pool),
        SCENE_TEST(a_python_file_of_a_package_is_the_packages),
        SCENE_TEST(any_other_python_file_is_the_application),
        SCENE_TEST(roads_alone_tell_nothing),
        SCENE_TEST(every_byte_is_somebodys_at_each_moment),
        SCENE_TEST(memory_of_the_drivers_pool_is_in_no_librarys),
        cmocka_unit_test(a_file_name_names_its_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
