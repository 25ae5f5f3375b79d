/*
 * Life of the driver: cuInit, settings from the environment, the lock, fork and the end of the
 * process.
 *
 * A process that forks after cuInit has no driver in the child (error 3), as with real CUDA; one
 * that forks before may initialise in the child. After our destructor every call answers error 4.
 */
#include "driver.h"
#include "profile.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Tools look this symbol up to know, and say, that the device is simulated. */
extern GPUSIM_EXPORTED const char gpumem_simulated_driver[];
const char gpumem_simulated_driver[] = "gpumem simulated driver: no GPU, kernels are not run";

enum { NOT_INITIALIZED, INITIALIZED, FORKED, FINISHED };

struct gpusim_settings gpusim_settings;
atomic_bool gpusim_noop;
CUresult gpusim_device_error;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int state = NOT_INITIALIZED;

void gpusim_lock(void)
{
    pthread_mutex_lock(&lock);
}

void gpusim_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

CUresult gpusim_enter(void)
{
    int now = atomic_load(&state);

    if (now == FINISHED)
        return CUDA_ERROR_DEINITIALIZED;
    if (now != INITIALIZED)
        return CUDA_ERROR_NOT_INITIALIZED;
    gpusim_lock();
    return CUDA_SUCCESS;
}

static CUresult failure; /* once it is set, it stays */

CUresult gpusim_failure(void)
{
    return failure;
}

void gpusim_kernel_ran(void)
{
    static unsigned long kernels;

    if (gpusim_settings.failing_launch && ++kernels == gpusim_settings.failing_launch)
        failure = gpusim_settings.failure;
}

CUresult gpusim_enter_work(void)
{
    static unsigned long calls;

    GPUSIM_TRY(gpusim_enter());
    if (gpusim_settings.failing_call && ++calls == gpusim_settings.failing_call)
        failure = gpusim_settings.failure;
    if (failure)
        gpusim_unlock();
    return failure;
}

CUresult gpusim_ready(void)
{
    GPUSIM_ENTER();
    return CUDA_SUCCESS;
}

CUresult gpusim_refuse(void)
{
    GPUSIM_TRY(gpusim_ready());
    return CUDA_ERROR_NOT_SUPPORTED;
}

void gpusim_leave(char *unused)
{
    (void)unused;
    gpusim_unlock();
}

static void complain_of_variable(const char *name, const char *value)
{
    fprintf(stderr, "gpumem simulator: %s='%s' is not valid, using the default\n", name, value);
}

