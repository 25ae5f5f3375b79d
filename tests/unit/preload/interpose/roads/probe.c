/*
 * The program that test_roads runs under our library: `probe SCENE` exits with 0 if the scene
 * succeeds, else it prints what failed. Built plain, and with LINKED against driver and runtime.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef int plain_function(void);

#define CHECK_EQUAL(value, expected)                                                               \
    do {                                                                                           \
        long value_ = (long)(value), expected_ = (long)(expected);                                 \
        if (value_ != expected_) {                                                                 \
            fprintf(stderr, "probe.c:%d: %s is %ld, not %ld\n", __LINE__, #value, value_,          \
                    expected_);                                                                    \
            return false;                                                                          \
        }                                                                                          \
    } while (0)

static int call(void *function)
{
    return function != NULL ? ((plain_function *)function)() : 0;
}

static void *driver(void)
{
    return dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
}

static bool handle_gives_wrapper(void)
{
    void *handle = driver();
    CHECK_EQUAL(call(dlsym(handle, "cuMemAlloc_v2")), 1302);
    CHECK_EQUAL(call(dlsym(handle, "cuMemAlloc")), 1301);
    CHECK_EQUAL(call(dlsym(handle, "cuMemAlloc_v2")), 1302);
    return true;
}

static bool other_names_pass(void)
{
    void *handle = driver();
    CHECK_EQUAL(call(dlsym(handle, "cudnnCreate")), 777);
    CHECK_EQUAL(call(dlsym(handle, "cuInit")), 200);
    CHECK_EQUAL(dlsym(handle, "cuMemAlloc_v") == NULL, true);
    CHECK_EQUAL(dlerror() != NULL, true);
    return true;
}

static bool missing_stays_null(void)
{
    void *handle = driver();
    CHECK_EQUAL(dlerror() == NULL, true); /* finding the real dlsym left no error behind */
    CHECK_EQUAL(dlsym(handle, "cuMissing") == NULL, true);
    const char *error = dlerror();
    CHECK_EQUAL(error != NULL && strstr(error, "cuMissing") != NULL &&
                    strstr(error, "libcuda.so.1") != NULL,
                true);
    CHECK_EQUAL(dlerror() == NULL, true);
    return true;
}

