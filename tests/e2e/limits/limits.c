/*
 * Programs that reach the limits of the recorder: limits MODE COUNT [PLUGIN...]. Run by limits.py,
 * which reads the trace.
 */
#include "../programs/generated_code.h"
#include <cuda.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <gpumem/gpumem.h>
#include <gpumem/trace.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static CUdevice device;

static void demand(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "limits: %s\n", what);
        exit(1);
    }
}

static CUdeviceptr allocate(size_t size)
{
    CUdeviceptr address;
    demand(cuMemAlloc(&address, size) == 0, "cuMemAlloc");
    return address;
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* Creates each, allocates in it, and destroys it with the allocation. */
static void contexts(int count)
{
    for (int i = 0; i < count; i++) {
        CUcontext context;
        demand(cuCtxCreate(&context, NULL, 0, device) == 0, "cuCtxCreate");
        allocate(1 << 20);
        demand(cuCtxDestroy(context) == 0, "cuCtxDestroy");
    }
}

static void make_current(void)
{
    CUcontext context;
    demand(cuCtxCreate(&context, NULL, 0, device) == 0, "cuCtxCreate");
}

/* ---- threads --------------------------------------------------------------------------------- */

static CUcontext shared_context;
static pthread_barrier_t all_there;

static void *allocate_once(void *unused)
{
    demand(cuCtxSetCurrent(shared_context) == 0, "cuCtxSetCurrent");
    allocate(1024);
    pthread_barrier_wait(&all_there);
    return unused;
}

static void start_thread(pthread_t *thread)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    demand(pthread_create(thread, &small, allocate_once, NULL) == 0, "pthread_create");
    pthread_attr_destroy(&small);
}

/* That many threads at the same time, then as many one after the other. */
static void threads(int count)
{
    demand(cuCtxCreate(&shared_context, NULL, 0, device) == 0, "cuCtxCreate");
    pthread_t *all = calloc((size_t)count, sizeof(*all));
    demand(all != NULL, "calloc");
    pthread_barrier_init(&all_there, NULL, (unsigned)count);
    for (int i = 0; i < count; i++)
        start_thread(&all[i]);
    for (int i = 0; i < count; i++)
        pthread_join(all[i], NULL);
    pthread_barrier_init(&all_there, NULL, 1);
    for (int i = 0; i < count; i++) {
        start_thread(&all[i]);
        pthread_join(all[i], NULL);
    }
}

/* ---- names: each mode ends by a leak of 999 bytes in a library that is new ------------------- */

static char **plugins; /* the last of them is the new one */

static void call_plugin(const char *path, int keep)
{
    void *library = dlopen(path, RTLD_NOW);
    demand(library != NULL, "dlopen");
    void (*function)(int) = (void (*)(int))(uintptr_t)dlsym(library, "allocate_in_plugin");
    demand(function != NULL, "dlsym");
    function(keep);
    if (!keep)
        dlclose(library);
}

/* A different name for each mark. */
static void marks(int count)
{
    char name[80];
    make_current();
    allocate(4096);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof(name), "a step of the program with a name of its own: number %012d",
                 i);
        gpumem_mark(name);
    }
    call_plugin(plugins[0], 1);
}

static void pair(void)
{
    demand(cuMemFree(allocate(64)) == 0, "cuMemFree");
}

/* A host that generates code and closes a library now and then. */
static void generated(int count)
{
    make_current();
    generated_code *code = generate_code();
    for (int i = 0; i < count; i++) {
        void *library = dlopen(plugins[0], RTLD_NOW);
        demand(library && dlclose(library) == 0, "dlopen");
        code(pair);
    }
    call_plugin(plugins[1], 1);
}

/* Two libraries that are loaded in turn at the same place. */
static void churn(int count)
{
    make_current();
    for (int i = 0; i < count; i++)
        call_plugin(plugins[i % 2], 0);
    call_plugin(plugins[2], 1);
}

/* ---- a file that cannot grow for a moment ---------------------------------------------------- */

static void leaf(void)
{
    pair();
}

/* Calls through a different stack for each `path`. */
static void descend(int depth, int path)
{
    volatile int after = depth;
    if (!depth)
        leaf();
    else if (path & 1)
        descend(depth - 1, path >> 1), after++;
    else
        descend(depth - 1, path >> 1), after--;
}

__attribute__((noinline)) static void after_full(void)
{
    allocate(2000);
}

/* Entries of the trace's table of stacks. */
static uint32_t stacks_recorded(void)
{
    struct gm_trace_header header;
    const char *trace = getenv("GPUMEM_OUTPUT");
    int file = trace ? open(trace, O_RDONLY) : -1;
    demand(file >= 0 && read(file, &header, sizeof(header)) == sizeof(header), "no trace");
    close(file);
    return header.node_count;
}

static void full_disk(int count)
{
    struct rlimit before, low;
    make_current();
    pair(); /* for which the simulator makes a file of its own */
    demand(getrlimit(RLIMIT_FSIZE, &before) == 0, "getrlimit");
    low = before;
    low.rlim_cur = 4096;
    setrlimit(RLIMIT_FSIZE, &low);
    for (int i = 0; i < count; i++)
        descend(13, i);
    uint32_t stacks = stacks_recorded();
    setrlimit(RLIMIT_FSIZE, &before);
    for (int i = count; stacks_recorded() == stacks; i++) { /* tried again, but not at once */
        demand(i < count + 60000, "no new stack for a minute");
        descend(13, i % 8192);
        usleep(1000);
    }
    after_full();
}

static const struct mode {
    const char *name;
    void (*run)(int count);
} modes[] = {
    {"contexts", contexts},   {"threads", threads}, {"marks", marks},
    {"generated", generated}, {"churn", churn},     {"full_disk", full_disk},
};

int main(int count, char **arguments)
{
    demand(count >= 3, "usage: limits MODE COUNT [PLUGIN...]");
    plugins = arguments + 3;
    demand(cuInit(0) == 0 && cuDeviceGet(&device, 0) == 0, "cuInit");
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (strcmp(arguments[1], modes[i].name) == 0) {
            modes[i].run(atoi(arguments[2]));
            puts("done");
            return 0;
        }
    demand(0, "no such mode");
}
