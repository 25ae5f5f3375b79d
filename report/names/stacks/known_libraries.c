/* See known_libraries.h. */
#include "names/stacks/known_libraries.h"
#include "frame_rules.h"
#include <string.h>

#define ROAD GM_LIBRARY_ROAD
#define VENDOR GM_LIBRARY_VENDOR
#define ALLOCATOR GM_LIBRARY_ALLOCATOR
#define SYSTEM GM_LIBRARY_SYSTEM
#define DEVICE_CACHE GM_LIBRARY_DEVICE_CACHE
#define HOST_CACHE GM_LIBRARY_HOST_CACHE
#define CACHE (GM_LIBRARY_DEVICE_CACHE | GM_LIBRARY_HOST_CACHE)

/*
 * Caches are libraries that take memory from CUDA to hand it out themselves, keep it when their
 * users give it back, and leave it to the end of the process. Only libraries whose every allocation
 * of that sort is such memory: what their users forgot is told by blocks, where the framework tells
 * of them, and not by this memory.
 *
 * RMM is none. Its default resource passes each request on to CUDA, so that what it leaves behind
 * is what the program did not free.
 */
static const struct gm_known_library libraries[] = {
    {"libgpumem", "gpumem", ROAD},
    {"libcuda", "CUDA driver", ROAD},
    {"libcudart", "CUDA runtime", ROAD},
    /* the vendor's */
    {"libcublas", "cuBLAS", VENDOR},
    {"libcublasLt", "cuBLAS", VENDOR},
    {"libcudnn", "cuDNN", VENDOR},
    {"libcudnn_adv", "cuDNN", VENDOR},
    {"libcudnn_adv_infer", "cuDNN", VENDOR},
    {"libcudnn_adv_train", "cuDNN", VENDOR},
    {"libcudnn_cnn", "cuDNN", VENDOR},
    {"libcudnn_cnn_infer", "cuDNN", VENDOR},
    {"libcudnn_cnn_train", "cuDNN", VENDOR},
    {"libcudnn_engines_precompiled", "cuDNN", VENDOR},
    {"libcudnn_engines_runtime_compiled", "cuDNN", VENDOR},
    {"libcudnn_graph", "cuDNN", VENDOR},
    {"libcudnn_heuristic", "cuDNN", VENDOR},
    {"libcudnn_ops", "cuDNN", VENDOR},
    {"libcudnn_ops_infer", "cuDNN", VENDOR},
    {"libcudnn_ops_train", "cuDNN", VENDOR},
    {"libcufft", "cuFFT", VENDOR},
    {"libcufftXt", "cuFFT", VENDOR},
    {"libcufftw", "cuFFT", VENDOR},
    {"libcufile", "cuFile", VENDOR},
    {"libcupti", "CUPTI", VENDOR},
    {"libcurand", "cuRAND", VENDOR},
    {"libcusolver", "cuSOLVER", VENDOR},
    {"libcusolverMg", "cuSOLVER", VENDOR},
    {"libcusparse", "cuSPARSE", VENDOR},
    {"libcusparseLt", "cuSPARSE", VENDOR},
    {"libcutensor", "cuTENSOR", VENDOR},
    {"libcutensorMg", "cuTENSOR", VENDOR},
    {"libnccl", "NCCL", VENDOR},
    {"libnccl-net", "NCCL", VENDOR},
    {"libnppc", "NPP", VENDOR},
    {"libnvJitLink", "nvJitLink", VENDOR},
    {"libnvjpeg", "nvJPEG", VENDOR},
    {"libnvrtc", "NVRTC", VENDOR},
    {"libnvshmem_host", "NVSHMEM", VENDOR},
    /* An engine belongs to the program that made it, so what is left of one is a leak. */
    {"libnvinfer", "TensorRT", 0},
    {"libnvinfer_plugin", "TensorRT", 0},
    {"libnvonnxparser", "TensorRT", 0},
    {"libonnxruntime", "ONNX Runtime", 0},
    {"libonnxruntime_providers_cuda", "ONNX Runtime", 0},
    {"libonnxruntime_providers_tensorrt", "ONNX Runtime", 0},
    /* PyTorch. CUDACachingAllocator, of libc10_cuda: segments; only empty_cache() and lack of
     * memory return them. CachingHostAllocator, of libtorch_cuda: pinned memory by powers of two.
     * Device memory that libtorch_cuda takes past the allocator (statically linked NCCL) is no
     * cache. */
    {"libc10", "PyTorch", ALLOCATOR},
    {"libc10_cuda", "PyTorch", ALLOCATOR | DEVICE_CACHE},
    {"libc10_hip", "PyTorch", ALLOCATOR},
    {"libshm", "PyTorch", 0},
    {"libtorch", "PyTorch", 0},
    {"libtorch_cpu", "PyTorch", 0},
    {"libtorch_cuda", "PyTorch", HOST_CACHE},
    {"libtorch_cuda_cpp", "PyTorch", 0},
    {"libtorch_cuda_cu", "PyTorch", 0},
    {"libtorch_cuda_linalg", "PyTorch", 0},
    {"libtorch_global_deps", "PyTorch", 0},
    {"libtorch_hip", "PyTorch", 0},
    {"libtorch_python", "PyTorch", 0},
    {"libtriton", "Triton", 0}, /* the compiler */
    {"libtritonserver", "Triton Inference Server", 0},
    /* Allocators below PyTorch's pools, which let the memory go while the program sleeps. */
    {"cumem_allocator", "vLLM", DEVICE_CACHE},
    {"torch_memory_saver_hook_mode_torch", "torch_memory_saver", DEVICE_CACHE},
    /* XLA's BFC allocators, on the device and for pinned staging memory: chunks are returned by the
     * client, which lives as long as the process. One name per packaging of jaxlib. */
    {"libjax_common", "JAX", CACHE},
    {"xla_cuda_plugin", "JAX", CACHE},
    {"xla_extension", "JAX", CACHE},
    /* TensorFlow's BFC allocators: made once per process and never destroyed. */
    {"_pywrap_tensorflow_common", "TensorFlow", CACHE},
    {"_pywrap_tensorflow_internal", "TensorFlow", CACHE},
    {"libtensorflow", "TensorFlow", 0},
    {"libtensorflow_cc", "TensorFlow", CACHE},
    {"libtensorflow_framework", "TensorFlow", CACHE},
    /* RAPIDS */
    {"librmm", "RMM", ALLOCATOR},
    {"libcudf", "cuDF", 0},
    {"libcugraph", "cuGraph", 0},
    {"libcuml", "cuML", 0},
    {"libraft", "RAFT", 0},
    /* languages and the system */
    {"ld-linux", "libc", SYSTEM},
    {"libc", "libc", SYSTEM},
    {"libc++", "libc++", SYSTEM},
    {"libc++abi", "libc++", SYSTEM},
    {"libdl", "libc", SYSTEM},
    {"libgcc_s", "libgcc", SYSTEM},
    {"libgomp", "OpenMP", SYSTEM},
    {"libiomp5", "OpenMP", SYSTEM},
    {"libm", "libc", SYSTEM},
    {"libomp", "OpenMP", SYSTEM},
    {"libpthread", "libc", SYSTEM},
    {"librt", "libc", SYSTEM},
    {"libstdc++", "libstdc++", SYSTEM},
    {"linux-vdso", "Linux", SYSTEM},
};

