/* See launch.h. */
#include "tools/dryrun/launch.h"
#include "base/complain.h"
#include "base/memory.h"
#include "base/text.h"
#include "names/cache/folder.h"
#include "version.h"
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Of a context, what comes as kernels are launched. vLLM's lines of 2025 and 2026 name what their first pass took beside PyTorch's
 * memory ("non-torch memory"): 70 MiB on an H100, 100 MiB on an RTX 4090, up to 260 MiB with more libraries. */
#define CODE_OF_KERNELS (100 * GM_MIB)

bool gm_dry_launch_find(struct gm_dry_launch *launch)
{
    static const char *const places[] = {GPUMEM_DRY_RUN_INSTALLED, "../libexec/gpumem/dry-run",
                                         "../dry-run"};
    char folder[PATH_MAX], candidate[2 * PATH_MAX], driver[PATH_MAX + 32];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    if (length <= 0) {
        gm_complain("cannot find my own executable: %s", strerror(errno));
        return false;
    }
    folder[length] = 0;
    *strrchr(folder, '/') = 0;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(candidate, sizeof(candidate), "%s/%s", folder, places[i]);
        if (!realpath(candidate, launch->libraries))
            continue;
        snprintf(driver, sizeof(driver), "%s/libcuda.so.1", launch->libraries);
        if (access(driver, R_OK) == 0)
            return true;
    }
    gm_complain("the simulated GPU is not installed with this gpumem: no gpumem/dry-run near %s "
                "(build it with GPUMEM_TESTS=ON)",
                folder);
    return false;
}

/* ---- caches ------------------------------------------------------------------------------------------ */

/* A folder that outlives this run, else the scratch folder. */
static void find_cache(const char *name, char path[PATH_MAX], const char *scratch)
{
    if (!gm_cache_folder(name, path) || !gm_make_cache_folder(path))
        snprintf(path, PATH_MAX, "%s", scratch);
}

/* What the command compiles stays away from the user's caches: autotuning chose it by times of a simulation, and vLLM keeps
 * beside it what it measured of the device. `gpumem fit --serve` names a folder of its own. */