static bool export_does_not_show(void)
{
    void *program = dlopen(NULL, RTLD_LAZY);
    CHECK_EQUAL(driver() != NULL, true); /* RTLD_LOCAL: not in the global scope */
    CHECK_EQUAL(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") == NULL, true);
    CHECK_EQUAL(dlerror() != NULL, true);
    CHECK_EQUAL(dlsym(RTLD_NEXT, "cuMemAlloc_v2") == NULL, true);
    CHECK_EQUAL(dlerror() != NULL, true);
    CHECK_EQUAL(dlsym(program, "cuMemAlloc_v2") == NULL, true);
    CHECK_EQUAL(dlerror() != NULL, true);
    return true;
}

static bool global_scope_gives_wrapper(void)
{
    void *program = dlopen(NULL, RTLD_LAZY);
    dlopen("libcuda.so.1", RTLD_LAZY | RTLD_GLOBAL);
    CHECK_EQUAL(call(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2")), 1302);
    CHECK_EQUAL(call(dlsym(RTLD_NEXT, "cuMemAlloc_v2")), 1302);
    CHECK_EQUAL(call(dlsym(program, "cuMemAlloc_v2")), 1302);
    CHECK_EQUAL(dlsym(RTLD_DEFAULT, "cuMissing") == NULL, true);
    return true;
}

static bool default_scope_of_plugin(void)
{
    void *plugin = dlopen("libplugin_12.so", RTLD_NOW | RTLD_LOCAL);
    CHECK_EQUAL(dlsym(RTLD_DEFAULT, "cudaMalloc") == NULL, true);
    CHECK_EQUAL(call(dlsym(plugin, "plugin_default")), 1012);
    return true;
}

static bool plugins_keep_their_runtimes(void)
{
    void *plugin_12 = dlopen("libplugin_12.so", RTLD_NOW | RTLD_LOCAL);
    void *plugin_13 = dlopen("libplugin_13.so", RTLD_NOW | RTLD_LOCAL);
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(call(dlsym(plugin_12, "plugin_malloc")), 1012);
        CHECK_EQUAL(call(dlsym(plugin_13, "plugin_malloc")), 1013);
        CHECK_EQUAL(call(dlsym(plugin_13, "plugin_free")), 1113);
        CHECK_EQUAL(call(dlsym(plugin_12, "plugin_free")), 1112);
    }
    return true;
}

static bool second_runtime_is_not_wrapped(void)
{
    void *runtime_12 = dlopen("libcudart.so.12", RTLD_LAZY);
    void *runtime_13 = dlopen("libcudart.so.13", RTLD_LAZY);
    CHECK_EQUAL(call(dlsym(runtime_12, "cudaMalloc")), 1012);
    CHECK_EQUAL(call(dlsym(runtime_13, "cudaMalloc")), 13);
    CHECK_EQUAL(call(dlsym(runtime_12, "cudaMalloc")), 1012);
    return true;
}

static bool pointer_is_not_the_askers_own_runtime(void)
{
    void *plugin = dlopen("libplugin_12.so", RTLD_NOW | RTLD_LOCAL);
    int (*by_handle)(const char *) = (int (*)(const char *))dlsym(plugin, "plugin_handle");
    CHECK_EQUAL(by_handle("libcudart.so.13"), 13); /* before anything is known */
    CHECK_EQUAL(by_handle("libcudart.so.12"), 1012);
    CHECK_EQUAL(call(dlsym(plugin, "plugin_malloc")), 1012);
    return true;
}

static bool versioned_lookup_passes(void)
{
    void *runtime = dlopen("libcudart.so.12", RTLD_LAZY);
    CHECK_EQUAL(call(dlvsym(runtime, "cudaMalloc", "libcudart.so.12")), 12);
    return true;
}

static bool other_namespace_stays_apart(void)
{
    void *other = dlmopen(LM_ID_NEWLM, "libcuda.so.1", RTLD_NOW);
    CHECK_EQUAL(other != NULL, true);
    CHECK_EQUAL(call(dlsym(other, "cuMemAlloc_v2")), 302);
    CHECK_EQUAL(call(dlsym(driver(), "cuMemAlloc_v2")), 1302);
    return true;
}

/* ---- cuGetProcAddress ------------------------------------------------------------------------ */

typedef int get_v1(const char *symbol, void **function, int version, uint64_t flags);
typedef int get_v2(const char *symbol, void **function, int version, uint64_t flags, int *status);

static int got(get_v2 *get, const char *name, int version, uint64_t flags)
{
    void *function = NULL;
    int status = 77;
    int result = get(name, &function, version, flags, &status);
    return result == 0 && status == 0 ? call(function) : -result - 10000 * status;
}

/* The number of lookups that our library noted because it does not know their ABI. */
static int noted(void)
{
    return call(dlsym(RTLD_DEFAULT, "cudaNotedNewerAbi"));
}

static bool proc_address_by_version(void)
{
    get_v2 *get = (get_v2 *)dlsym(driver(), "cuGetProcAddress_v2");
    CHECK_EQUAL(got(get, "cuMemAlloc", 2000, 0), 1301);
    CHECK_EQUAL(got(get, "cuMemAlloc", 3019, 0), 1301);
    CHECK_EQUAL(got(get, "cuMemAlloc", 3020, 0), 1302);
    CHECK_EQUAL(got(get, "cuMemAlloc", 13000, 0), 1302);
    CHECK_EQUAL(got(get, "cuMemAlloc", 90000, 0), 1301);
    CHECK_EQUAL(got(get, "cuMemAllocAsync", 12000, 0), 1320);
    CHECK_EQUAL(got(get, "cuMemAllocAsync", 12000, 1), 1320);
    CHECK_EQUAL(got(get, "cuMemAllocAsync", 12000, 2), 1321);
    CHECK_EQUAL(got(get, "cuMemAlloc", 12000, 2), 1302); /* no per-thread form exists */
    CHECK_EQUAL(got(get, "cuCtxCreate", 3020, 0), 1332);
    CHECK_EQUAL(got(get, "cuCtxCreate", 11999, 0), 1333);
    CHECK_EQUAL(got(get, "cuInit", 2000, 0), 200);
    CHECK_EQUAL(got(get, "cudnnCreate", 13000, 0), 777);
    return true;
}

static bool proc_address_not_exported(void)
{
    get_v2 *get = (get_v2 *)dlsym(driver(), "cuGetProcAddress_v2");
    CHECK_EQUAL(got(get, "cuMemFree", 12000, 0), 1399);
    CHECK_EQUAL(got(get, "cuMemFree", 3000, 0), 1311);
    CHECK_EQUAL(noted(), 0);
    /* It came with 12.0. The table has no ABI of that version, and from the driver's own version,
     * 12.5, on the driver lacks the table's _v4, so the ABI of its answer is unknown. */
    CHECK_EQUAL(got(get, "cuCtxCreate", 13000, 0), 398);
    CHECK_EQUAL(got(get, "cuCtxCreate", 12050, 0), 398);
    CHECK_EQUAL(got(get, "cuCtxCreate", 12010, 0), 398);
    CHECK_EQUAL(got(get, "cuCtxCreate", 11040, 0), 1333);
    CHECK_EQUAL(noted(), 3);
    return true;
}

/* ABIs from the future, before and after those of today; each lookup gets its own. */
static bool proc_address_of_the_future(void)
{
    get_v2 *get = (get_v2 *)dlsym(driver(), "cuGetProcAddress_v2");
    for (int round = 0; round < 2; round++) {
        CHECK_EQUAL(got(get, "cuMemAlloc", 14000, 0), 303);
        CHECK_EQUAL(got(get, "cuMemAlloc", 3000, 0), 1301);
        CHECK_EQUAL(got(get, "cuMemAlloc", 14990, 2), 303);
        CHECK_EQUAL(got(get, "cuMemAlloc", 13990, 0), 1302);
        CHECK_EQUAL(got(get, "cuMemAlloc", 15000, 0), 397);
        CHECK_EQUAL(got(get, "cuMemAllocAsync", 14000, 2), 323);
        CHECK_EQUAL(got(get, "cuMemAllocAsync", 14000, 0), 1320);
        CHECK_EQUAL(got(get, "cuMemAllocAsync", 13000, 2), 1321);
        CHECK_EQUAL(noted(), 4 * (round + 1));
    }
    return true;
}

/* The driver exports none of it, and answers versions that are older than the function. */
static bool proc_address_of_a_lax_driver(void)
{
    get_v2 *get = (get_v2 *)dlsym(driver(), "cuGetProcAddress_v2");
    CHECK_EQUAL(got(get, "cuLax", 14000, 0), 603);
    CHECK_EQUAL(got(get, "cuLax", 13000, 0), 1602);
    CHECK_EQUAL(got(get, "cuLax", 11500, 0), 1601);
    CHECK_EQUAL(got(get, "cuLax", 2000, 0), 1601);
    CHECK_EQUAL(got(get, "cuLaxAlone", 13000, 0), 1611);
    CHECK_EQUAL(got(get, "cuLaxAlone", 14000, 0), 603);
    CHECK_EQUAL(noted(), 2);
    return true;
}

static bool symbol_of_the_future(void)
{
    void *handle = driver();
    CHECK_EQUAL(call(dlsym(handle, "cuMemAlloc_v2")), 1302);
    CHECK_EQUAL(noted(), 0);
    CHECK_EQUAL(call(dlsym(handle, "cuMemAlloc_v3")), 303);
    CHECK_EQUAL(noted(), 1);
    CHECK_EQUAL(call(dlsym(handle, "cuMemAllocAsync_v2_ptsz")), 323);
    CHECK_EQUAL(noted(), 2);
    CHECK_EQUAL(call(dlsym(dlopen("libcuda.so.1", RTLD_LAZY | RTLD_GLOBAL), "cuMemAlloc_v3")), 303);
    CHECK_EQUAL(call(dlsym(RTLD_DEFAULT, "cuMemAlloc_v3")), 303);
    CHECK_EQUAL(noted(), 4);
    CHECK_EQUAL(dlsym(handle, "cuMemAlloc_v4") == NULL, true); /* missing: nothing to note */
    CHECK_EQUAL(dlerror() != NULL, true);
    CHECK_EQUAL(dlsym(RTLD_DEFAULT, "cuMemAlloc_v4") == NULL, true);
    CHECK_EQUAL(dlerror() != NULL, true);
    CHECK_EQUAL(call(dlsym(handle, "cuMemAlloc")), 1301);
    CHECK_EQUAL(noted(), 4);
    return true;
}

static bool proc_address_untouched(void)
{
    get_v2 *get = (get_v2 *)dlsym(driver(), "cuGetProcAddress_v2");
    void *function = (void *)1;
    int status = 77;
    CHECK_EQUAL(got(get, "cuMemAlloc", 12000, 8), 302); /* flags of a later CUDA */
    CHECK_EQUAL(noted(), 1);
    CHECK_EQUAL(got(get, "cuMissing", 12000, 0), -10500);
    CHECK_EQUAL(got(get, "", 0, 0), -10500);
    CHECK_EQUAL(get("cuMemAlloc", NULL, 12000, 0, &status), 1);
    CHECK_EQUAL(status, 77);
    CHECK_EQUAL(get("cuMemAlloc", &function, 12000, 0, NULL), 0);
    CHECK_EQUAL(call(function), 1302);
    CHECK_EQUAL(get("cuMissing", &function, 12000, 0, NULL), 500);
    CHECK_EQUAL(function == NULL, true);
    return true;
}

static bool proc_address_of_itself(void)
{
    void *handle = driver();
    void *function = NULL;
    get_v2 *get = (get_v2 *)dlsym(handle, "cuGetProcAddress_v2");
    CHECK_EQUAL(get("cuGetProcAddress", &function, 12000, 0, NULL), 0);
    CHECK_EQUAL(function == (void *)get, true);
    CHECK_EQUAL(get("cuGetProcAddress", &function, 11030, 0, NULL), 0);
    CHECK_EQUAL(function == dlsym(handle, "cuGetProcAddress"), true);
    get_v1 *older = (get_v1 *)function;
    CHECK_EQUAL(older("cuMemAlloc", &function, 11040, 0), 0);
    CHECK_EQUAL(call(function), 1302);
    return true;
}

/* ---- unloading ------------------------------------------------------------------------------- */

static bool is_loaded(const char *library)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    return handle != NULL && dlclose(handle) == 0;
}

static bool unloaded_is_forgotten(void)
{
    void *handle = driver();
    void *function = dlsym(handle, "cuMemAlloc_v2");
    get_v2 *get = (get_v2 *)dlsym(handle, "cuGetProcAddress_v2");
    CHECK_EQUAL(call(function), 1302);
    CHECK_EQUAL(got(get, "cuMemAlloc", 90000, 0), 1301);
    CHECK_EQUAL(dlclose(handle), 0);
    CHECK_EQUAL(is_loaded("libcuda.so.1"), false);
    CHECK_EQUAL(call(function), -1);
    /* Something else first, so that the driver comes back at another address. */
    CHECK_EQUAL(dlopen("libplugin_13.so", RTLD_NOW) != NULL, true);
    handle = driver();
    CHECK_EQUAL(call(function), 1302);
    CHECK_EQUAL(got(get, "cuMemAlloc", 90000, 0), 1301);
    CHECK_EQUAL(dlclose(handle), 0);
    CHECK_EQUAL(is_loaded("libcuda.so.1"), false);
    return true;
}

static bool plugin_can_come_and_go(void)
{
    /* The runtimes stay; the plugins take turns, most often at one address. */
    CHECK_EQUAL(dlopen("libcudart.so.12", RTLD_NOW) && dlopen("libcudart.so.13", RTLD_NOW), true);
    for (int i = 0; i < 200; i++) { /* more often than there is room for callers */
        const char *name = i % 2 ? "libplugin_13.so" : "libplugin_12.so";
        void *plugin = dlopen(name, RTLD_NOW);
        CHECK_EQUAL(call(dlsym(plugin, "plugin_malloc")), i % 2 ? 1013 : 1012);
        CHECK_EQUAL(dlclose(plugin), 0);
        CHECK_EQUAL(is_loaded(name), false);
    }
    return true;
}

static bool other_unloading_changes_nothing(void)
{
    /* A driver of another name: once forgotten, our library would not find it again. */
    void *function = dlsym(dlopen("libodd_driver.so", RTLD_LAZY), "cuMemAlloc_v2");
    CHECK_EQUAL(call(function), 51302);
    CHECK_EQUAL(dlclose(dlopen("libplugin_12.so", RTLD_NOW)), 0);
    CHECK_EQUAL(call(function), 51302);
    return true;
}

/* ---- company --------------------------------------------------------------------------------- */

static bool next_keeps_its_caller(void)
{
    CHECK_EQUAL(call(dlsym(RTLD_DEFAULT, "roads_chain")), 21);
    return true;
}

static bool early_lookup(void)
{
    CHECK_EQUAL(call(dlsym(RTLD_DEFAULT, "roads_early")), 1302);
    return true;
}

static bool two_copies(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_GLOBAL);
    CHECK_EQUAL(call(dlsym(dlopen(NULL, RTLD_LAZY), "cuMemAlloc")), 2301);
    CHECK_EQUAL(call(dlsym(handle, "cuMemAlloc_v2")), 2302);
    CHECK_EQUAL(call(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2")), 2302);
    return true;
}

static bool interposer_in_handle_road(void)
{
    CHECK_EQUAL(call(dlsym(driver(), "cuMemAlloc_v2")), 21302);
    return true;
}

static bool foreign_hook_before_us(void)
{
    CHECK_EQUAL(call(dlsym(driver(), "cuMemAlloc_v2")), 20302); /* its dlsym does not call ours */
    CHECK_EQUAL(call(dlsym(driver(), "cuMemAlloc")), 301);
    return true;
}

/* ---- manners --------------------------------------------------------------------------------- */

static bool errno_is_kept(void)
{
    void *plugin = dlopen("libplugin_12.so", RTLD_NOW);
    void *function = dlsym(plugin, "plugin_malloc");
    errno = 4242;
    CHECK_EQUAL(call(function), 1012);
    CHECK_EQUAL(errno, 4242);
    return true;
}

static _Thread_local bool counts;
static _Thread_local int allocations;
extern void *__libc_malloc(size_t size);

void *malloc(size_t size)
{
    allocations += counts;
    return __libc_malloc(size);
}

static bool nothing_is_allocated(void)
{
    void *handle = driver();
    void *plugin_malloc = dlsym(dlopen("libplugin_12.so", RTLD_NOW), "plugin_malloc");
    get_v2 *get = (get_v2 *)dlsym(handle, "cuGetProcAddress_v2");
    void *function = NULL;
    int result = call(plugin_malloc); /* the first call may ask the loader */
    counts = true;
    dlsym(handle, "cuMemAlloc_v2");
    int after_lookup = allocations;
    get("cuMemAlloc", &function, 12000, 0, NULL);
    int after_proc = allocations;
    result += call(function) + call(plugin_malloc);
    int after_calls = allocations;
    dlclose(driver());
    int after_close = allocations;
    counts = false;
    CHECK_EQUAL(result, 1302 + 2 * 1012);
    CHECK_EQUAL(after_lookup, 0);
    CHECK_EQUAL(after_proc, 0);
    CHECK_EQUAL(after_calls, 0);
    CHECK_EQUAL(after_close, 0);
    return true;
}

enum { THREADS = 8 };
static pthread_barrier_t barrier;
static void *race_functions[3];

static void *race(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&barrier);
    long wrong = 0;
    for (int i = 0; i < 1000; i++)
        wrong += (call(race_functions[0]) != 1012) + (call(race_functions[1]) != 1013) +
                 (call(race_functions[2]) != 1302);
    return (void *)wrong;
}

static bool threads_agree(void)
{
    pthread_t threads[THREADS];
    race_functions[0] = dlsym(dlopen("libplugin_12.so", RTLD_NOW), "plugin_malloc");
    race_functions[1] = dlsym(dlopen("libplugin_13.so", RTLD_NOW), "plugin_malloc");
    race_functions[2] = dlsym(driver(), "cuMemAlloc_v2");
    pthread_barrier_init(&barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, race, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *wrong = NULL;
        pthread_join(threads[i], &wrong);
        CHECK_EQUAL((long)wrong, 0);
    }
    return true;
}

#ifdef LINKED
extern int cuMemAlloc_v2(void);
extern int cudaMalloc(void);
extern int cudaFree(void);

static bool linked(void)
{
    CHECK_EQUAL(cuMemAlloc_v2(), 1302);
    CHECK_EQUAL(cudaMalloc(), 1013);
    CHECK_EQUAL(cudaFree(), 1113);
    CHECK_EQUAL(call(dlsym(RTLD_DEFAULT, "cudaMalloc")), 1013);
    return true;
}

static bool linked_and_plugin_of_other_version(void)
{
    CHECK_EQUAL(cudaMalloc(), 1013);
    void *plugin = dlopen("libplugin_12.so", RTLD_NOW | RTLD_LOCAL);
    CHECK_EQUAL(call(dlsym(plugin, "plugin_malloc")), 1012);
    CHECK_EQUAL(cudaMalloc(), 1013);
    return true;
}

static bool plugin_first_and_linked(void)
{
    void *plugin = dlopen("libplugin_12.so", RTLD_NOW | RTLD_LOCAL);
    CHECK_EQUAL(call(dlsym(plugin, "plugin_malloc")), 1012);
    CHECK_EQUAL(cudaMalloc(), 1013);
    return true;
}

static bool address_taken(void)
{
    /* In a program that is not position independent this is an address in the program itself. */
    plain_function *function = cuMemAlloc_v2;
    __asm__ volatile("" : "+r"(function));
    CHECK_EQUAL(function(), 1302);
    CHECK_EQUAL(call(dlsym(dlopen(NULL, RTLD_LAZY), "cuMemAlloc_v2")), 1302);
    CHECK_EQUAL(call(dlsym(driver(), "cuMemAlloc_v2")), 1302);
    CHECK_EQUAL(function(), 1302);
    return true;
}

static bool interposer_in_linked_road(void)
{
    CHECK_EQUAL(cuMemAlloc_v2(), 21302);
    CHECK_EQUAL(call(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2")), 21302);
    CHECK_EQUAL(cuMemAlloc_v2(), 21302);
    return true;
}

static bool two_copies_linked(void)
{
    CHECK_EQUAL(cuMemAlloc_v2(), 2302);
    CHECK_EQUAL(cudaMalloc(), 2013);
    return true;
}

/* ---- the second door ------------------------------------------------------------------------- */

/* Does what the driver does for CUDA_INJECTION64_PATH. */
static bool inject(void)
{
    void *library = dlopen(getenv("ROADS_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    CHECK_EQUAL(call(dlsym(library, "InitializeInjection")), 1);
    return true;
}

/* Protections of the program's own pages, in order. */
static void read_protections(char *out, size_t size)
{
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    size_t used = 0;
    out[0] = '\0';
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL && used < size)
        if (strstr(line, "/probe_") != NULL || strstr(line, "/libplugin_") != NULL)
            used += (size_t)snprintf(out + used, size - used, "%.39s\n", line);
    if (maps != NULL)
        fclose(maps);
}

static bool injected(void)
{
    char before[4096], after[4096];
    CHECK_EQUAL(cudaMalloc(), 13);
    read_protections(before, sizeof before);
    CHECK_EQUAL(inject(), true);
    read_protections(after, sizeof after);
    CHECK_EQUAL(strcmp(before, after), 0);
    CHECK_EQUAL(strlen(before) > 100, true);
    CHECK_EQUAL(call(dlsym(dlopen(NULL, RTLD_LAZY), "cuMemAlloc_v2")), 1302);
    CHECK_EQUAL(cuMemAlloc_v2(), 1302);
    CHECK_EQUAL(cudaMalloc(), 1013);
    CHECK_EQUAL(call(dlsym(driver(), "cuMemAlloc")), 1301);
    CHECK_EQUAL(call(dlsym(dlopen(NULL, RTLD_LAZY), "cudaMalloc")), 1013);
    CHECK_EQUAL(dlsym(dlopen(NULL, RTLD_LAZY), "cuMissing") == NULL, true);
    CHECK_EQUAL(dlsym(RTLD_DEFAULT, "cuMissing") == NULL, true);
    CHECK_EQUAL(inject(), true); /* the second time changes nothing */
    CHECK_EQUAL(cudaMalloc(), 1013);
    CHECK_EQUAL(cudaFree(), 1113);
    return true;
}

static bool injected_with_plugins(void)
{
    void *plugin_12 = dlopen("libplugin_12.so", RTLD_NOW | RTLD_LOCAL);
    void *plugin_deep = dlopen("libplugin_13.so", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    CHECK_EQUAL(inject(), true);
    CHECK_EQUAL(call(dlsym(plugin_12, "plugin_malloc")), 1012);
    CHECK_EQUAL(call(dlsym(plugin_deep, "plugin_malloc")), 1013);
    CHECK_EQUAL(call(dlsym(plugin_12, "plugin_free")), 1112);
    CHECK_EQUAL(cudaFree(), 1113);
    return true;
}

static bool injected_beside_interposer(void)
{
    CHECK_EQUAL(inject(), true);
    CHECK_EQUAL(cuMemAlloc_v2(), 21302);
    return true;
}

static bool injected_though_preloaded(void)
{
    CHECK_EQUAL(inject(), true);
    CHECK_EQUAL(cuMemAlloc_v2(), 1302);
    CHECK_EQUAL(cudaMalloc(), 1013);
    CHECK_EQUAL(call(dlsym(driver(), "cuMemAlloc")), 1301);
    return true;
}
#endif

#define SCENE(name)                                                                                \
    {                                                                                              \
#name, name                                                                                \
    }

static const struct scene {
    const char *name;
    bool (*run)(void);
} scenes[] = {
    SCENE(handle_gives_wrapper),
    SCENE(other_names_pass),
    SCENE(missing_stays_null),
    SCENE(export_does_not_show),
    SCENE(global_scope_gives_wrapper),
    SCENE(default_scope_of_plugin),
    SCENE(plugins_keep_their_runtimes),
    SCENE(second_runtime_is_not_wrapped),
    SCENE(pointer_is_not_the_askers_own_runtime),
    SCENE(versioned_lookup_passes),
    SCENE(other_namespace_stays_apart),
    SCENE(proc_address_by_version),
    SCENE(proc_address_not_exported),
    SCENE(proc_address_of_the_future),
    SCENE(proc_address_of_a_lax_driver),
    SCENE(symbol_of_the_future),
    SCENE(proc_address_untouched),
    SCENE(proc_address_of_itself),
    SCENE(unloaded_is_forgotten),
    SCENE(plugin_can_come_and_go),
    SCENE(other_unloading_changes_nothing),
    SCENE(next_keeps_its_caller),
    SCENE(early_lookup),
    SCENE(two_copies),
    SCENE(interposer_in_handle_road),
    SCENE(foreign_hook_before_us),
    SCENE(errno_is_kept),
    SCENE(nothing_is_allocated),
    SCENE(threads_agree),
#ifdef LINKED
    SCENE(linked),
    SCENE(linked_and_plugin_of_other_version),
    SCENE(plugin_first_and_linked),
    SCENE(address_taken),
    SCENE(interposer_in_linked_road),
    SCENE(two_copies_linked),
    SCENE(injected),
    SCENE(injected_with_plugins),
    SCENE(injected_beside_interposer),
    SCENE(injected_though_preloaded),
#endif
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof scenes / sizeof scenes[0]; i++)
        if (strcmp(argv[1], scenes[i].name) == 0)
            return scenes[i].run() ? 0 : 1;
    fprintf(stderr, "probe: no such scene\n");
    return 2;
}