/* CuPy's pools of device and pinned memory outlive the arrays. Its modules have names such as
 * memory.so, told apart by their folder. */
static const struct gm_known_library packages[] = {
    {"apex", "Apex", 0},
    {"bitsandbytes", "bitsandbytes", 0},
    {"cuda", "CUDA Python", SYSTEM}, /* bindings: who called them is asked */
    {"cudf", "cuDF", 0},
    {"cuml", "cuML", 0},
    {"cupy", "CuPy", CACHE},
    {"cupy_backends", "CuPy", CACHE},
    {"deepspeed", "DeepSpeed", 0},
    {"flash_attn", "FlashAttention", 0},
    {"flax", "Flax", 0},
    {"jax", "JAX", 0},
    {"jax_plugins", "JAX", 0},
    {"jaxlib", "JAX", 0},
    {"keras", "Keras", 0},
    {"numba", "Numba", 0},
    {"numba_cuda", "Numba", 0},
    {"numpy", "NumPy", SYSTEM},
    {"nvidia", "NVIDIA", 0},
    {"rmm", "RMM", ALLOCATOR},
    {"tensorflow", "TensorFlow", 0},
    {"tensorrt", "TensorRT", 0},
    {"torch", "PyTorch", 0},
    {"torchaudio", "PyTorch", 0},
    {"torchvision", "PyTorch", 0},
    {"transformer_engine", "Transformer Engine", 0},
    {"triton", "Triton", 0},
    {"vllm", "vLLM", 0},
    {"xformers", "xFormers", 0},
};