static void set_caches(const char *scratch)
{
    static const struct {
        const char *variable, *folder;
    } caches[] = {{"TORCHINDUCTOR_CACHE_DIR", "inductor"},
                  {"TRITON_CACHE_DIR", "triton"},
                  {"TILELANG_CACHE_DIR", "tilelang"},
                  {"VLLM_CACHE_ROOT", "vllm"},
                  {"SGLANG_CACHE_DIR", "sglang"},
                  {"FLASHINFER_AUTOTUNE_CACHE_DIR", "flashinfer"},
                  {"FLASHINFER_AUTOTUNE_DIR", "flashinfer-times"},
                  {"QUACK_CACHE_DIR", "quack"}};
    const char *given = getenv("GPUMEM_DRY_CACHES");
    char root[PATH_MAX], path[PATH_MAX + 16];

    if (given && *given)
        snprintf(root, sizeof(root), "%s", given);
    else
        find_cache("dry-compiled", root, scratch);
    for (size_t i = 0; i < sizeof(caches) / sizeof(caches[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", root, caches[i].folder);
        setenv(caches[i].variable, path, 1);
    }
    setenv("JAX_ENABLE_COMPILATION_CACHE", "false", 1); /* its folder may be set in the program */
}

static void add_time(uint64_t *stamp, const char *path)
{
    struct stat status;
    if (stat(path, &status) == 0)
        *stamp = *stamp * 31 + (uint64_t)status.st_mtim.tv_sec * 1000000007u +
                 (uint64_t)status.st_mtim.tv_nsec + (uint64_t)status.st_size;
}

static int by_folder_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

/* Changes with each part of the generator, so that a stand-in of another version is not used. */
static uint64_t stamp_of_generator(const char *libraries)
{
    char path[2 * PATH_MAX];
    uint64_t stamp = 0;
    struct dirent **entries = NULL;
    snprintf(path, sizeof(path), "%s/stub_library.py", libraries);
    add_time(&stamp, path);
    snprintf(path, sizeof(path), "%s/answers", libraries);
    int count = scandir(path, &entries, NULL, by_folder_name);
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof(path), "%s/answers/%s", libraries, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            add_time(&stamp, path);
        free(entries[i]);
    }
    free(entries);
    return stamp;
}

/* ---- the environment --------------------------------------------------------------------------------- */

static void set_number(const char *name, uint64_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%" PRIu64, value);
    setenv(name, text, 1);
}

/* Ours before what is there. */
static bool put_first(const char *variable, const char *folder, const char *name)
{
    const char *before = getenv(variable);
    char path[PATH_MAX + 64];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    if (access(path, R_OK) != 0) {
        gm_complain("%s: %s", path, strerror(errno));
        return false;
    }
    if (strpbrk(path, ": ")) {
        gm_complain("%s: %s cannot name a path with a colon or a blank", path, variable);
        return false;
    }
    if (before && strstr(before, path))
        return true;
    size_t size = strlen(path) + (before ? strlen(before) : 0) + 2;
    char *list = gm_allocate(size, 1);
    snprintf(list, size, "%s%s%s", path, before && *before ? ":" : "", before ? before : "");
    setenv(variable, list, 1);
    free(list);
    return true;
}

bool gm_dry_launch_set(struct gm_dry_launch *launch, const struct gm_dry_settings *settings,
                       const char *scratch)
{
    const struct gm_dry_device *device = settings->device;
    char cache[PATH_MAX], text[512];
    size_t used;
    find_cache("dry-run", cache, scratch);
    set_caches(scratch);
    snprintf(launch->status, sizeof(launch->status), "%s/status", scratch);
    used = (size_t)snprintf(text, sizeof(text), "cc=%s,sms=%u", device->cc, device->sms);
    if (device->kernels)
        used += (size_t)snprintf(text + used, sizeof(text) - used, ",kernels=%u", device->kernels);
    snprintf(text + used, sizeof(text) - used, ",name=%s", device->name);
    setenv("GPUMEM_SIM_DEVICE", text, 1);
    set_number("GPUMEM_SIM_MEMORY", settings->memory);
    set_number("GPUMEM_SIM_CONTEXT", device->context);
    set_number("GPUMEM_SIM_CODE",
               device->context < CODE_OF_KERNELS ? device->context : CODE_OF_KERNELS);
    set_number("GPUMEM_SIM_DEVICES", settings->devices);
    setenv("GPUMEM_SIM_VIRTUAL", "1M", 1);
    setenv("GPUMEM_SIM_KERNEL_NS", "20000", 1);
    set_number("GPUMEM_SIM_FROM_TOP", settings->from_top);
    set_number("GPUMEM_SIM_LATE_EVENTS", settings->late_events);
    /* Triton looks for the driver by itself, in the list of the system's libraries. */
    setenv("TRITON_LIBCUDA_PATH", launch->libraries, 0);
    /* JAX would take three quarters of the device, whatever it needs. Where the need is asked for, it must not. */
    setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false", settings->memory == GM_DRY_MEMORY_MOST);
    /* The seconds that PyTorch waits at its end for threads of autograd; one of them may hang: sim/dry/fresh.c. */
    setenv("TORCH_AUTOGRAD_SHUTDOWN_WAIT_LIMIT", "0.1", 0);
    setenv("GPUMEM_DRY_CUDNN", settings->cudnn, 1);
    set_number("GPUMEM_DRY_NCCL", device->nccl);
    set_number("GPUMEM_DRY_NCCL_RANK", device->nccl_rank);
    setenv("GPUMEM_DRY_LIBRARIES", launch->libraries, 1);
    setenv("GPUMEM_DRY_CACHE", cache, 1);
    setenv("GPUMEM_DRY_STATUS", launch->status, 1);
    set_number("GPUMEM_DRY_STAMP", stamp_of_generator(launch->libraries));
    if (!put_first("PYTHONPATH", launch->libraries, "python"))
        return false;
    set_number("GPUMEM_DRY_MAX_STEPS", settings->max_steps);
    setenv("GPUMEM_DRY_STEADY", settings->ends_steady ? "1" : "0", 1);
    setenv("GPUMEM_DRY_VALUES", settings->values ? "1" : "0", 1);
    setenv("GPUMEM_DRY_ROWS", settings->rows ? "1" : "0", 1);
    unlink(launch->status);
    return put_first("LD_AUDIT", launch->libraries, "libgpumem-audit.so") &&
           put_first("LD_PRELOAD", launch->libraries, "libgpumem-fresh.so");
}

/* ---- what was told ------------------------------------------------------------------------------------- */

/* A place, the first that is told: `rest` is its line and its file, and may go on. False: it is another, or none. */
static bool read_place(struct gm_dry_line *place, const char *count, char **rest)
{
    const char *line = strsep(rest, "\t"), *file = strsep(rest, "\t");
    if (place->count || !line || !file)
        return false;
    place->count = strtoull(count, NULL, 10);
    place->line = (unsigned)strtoul(line, NULL, 10);
    snprintf(place->file, sizeof(place->file), "%s", file);
    gm_clean_text(place->file);
    return true;
}

/* What sim/dry/python tells. False: it is not from there. */
static bool read_of_python(struct gm_dry_told *told, const char *what, const char *first,
                           char *rest)
{
    if (strcmp(what, "stopped") == 0) {
        told->steps = (unsigned)strtoul(first, NULL, 10);
    } else if (strcmp(what, "printed") == 0) {
        if (told->printed_count < GM_DRY_LINES &&
            read_place(&told->printed[told->printed_count], first, &rest))
            told->printed_count++;
    } else if (strcmp(what, "values-ended") == 0) {
        told->values_ended = true;
    } else if (strcmp(what, "rows") == 0) {
        told->chose_all |= strcmp(rest, "all") == 0;
        told->numbers_differ |= strcmp(rest, "differ") == 0;
    } else if (strcmp(what, "decides") == 0) {
        told->loop_decides = true;
    } else if (strcmp(what, "endless") == 0) {
        if (read_place(&told->endless, first, &rest) && rest) {
            told->has_no_exit = strcmp(strsep(&rest, "\t"), "no-exit") == 0;
            told->grows = rest && strcmp(rest, "grows") == 0;
        }
    } else if (strcmp(what, "raised") == 0) {
        if (read_place(&told->raised, first, &rest) && rest)
            snprintf(told->exception, sizeof(told->exception), "%s", rest);
    } else if (strcmp(what, "without-cuda") == 0) {
        if (rest)
            snprintf(told->without_cuda, sizeof(told->without_cuda),
                     "%.200s in %.700s is built without CUDA, so that it cannot use a GPU", rest,
                     first);
    } else {
        return false;
    }
    return true;
}

/* Each process tells of its own; the devices are alike. */
static void note_nccl(struct gm_dry_told *told, uint64_t bytes)
{
    told->nccl = bytes > told->nccl ? bytes : told->nccl;
}

void gm_dry_launch_told(const struct gm_dry_launch *launch, struct gm_dry_told *told)
{
    char line[PATH_MAX + 512];
    FILE *file = fopen(launch->status, "re");
    *told = (struct gm_dry_told){0};
    while (file && fgets(line, sizeof(line), file)) {
        char *rest = line, *what = strsep(&rest, "\t"), *path = strsep(&rest, "\t");
        char *why = strsep(&rest, "\n");
        if (strcmp(what, "cudnn\n") == 0 || strcmp(what, "cudnn") == 0)
            told->has_convolutions = true;
        else if (strcmp(what, "nccl") == 0 && path)
            note_nccl(told, strtoull(path, NULL, 10));
        else if (path && why && !read_of_python(told, what, path, why) && !told->refused[0])
            snprintf(told->refused, sizeof(told->refused), "%.700s: %.300s", path, why);
    }
    gm_clean_text(told->refused);
    gm_clean_text(told->exception);
    gm_clean_text(told->without_cuda);
    if (file)
        fclose(file);
}