/* A number with an optional suffix K, M or G; the fallback when unset or not valid. */
static uint64_t setting(const char *name, uint64_t fallback, uint64_t lowest, uint64_t highest)
{
    const char *value = getenv(name);
    char *end;

    if (!value || !*value)
        return fallback;
    errno = 0;
    unsigned long long number = strtoull(value, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    if (shift)
        end++;
    if (errno || *end || value[0] == '-' || number > UINT64_MAX >> shift ||
        number << shift < lowest || number << shift > highest) {
        complain_of_variable(name, value);
        return fallback;
    }
    return number << shift;
}

/* GPUMEM_SIM_FAIL: "alloc:N", "free:N", "other:N" or several, separated by commas. */
static void read_failures(void)
{
    const char *value = getenv("GPUMEM_SIM_FAIL");

    for (const char *part = value; part && *part;) {
        unsigned long every = 0;
        int length = 0;

        if (sscanf(part, "alloc:%lu%n", &every, &length) == 1 && length > 0)
            gpusim_settings.fail_alloc_every = every;
        else if (sscanf(part, "free:%lu%n", &every, &length) == 1 && length > 0)
            gpusim_settings.fail_free_every = every;
        else if (sscanf(part, "other:%lu%n", &every, &length) == 1 && length > 0)
            gpusim_settings.fail_other_every = every;
        if (every == 0 || (part[length] && part[length] != ',')) {
            complain_of_variable("GPUMEM_SIM_FAIL", value);
            gpusim_settings.fail_alloc_every = gpusim_settings.fail_free_every = 0;
            gpusim_settings.fail_other_every = 0;
            return;
        }
        part += length + (part[length] == ',');
    }
}

/* GPUMEM_SIM_TAKES: "context:300M,code:2M" and so on. */
static void read_takes(void)
{
    static const char *const names[GPUSIM_TAKERS] = {
        [GPUSIM_TAKES_CONTEXT] = "context:", [GPUSIM_TAKES_CODE] = "code:",
        [GPUSIM_TAKES_LAUNCH] = "launch:",   [GPUSIM_TAKES_LIMIT] = "limit:",
        [GPUSIM_TAKES_STREAM] = "stream:",   [GPUSIM_TAKES_EVENT] = "event:",
        [GPUSIM_TAKES_GRAPH] = "graph:",
    };
    const char *value = getenv("GPUMEM_SIM_TAKES"), *part = value;

    while (part && *part) {
        unsigned taker = 0;
        char *end = NULL;

        while (taker < GPUSIM_TAKERS && strncmp(part, names[taker], strlen(names[taker])) != 0)
            taker++;
        if (taker < GPUSIM_TAKERS)
            gpusim_settings.takes[taker] = strtoull(part + strlen(names[taker]), &end, 10);
        const char *unit = end && *end ? strchr("KMG", *end) : NULL;
        if (unit) {
            gpusim_settings.takes[taker] <<= 10 * (1 + (*unit == 'M') + 2 * (*unit == 'G'));
            end++;
        }
        if (!end || (*end && *end != ',') || gpusim_settings.takes[taker] > 1ull << 40) {
            complain_of_variable("GPUMEM_SIM_TAKES", value);
            memset(gpusim_settings.takes, 0, sizeof(gpusim_settings.takes));
            return;
        }
        part = end + (*end == ',');
    }
}

/* GPUMEM_SIM_ERROR: "700:launch:3", the third kernel fails the device; "700:call:50", before the
 * fiftieth call it has failed. */
static void read_error(void)
{
    const char *value = getenv("GPUMEM_SIM_ERROR");
    unsigned long at = 0;
    unsigned status = 0;
    char what[8] = "";
    int length = 0;

    if (!value || !*value)
        return;
    bool is_valid = sscanf(value, "%u:%7[a-z]:%lu%n", &status, what, &at, &length) == 3 &&
                    !value[length] && status && at &&
                    (strcmp(what, "launch") == 0 || strcmp(what, "call") == 0);
    if (!is_valid) {
        complain_of_variable("GPUMEM_SIM_ERROR", value);
        return;
    }
    gpusim_settings.failure = (CUresult)status;
    *(what[0] == 'l' ? &gpusim_settings.failing_launch : &gpusim_settings.failing_call) = at;
}

static void read_state_settings(void)
{
    gpusim_settings.device_count = (int)setting("GPUMEM_SIM_DEVICES", 1, 0, GPUSIM_MAX_DEVICES);
    gpusim_settings.capacity = gpusim_align_up(
        setting("GPUMEM_SIM_MEMORY", 8ull << 30, 1 << 20, 1ull << 40), GPUSIM_GRANULARITY);
    gpusim_settings.context = setting("GPUMEM_SIM_CONTEXT", 0, 0, gpusim_settings.capacity);
    gpusim_settings.code = setting("GPUMEM_SIM_CODE", 0, 0, gpusim_settings.context);
    gpusim_settings.virtual_above = setting("GPUMEM_SIM_VIRTUAL", 0, 0, 1ull << 40);
    gpusim_settings.kernel_ns = setting("GPUMEM_SIM_KERNEL_NS", 0, 0, 1000000000);
    gpusim_settings.shares_pieces = setting("GPUMEM_SIM_SHARE", 0, 0, 1) != 0;
    gpusim_settings.from_top = setting("GPUMEM_SIM_FROM_TOP", 0, 0, 1) != 0;
    gpusim_settings.late_events = setting("GPUMEM_SIM_LATE_EVENTS", 0, 0, 1) != 0;
    const char *device = getenv("GPUMEM_SIM_DEVICE");
    if (device && !gpusim_profile_read(device))
        complain_of_variable("GPUMEM_SIM_DEVICE", device);
    read_failures();
    read_takes();
    read_error();
    const char *noop = getenv("GPUMEM_SIM_NOOP");
    atomic_store(&gpusim_noop, noop && strcmp(noop, "1") == 0);
}

static int driver_version(void)
{
    return (int)setting("GPUMEM_SIM_DRIVER_VERSION", CUDA_VERSION, 2000, 99990);
}

static void before_fork(void)
{
    gpusim_lock();
}

static void after_fork_in_parent(void)
{
    gpusim_unlock();
}

static void after_fork_in_child(void)
{
    int initialized = INITIALIZED;

    atomic_compare_exchange_strong(&state, &initialized, FORKED);
    gpusim_unlock();
}

__attribute__((constructor)) static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

__attribute__((destructor)) static void finish(void)
{
    gpusim_lock();
    atomic_store(&state, FINISHED);
    gpusim_unlock();
}

/* Like the real driver, the first cuInit loads the tools of CUDA_INJECTION64_PATH. */
static void load_injections(void)
{
    const char *value = getenv("CUDA_INJECTION64_PATH");
    char *paths = value ? strdup(value) : NULL;
    char *rest = NULL;

    if (!paths)
        return;
    for (char *path = strtok_r(paths, ":", &rest); path; path = strtok_r(NULL, ":", &rest)) {
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        int (*initialize)(void);
        void *symbol = library ? dlsym(library, "InitializeInjection") : NULL;

        memcpy(&initialize, &symbol, sizeof(initialize));
        if (initialize)
            initialize();
    }
    free(paths);
}

CUresult cuInit(unsigned int flags)
{
    bool first = false;

    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    gpusim_lock();
    int now = atomic_load(&state);
    if (now == NOT_INITIALIZED) {
        read_state_settings();
        if (gpusim_settings.device_count == 0) {
            gpusim_unlock();
            return CUDA_ERROR_NO_DEVICE;
        }
        gpusim_settings.driver_version = driver_version();
        gpusim_devices_init();
        gpusim_totals_open();
        atomic_store(&state, INITIALIZED);
        first = true;
    }
    gpusim_unlock();
    if (first)
        load_injections();
    return now == FORKED     ? CUDA_ERROR_NOT_INITIALIZED
           : now == FINISHED ? CUDA_ERROR_DEINITIALIZED
                             : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = driver_version(); /* allowed before cuInit */
    return CUDA_SUCCESS;
}

/* Libraries of NVIDIA's that compile ask the driver, too, and go on without an answer: they use no device. */
static bool only_compiles(const char *path)
{
    static const char *const compilers[] = {"libnvrtc", "libnvJitLink", "libnvvm"};
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof(compilers) / sizeof(compilers[0]); i++)
        if (strncmp(base, compilers[i], strlen(compilers[i])) == 0)
            return true;
    return false;
}

/* Only NVIDIA's own libraries ask for private tables: a dry run's launcher learns which one did. */
static void tell_who_asked(const void *caller)
{
    const char *status = getenv("GPUMEM_DRY_STATUS");
    Dl_info info;

    if (!status || !dladdr(caller, &info) || !info.dli_fname || only_compiles(info.dli_fname))
        return;
    int file = open(status, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0)
        return;
    dprintf(file, "static\t%s\tit has NVIDIA's CUDA runtime inside\n", info.dli_fname);
    close(file);
}

/* Private tables are NVIDIA's; a simulated driver has none and claims none. */
CUresult cuGetExportTable(const void **table, const CUuuid *id)
{
    (void)id;
    tell_who_asked(__builtin_return_address(0));
    if (table)
        *table = NULL;
    return CUDA_ERROR_NOT_FOUND;
}