/* Whether the file name is `name`, or that name with a version: libcuda.so.1 is libcuda, but
 * libcuda_helper.so is not. A wheel's hash before the suffix counts as version too. */
static bool is_library(struct gm_text base, const char *name)
{
    size_t length = strlen(name);
    return base.size > length && memcmp(base.bytes, name, length) == 0 &&
           (base.bytes[length] == '.' || base.bytes[length] == '-');
}

const struct gm_known_library *gm_known_library(struct gm_text path)
{
    struct gm_text base = gm_base_name(path);
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++)
        if (is_library(base, libraries[i].file))
            return &libraries[i];
    return gm_known_package(path);
}

static const struct gm_known_library *known_package(struct gm_text rest)
{
    for (size_t i = 0; i < sizeof(packages) / sizeof(packages[0]); i++) {
        size_t size = strlen(packages[i].file);
        if (rest.size > size && memcmp(rest.bytes, packages[i].file, size) == 0 &&
            rest.bytes[size] == '/')
            return &packages[i];
    }
    return NULL;
}

/* Whether frames.table says that the files of this folder are the program's own. */
static bool is_programs(struct gm_text path)
{
    static const char *const folders[] = {GM_PROGRAM_FILES};
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
        if (gm_text_contains(path, folders[i]))
            return true;
    return false;
}

/* What follows the folder of installed packages in a path; empty if none is in it, or if it is the program's own. */
static struct gm_text below_packages(struct gm_text path)
{
    static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        const char *folder = memmem(path.bytes, path.size, folders[i], strlen(folders[i]));
        if (!folder)
            continue;
        const char *name = folder + strlen(folders[i]);
        if (is_programs(path))
            break;
        return (struct gm_text){name, path.size - (size_t)(name - path.bytes)};
    }
    return (struct gm_text){"", 0};
}

const struct gm_known_library *gm_known_package(struct gm_text path)
{
    struct gm_text rest = below_packages(path);
    return rest.size ? known_package(rest) : NULL;
}

struct gm_text gm_installed_package(struct gm_text path)
{
    struct gm_text rest = below_packages(path);
    const char *end = rest.size ? memchr(rest.bytes, '/', rest.size) : NULL;
    return end ? (struct gm_text){rest.bytes, (size_t)(end - rest.bytes)} : rest;
}

/* The part of a path before a folder; empty if the folder is not in it. */
static struct gm_text part_before(struct gm_text path, const char *folder)
{
    const char *found = memmem(path.bytes, path.size, folder, strlen(folder));
    return found ? (struct gm_text){path.bytes, (size_t)(found - path.bytes)}
                 : (struct gm_text){"", 0};
}

