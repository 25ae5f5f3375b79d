/*
 * A program as test_dry_run.py runs it dry: program DO [BYTES]
 *
 *   nothing    no CUDA call
 *   library    uses the math library, and says what it answers
 *   keep BYTES allocates them, in pieces of 64 MiB at most, and exits with 3 if it cannot
 *   device BYTES the same, after having said what the device is
 *   managed BYTES the same, beside twice as much of managed memory
 *   less BYTES the same, but goes on with half of it where that is too much
 *   plugin FILE loads a library that brings a runtime of its own, and lets it allocate 5 MiB; then that runtime 3 MiB
 *   title FILE the same, after it has written its title over the environment that it was started with
 *   known      reads back what the host copied to the device
 *   unknown    reads back what only a kernel could have written, twice at one line
 *   table      asks the driver for a private table, as NVIDIA's own runtime does
 */
#define _GNU_SOURCE
#include "include/cublas_api.h"
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            exit(9);                                                                               \
        }                                                                                          \
    } while (0)

static void use_library(void)
{
    cublasHandle_t handle = NULL;
    int version = 0;
    size_t in = 5, bytes = 77, on_stack = 77;
    MUST(cublasCreate_v2(&handle) == CUBLAS_STATUS_SUCCESS && handle);
    MUST(cublasGetVersion_v2(handle, &version) == CUBLAS_STATUS_SUCCESS);
    cublasTest_bufferSize(handle, 1, (cuDoubleComplex){2, 3}, 4, 6, &in, &bytes);
    MUST(bytes == 0 && in == 5);
    cublasTestBufferSizeOnStack(1, 2, 3, 4, 5, 6, &on_stack);
    MUST(on_stack == 0);
    MUST(strstr(cublasGetStatusString(CUBLAS_STATUS_SUCCESS), "simulated"));
    MUST(cublasDestroy_v2(handle) == CUBLAS_STATUS_SUCCESS);
    printf("version %d\n", version);
}

/* As setproctitle does: the environment goes elsewhere, and where it was is written over. */
static void write_title(void)
{
    char **started = environ, **moved;
    size_t count = 0;
    while (started[count])
        count++;
    moved = calloc(count + 1, sizeof(*moved));
    MUST(moved);
    for (size_t i = 0; i < count; i++) {
        moved[i] = strdup(started[i]);
        MUST(moved[i]);
        memset(started[i], 'x', strlen(started[i]));
    }
    environ = moved;
}

/* FlashInfer looks for the runtime among the mappings, and ends where the file is called otherwise. */
static bool is_mapped_as(const char *name)
{
    char line[4096 + 128];
    FILE *maps = fopen("/proc/self/maps", "re");
    bool found = false;
    MUST(maps);
    while (!found && fgets(line, sizeof(line), maps)) {
        const char *base = strrchr(line, '/');
        line[strcspn(line, "\n")] = 0;
        found = base && strcmp(base + 1, name) == 0;
    }
    fclose(maps);
    return found;
}

static void use_plugin(const char *path)
{
    void *memory, *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    static const char name[] = "libcudart.0123abcd.so.13";
    char runtime[4096];
    MUST(plugin);
    int (*keeps)(size_t) = (int (*)(size_t))dlsym(plugin, "plugin_keep");
    MUST(keeps && keeps(5u << 20));
    snprintf(runtime, sizeof(runtime), "%.*s%s", (int)(strrchr(path, '/') + 1 - path), path, name);
    void *bundled = dlopen(runtime, RTLD_NOW | RTLD_LOCAL);
    MUST(bundled && is_mapped_as(name));
    cudaError_t (*allocate)(void **, size_t) =
        (cudaError_t(*)(void **, size_t))dlsym(bundled, "cudaMalloc");
    MUST(allocate && allocate(&memory, 3u << 20) == cudaSuccess);
}

static int keep(size_t bytes)
{
    for (size_t piece; bytes; bytes -= piece) {
        void *memory;
        piece = bytes < 64u << 20 ? bytes : 64u << 20;
        if (cudaMalloc(&memory, piece) != cudaSuccess)
            return 3;
    }
    return 0;
}

static int keep_managed(size_t bytes)
{
    void *memory;
    MUST(cudaMallocManaged(&memory, 2 * bytes, cudaMemAttachGlobal) == cudaSuccess);
    return keep(bytes);
}

static void say_device(void)
{
    struct cudaDeviceProp device;
    int count;
    MUST(cudaGetDeviceCount(&count) == cudaSuccess);
    MUST(cudaGetDeviceProperties(&device, count - 1) == cudaSuccess);
    printf("devices %d\n%s %d.%d %d %zu\n", count, device.name, device.major, device.minor,
           device.multiProcessorCount, device.totalGlobalMem);
}

static int keep_less(size_t bytes)
{
    void *memory;
    while (cudaMalloc(&memory, bytes) != cudaSuccess)
        bytes /= 2;
    return 0;
}

static void read_back(int copied)
{
    int in = 17, out = -1;
    void *memory;
    MUST(cudaMalloc(&memory, sizeof(in)) == cudaSuccess);
    if (copied)
        MUST(cudaMemcpy(memory, &in, sizeof(in), cudaMemcpyHostToDevice) == cudaSuccess);
    for (int i = 0; i < 2; i++)
        MUST(cudaMemcpy(&out, memory, sizeof(out), cudaMemcpyDeviceToHost) == cudaSuccess);
    MUST(out == (copied ? 17 : 0));
}

static void ask_for_table(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    MUST(driver);
    void *symbol = dlsym(driver, "cuGetExportTable");
    int (*ask)(const void **, const void *);
    const void *table;
    memcpy(&ask, &symbol, sizeof(ask));
    MUST(cudaFree(NULL) == cudaSuccess);
    MUST(ask(&table, "0123456789abcdef") != 0);
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "nothing";
    size_t bytes = count > 2 ? strtoull(arguments[2], NULL, 10) : 0;
    if (strcmp(what, "library") == 0)
        use_library();
    if (strcmp(what, "title") == 0)
        write_title();
    if ((strcmp(what, "plugin") == 0 || strcmp(what, "title") == 0) && count > 2)
        use_plugin(arguments[2]);
    if (strcmp(what, "device") == 0)
        say_device();
    if (strcmp(what, "keep") == 0 || strcmp(what, "device") == 0)
        return keep(bytes);
    if (strcmp(what, "managed") == 0)
        return keep_managed(bytes);
    if (strcmp(what, "less") == 0)
        return keep_less(bytes);
    if (strcmp(what, "known") == 0 || strcmp(what, "unknown") == 0)
        read_back(strcmp(what, "known") == 0);
    if (strcmp(what, "table") == 0)
        ask_for_table();
    return 0;
}
