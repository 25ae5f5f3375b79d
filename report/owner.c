/* See owner.h. */
#include "owner.h"
#include <stdlib.h>
#include <string.h>
#include "counters.h"
#include "map.h"
#include "memory.h"

struct gm_owners {
    const struct gm_trace *trace;
    struct gm_map known; /* stack -> enum gm_owner */
};

struct gm_text gm_base_name(struct gm_text path)
{
    const char *slash = memrchr(path.bytes, '/', path.size);
    if (!slash)
        return path;
    size_t skip = (size_t)(slash + 1 - path.bytes);
    return (struct gm_text){path.bytes + skip, path.size - skip};
}

/* Whether the file name is `name`, or that name with a version: libcuda.so.1 is libcuda, but
 * libcuda_helper.so is not. A wheel's hash before the suffix counts as version too. */
static bool is_library(struct gm_text base, const char *name)
{
    size_t length = strlen(name);
    return base.size > length && memcmp(base.bytes, name, length) == 0 &&
           (base.bytes[length] == '.' || base.bytes[length] == '-');
}

static bool is_one_of(struct gm_text path, const char *const *names, size_t count)
{
    struct gm_text base = gm_base_name(path);
    for (size_t i = 0; i < count; i++)
        if (is_library(base, names[i]))
            return true;
    return false;
}

bool gm_is_road(struct gm_text path)
{
    static const char *const roads[] = {"libgpumem", "libcuda", "libcudart"};
    return is_one_of(path, roads, sizeof(roads) / sizeof(roads[0]));
}

bool gm_is_vendor(struct gm_text path)
{
    static const char *const vendors[] = {
        "libcublas",
        "libcublasLt",
        "libcudnn",
        "libcudnn_adv",
        "libcudnn_cnn",
        "libcudnn_engines_precompiled",
        "libcudnn_engines_runtime_compiled",
        "libcudnn_graph",
        "libcudnn_heuristic",
        "libcudnn_ops",
        "libcudnn_adv_infer",
        "libcudnn_adv_train",
        "libcudnn_cnn_infer",
        "libcudnn_cnn_train",
        "libcudnn_ops_infer",
        "libcudnn_ops_train",
        "libcufft",
        "libcufftXt",
        "libcufftw",
        "libcufile",
        "libcurand",
        "libcusolver",
        "libcusolverMg",
        "libcusparse",
        "libcusparseLt",
        "libcutensor",
        "libcutensorMg",
        "libnccl",
        "libnccl-net",
        "libnppc",
        "libnvJitLink",
        "libnvjpeg",
        "libnvrtc",
        "libnvshmem_host",
        "libcupti",
    };
    return is_one_of(path, vendors, sizeof(vendors) / sizeof(vendors[0]));
}

const char *gm_framework_package(struct gm_text path)
{
    static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
    static const char *const packages[] = {
        "cupy",  "cupy_backends", "flax",        "jax",    "jaxlib",
        "keras", "nvidia",        "numba",       "numpy",  "tensorflow",
        "torch", "torchaudio",    "torchvision", "triton", "jax_plugins",
    };
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        const char *folder = memmem(path.bytes, path.size, folders[i], strlen(folders[i]));
        if (!folder)
            continue;
        const char *name = folder + strlen(folders[i]);
        size_t left = path.size - (size_t)(name - path.bytes);
        for (size_t k = 0; k < sizeof(packages) / sizeof(packages[0]); k++) {
            size_t size = strlen(packages[k]);
            if (left > size && memcmp(name, packages[k], size) == 0 && name[size] == '/')
                return packages[k];
        }
    }
    return NULL;
}

bool gm_is_framework(struct gm_text path)
{
    static const char *const libraries[] = {
        /* PyTorch */
        "libc10",
        "libc10_cuda",
        "libc10_hip",
        "libshm",
        "libtorch",
        "libtorch_cpu",
        "libtorch_cuda",
        "libtorch_cuda_cpp",
        "libtorch_cuda_cu",
        "libtorch_cuda_linalg",
        "libtorch_global_deps",
        "libtorch_hip",
        "libtorch_python",
        "libtriton",
        /* JAX, TensorFlow */
        "_pywrap_tensorflow_common",
        "_pywrap_tensorflow_internal",
        "libjax_common",
        "libtensorflow",
        "libtensorflow_cc",
        "libtensorflow_framework",
        "xla_cuda_plugin",
        "xla_extension",
        /* languages and the system */
        "ld-linux",
        "libc",
        "libc++",
        "libc++abi",
        "libdl",
        "libgcc_s",
        "libgomp",
        "libiomp5",
        "libm",
        "libomp",
        "libpthread",
        "librt",
        "libstdc++",
        "linux-vdso",
    };
    return is_one_of(path, libraries, sizeof(libraries) / sizeof(libraries[0])) ||
           gm_is_vendor(path) || gm_framework_package(path);
}