bool gm_is_launcher(struct gm_text script, struct gm_text installed)
{
    struct gm_text place = part_before(script, "/bin/"), library = part_before(installed, "/lib/");
    struct gm_text base = gm_base_name(script);
    return place.size && place.size == library.size &&
           memcmp(place.bytes, library.bytes, place.size) == 0 &&
           base.size + place.size + strlen("/bin/") == script.size;
}

/* ---- headers and generated files ------------------------------------------------------------- */

static bool contains(const char *text, size_t size, const char *part)
{
    return memmem(text, size, part, strlen(part)) != NULL;
}

/* A demangled name without its return type, its parameters and those of its template; `size` is set. */
static const char *qualified_name(const char *function, size_t *size)
{
    size_t end = strcspn(function, "<(");
    size_t start = end;
    while (start > 0 && function[start - 1] != ' ' && function[start - 1] != '*' &&
           function[start - 1] != '&')
        start--;
    *size = end - start;
    return function + start;
}

const char *gm_known_header(const char *file, const char *function)
{
    static const struct {
        const char *namespace;
        const char *library;
    } namespaces[] = {
        {"thrust::", "Thrust"}, {"cub::", "CUB"},       {"rmm::", "RMM"},
        {"cuda::", "CUDA C++"}, {"std::", "libstdc++"}, {"__gnu_cxx::", "libstdc++"},
        {"at::", "PyTorch"},    {"c10::", "PyTorch"},   {"torch::", "PyTorch"},
    };
    static const struct {
        const char *part; /* of a path */
        const char *library;
    } files[] = {
        {"/thrust/", "Thrust"},
        {"/cub/", "CUB"},
        {"/rmm/", "RMM"},
        {"/include/c++/", "libstdc++"},
        {"/include/cccl/", "CUDA C++"},
        {"/cuda_runtime.h", "CUDA runtime"},
        {"/usr/include/", "system"},
        {"/cuda_runtime_api.h", "CUDA runtime"},
        {"/torch/include/", "PyTorch"},
        {"/targets/x86_64-linux/include/", "CUDA toolkit"},
    };
    size_t size;
    const char *name = qualified_name(function, &size);
    for (size_t i = 0; i < sizeof(namespaces) / sizeof(namespaces[0]); i++) {
        size_t length = strlen(namespaces[i].namespace);
        if (size > length && memcmp(name, namespaces[i].namespace, length) == 0)
            return namespaces[i].library;
    }
    for (size_t i = 0; file && i < sizeof(files) / sizeof(files[0]); i++)
        if (contains(file, strlen(file), files[i].part))
            return files[i].library;
    return NULL;
}

/* How many bytes from `at` on, at most `count`, are digits of base 32, in lower case. */
static size_t base32_digits(const char *at, size_t count)
{
    size_t digits = 0;
    while (digits < count &&
           ((at[digits] >= 'a' && at[digits] <= 'z') || (at[digits] >= '2' && at[digits] <= '7')))
        digits++;
    return digits;
}

/* Whether Inductor put a file of that name into its cache, wherever the user has that: "c" and 51 digits
 * of a hash, in a folder named by the first two of these (torch/_inductor/codecache.py, get_path). */
static bool is_in_inductor_cache(struct gm_text path)
{
    enum { FOLDER = 2, NAME = 52 };
    static const char extension[] = ".py";
    size_t size = 1 + FOLDER + 1 + NAME + strlen(extension);
    if (path.size < size)
        return false;
    const char *folder = path.bytes + path.size - size + 1, *name = folder + FOLDER + 1;
    return folder[-1] == '/' && name[-1] == '/' && name[0] == 'c' &&
           base32_digits(name, NAME) == NAME && memcmp(folder, name + 1, FOLDER) == 0 &&
           memcmp(name + NAME, extension, strlen(extension)) == 0;
}

bool gm_is_generated(struct gm_text path)
{
    static const char *const parts[] = {"/torchinductor_", "/.triton/cache/", "<eval_with_key>"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (contains(path.bytes, path.size, parts[i]))
            return true;
    return is_in_inductor_cache(path);
}