/* The caches of frameworks: libraries that take memory from CUDA to hand it out themselves, keep it
 * when their users give it back, and leave it to the end of the process. Only libraries whose every
 * allocation of that sort is such memory: what their users forgot is told by blocks, where the
 * framework tells of them, and not by this memory.
 *
 * Not here: RMM. Its default resource passes each request on to CUDA, so that what it leaves behind
 * is what the program did not free. */
static unsigned cache_of(struct gm_text path)
{
    static const struct {
        const char *library;
        unsigned owner;
    } caches[] = {
        /* CUDACachingAllocator: segments; only empty_cache() and lack of memory return them. */
        {"libc10_cuda", GM_OWNER_DEVICE_CACHE},
        /* CachingHostAllocator: pinned memory by powers of two. Device memory that this library
         * takes past the allocator (statically linked NCCL) is no cache. */
        {"libtorch_cuda", GM_OWNER_HOST_CACHE},
        /* XLA's BFC allocators, on the device and for pinned staging memory: chunks are returned
         * by the client, which lives as long as the process. One name per packaging of jaxlib. */
        {"xla_extension", GM_OWNER_DEVICE_CACHE | GM_OWNER_HOST_CACHE},
        {"libjax_common", GM_OWNER_DEVICE_CACHE | GM_OWNER_HOST_CACHE},
        {"xla_cuda_plugin", GM_OWNER_DEVICE_CACHE | GM_OWNER_HOST_CACHE},
        /* TensorFlow's BFC allocators: made once per process and never destroyed. */
        {"libtensorflow_framework", GM_OWNER_DEVICE_CACHE | GM_OWNER_HOST_CACHE},
        {"libtensorflow_cc", GM_OWNER_DEVICE_CACHE | GM_OWNER_HOST_CACHE},
        {"_pywrap_tensorflow_internal", GM_OWNER_DEVICE_CACHE | GM_OWNER_HOST_CACHE},
        {"_pywrap_tensorflow_common", GM_OWNER_DEVICE_CACHE | GM_OWNER_HOST_CACHE},
    };
    for (size_t i = 0; i < sizeof(caches) / sizeof(caches[0]); i++)
        if (is_library(gm_base_name(path), caches[i].library))
            return caches[i].owner;
    /* CuPy's pools of device and pinned memory, which outlive the arrays. Its modules have names
     * such as memory.so, told apart by their folder. */
    const char *package = gm_framework_package(path);
    if (package && (strcmp(package, "cupy") == 0 || strcmp(package, "cupy_backends") == 0))
        return GM_OWNER_DEVICE_CACHE | GM_OWNER_HOST_CACHE;
    return 0;
}

struct gm_owners *gm_owners_new(const struct gm_trace *trace)
{
    struct gm_owners *owners = gm_allocate(1, sizeof(*owners));
    owners->trace = trace;
    return owners;
}

void gm_owners_free(struct gm_owners *owners)
{
    gm_map_free(&owners->known);
    free(owners);
}

static unsigned owner_of(const struct gm_trace *trace, uint32_t stack)
{
    for (uint32_t id = stack; id;) {
        const struct gm_node *node = gm_trace_node(trace, id);
        if (!node || node->kind > GM_NODE_LEAF)
            return 0;
        const struct gm_module *module = gm_trace_module(trace, node->module);
        struct gm_text path = gm_trace_string(trace, module ? module->path : 0);
        if (!gm_is_road(path))
            return gm_is_vendor(path) ? GM_OWNER_VENDOR : cache_of(path);
        id = node->parent < id ? node->parent : 0;
    }
    return 0;
}

unsigned gm_owners_get(struct gm_owners *owners, uint32_t stack)
{
    uint32_t known = gm_map_get(&owners->known, stack);
    if (known == GM_NONE) {
        known = owner_of(owners->trace, stack);
        gm_map_set(&owners->known, stack, known);
    }
    return known;
}

bool gm_owners_cache(struct gm_owners *owners, unsigned kind, uint32_t stack)
{
    unsigned wanted = gm_kind_is_host(kind) ? GM_OWNER_HOST_CACHE : GM_OWNER_DEVICE_CACHE;
    return (gm_owners_get(owners, stack) & wanted) != 0;
}
