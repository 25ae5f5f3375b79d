/*
 * The dry run's redirection: an LD_AUDIT library that maps our libraries where the program, or the
 * dynamic linker on its behalf, asks for NVIDIA's.
 *
 * Python wheels of CUDA name their libraries by DT_RPATH and by full paths, which neither
 * LD_LIBRARY_PATH nor LD_PRELOAD overrules; the auditing interface of the dynamic linker
 * (rtld-audit(7)) sees every search. The driver, the runtime and NVML are replaced by the simulated
 * ones that came with gpumem. For a math library a stand-in is built from the one that is installed,
 * at the first search for it (stub_library.py), and kept in a cache.
 *
 * What must be replaced and cannot be is told in the status file, and the process ends: NVIDIA's
 * library does not work on the simulated driver and is not to try.
 *
 * Relies on its environment, which `gpumem dry-run` sets:
 *   GPUMEM_DRY_LIBRARIES  folder of the simulated libraries and of stub_library.py
 *   GPUMEM_DRY_CACHE      folder of the stand-ins
 *   GPUMEM_DRY_STATUS     file that tells the launcher what happened
 *   GPUMEM_DRY_STAMP      what stands for the generator in the names of stand-ins
 *   GPUMEM_DRY_PYTHON     the interpreter of the generator
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
enum { REFUSED = 125, LONGEST_NAME = 255 };

EXPORTED unsigned int la_version(unsigned int version);
EXPORTED char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag);
EXPORTED unsigned int la_objopen(struct link_map *map, Lmid_t list, uintptr_t *cookie);

/* Families of libraries that compute or ask a device; a name may go on after "_" (libcudnn_cnn). */
static const char *const families[] = {
    "cublasLt", "cublas", "nvblas", "cudnn", "cusparseLt",   "cusparse", "cusolverMg", "cusolver",
    "cufft",    "cufftw", "curand", "nccl",  "nvshmem_host", "cupti",    "cufile",     "nvJitLink"};

/* ---- the environment ------------------------------------------------------------------------------- */

/*
 * As it was when the process began, in memory of our own: the C library of this namespace keeps the list that the process
 * was started with, which the host clears in place (unsetenv) or writes a title over (setproctitle) while its own C library
 * has everything in another list.
 */
static char **environment;

static void keep_environment(void)
{
    size_t count = 0;
    while (environ[count])
        count++;
    environment = calloc(count + 1, sizeof(*environment));
    for (size_t i = 0; environment && i < count; i++)
        environment[i] = strdup(environ[i]);
}

/* A variable's value, or NULL. */
static const char *environment_value(const char *name)
{
    size_t length = strlen(name);
    for (char **at = environment; at && *at; at++)
        if (strncmp(*at, name, length) == 0 && (*at)[length] == '=')
            return *at + length + 1;
    return NULL;
}

/* ---- telling the launcher ------------------------------------------------------------------------ */

static void tell_refusal(const char *what, const char *path, const char *why)
{
    const char *status = environment_value("GPUMEM_DRY_STATUS");
    char line[PATH_MAX + 256];
    int length = snprintf(line, sizeof(line), "%s\t%s\t%s\n", what, path, why);
    int file = status ? open(status, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file < 0)
        return;
    if (length > 0 && (size_t)length < sizeof(line)) {
        ssize_t written = write(file, line, (size_t)length);
        (void)written;
    }
    close(file);
}

__attribute__((noreturn)) static void refuse(const char *path, const char *why)
{
    tell_refusal("refused", path, why);
    _exit(REFUSED);
}

/* ---- which library a name means --------------------------------------------------------------------- */

static const char *base_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* Whether a file name is "lib" WORD ".so...", or with "-<hash>" or ".<hash>" before that, as wheels bundle it. */
static bool is_library(const char *base, const char *word, bool with_parts)
{
    size_t length = strlen(word);
    if (strncmp(base, "lib", 3) != 0 || strncmp(base + 3, word, length) != 0)
        return false;
    const char *rest = base + 3 + length;
    if (*rest == '-' || *rest == '.' || (with_parts && *rest == '_'))
        rest = strstr(rest, ".so");
    return rest && strncmp(rest, ".so", 3) == 0;
}

static bool is_math(const char *base)
{
    for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
        if (is_library(base, families[i], true))
            return true;
    return false;
}

/* The simulated library that stands for a name, or NULL. `version` is what follows ".so.". */
static const char *simulated_name(const char *base, char out[LONGEST_NAME])
{
    const char *suffix = strstr(base, ".so.");
    if (is_library(base, "cuda", false))
        return "libcuda.so.1";
    if (is_library(base, "nvidia-ml", false))
        return "libnvidia-ml.so.1";
    if (!is_library(base, "cudart", false))
        return NULL;
    /* libcudart.so without a version: the newest. */
    int major = suffix ? atoi(suffix + 4) : 13;
    snprintf(out, LONGEST_NAME, "libcudart.so.%d", major);
    return out;
}

/* A runtime of a wheel's own beside the one that others use, as torchvision bundles it: it gets a copy of its own, because
 * the dynamic linker knows one file by one name, and finds no versions under another. */
static bool is_bundled_runtime(const char *base)
{
    static const char plain[] = "libcudart.so";
    return is_library(base, "cudart", false) && strncmp(base, plain, sizeof(plain) - 1) != 0;
}

/* ---- stand-ins --------------------------------------------------------------------------------------- */

/* Names a stand-in's folder by all that it is made of: the original as it is now, and the generator. The file keeps its
 * name, by which programs look for a library among their mappings. */
static bool stand_in_path(const char *original, char path[PATH_MAX])
{
    const char *cache = environment_value("GPUMEM_DRY_CACHE"),
               *stamp = environment_value("GPUMEM_DRY_STAMP");
    char real[PATH_MAX], text[2 * PATH_MAX];
    struct stat status;
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    if (!cache || !realpath(original, real) || stat(real, &status) != 0)
        return false;
    snprintf(text, sizeof(text), "%s %lld %lld.%09ld %s", real, (long long)status.st_size,
             (long long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec, stamp ? stamp : "");
    for (const char *c = text; *c; c++)
        hash = (hash ^ (unsigned char)*c) * UINT64_C(1099511628211);
    int length = snprintf(path, PATH_MAX, "%s/%016llx/%s", cache, (unsigned long long)hash,
                          base_of(original));
    return length > 0 && length < PATH_MAX;
}

/* The generator must run on the genuine libraries, and unobserved. */
static char **environment_of_generator(void)
{
    static char *kept[512];
    size_t count = 0;
    for (char **at = environment; at && *at && count + 1 < sizeof(kept) / sizeof(kept[0]); at++)
        if (strncmp(*at, "LD_AUDIT=", 9) != 0 && strncmp(*at, "LD_PRELOAD=", 11) != 0 &&
            strncmp(*at, "PYTHON", 6) != 0)
            kept[count++] = *at;
    kept[count] = NULL;
    return kept;
}

static void build(const char *original, const char *output)
{
    const char *folder = environment_value("GPUMEM_DRY_LIBRARIES"),
               *python = environment_value("GPUMEM_DRY_PYTHON");
    char script[PATH_MAX];
    pid_t child;
    int status = -1;
    snprintf(script, sizeof(script), "%s/stub_library.py", folder ? folder : ".");
    char *arguments[] = {(char *)(uintptr_t)(python ? python : "python3"),
                         "-I",
                         script,
                         (char *)(uintptr_t)original,
                         (char *)(uintptr_t)output,
                         NULL};
    if (posix_spawnp(&child, arguments[0], NULL, NULL, arguments, environment_of_generator()) != 0)
        refuse(original, "python3 is needed once, to build its stand-in, and cannot be run");
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    /* Where the host reaps all children, the file tells. */
    if (access(output, R_OK) != 0)
        refuse(original, "its stand-in could not be built (is a C compiler installed?)");
}

/* ---- the auditing interface ---------------------------------------------------------------------------- */

unsigned int la_version(unsigned int version)
{
    (void)version;
    keep_environment();
    return LAV_CURRENT;
}

static bool is_ours_file(const char *path)
{
    const char *folders[] = {environment_value("GPUMEM_DRY_LIBRARIES"),
                             environment_value("GPUMEM_DRY_CACHE")};
    for (size_t i = 0; i < 2; i++)
        if (folders[i] && strncmp(path, folders[i], strlen(folders[i])) == 0 &&
            path[strlen(folders[i])] == '/')
            return true;
    return false;
}

/* Kept for the life of the process: the dynamic linker keeps the pointer. */
static char *replaced(const char *name)
{
    const char *base = base_of(name), *folder = environment_value("GPUMEM_DRY_LIBRARIES");
    char simulated[LONGEST_NAME], path[PATH_MAX];
    const char *other = simulated_name(base, simulated);
    if (!folder || is_ours_file(name))
        return NULL;
    snprintf(path, sizeof(path), "%s/%s", folder, other ? other : "");
    if (other && access(path, R_OK) != 0)
        refuse(name, "there is no simulated runtime of this version");
    if (other && !is_bundled_runtime(base))
        return strdup(path);
    if (!strchr(name, '/') || !(other || is_math(base)) || access(name, R_OK) != 0)
        return NULL; /* the search goes on, or the file is not there */
    if (!stand_in_path(name, path))
        refuse(name, "its stand-in has no place to be kept");
    if (access(path, R_OK) != 0)
        build(name, path);
    return strdup(path);
}

char *la_objsearch(const char *name, uintptr_t *cookie, unsigned int flag)
{
    (void)cookie;
    (void)flag;
    char *other = replaced(name);
    return other ? other : (char *)(uintptr_t)name;
}

/* The file that an address is mapped from. After a search through a list of folders the dynamic
 * linker names an object by the path that it tried, not by the one it was given instead. */
static bool mapped_file(uintptr_t address, char path[PATH_MAX])
{
    char line[PATH_MAX + 128];
    FILE *maps = fopen("/proc/self/maps", "re");
    bool found = false;
    while (maps && !found && fgets(line, sizeof(line), maps)) {
        uintptr_t start, end;
        int at = 0;
        if (sscanf(line, "%lx-%lx %*s %*s %*s %*s %n", &start, &end, &at) < 2 || !at ||
            address < start || address >= end)
            continue;
        line[strcspn(line, "\n")] = 0;
        snprintf(path, PATH_MAX, "%s", line + at);
        found = true;
    }
    if (maps)
        fclose(maps);
    return found;
}

/* Whether an object is one of ours, also where a link leads to it. */
static bool is_from_us(const struct link_map *map)
{
    char path[PATH_MAX], library[PATH_MAX], real[PATH_MAX], simulated[LONGEST_NAME];
    const char *folder = environment_value("GPUMEM_DRY_LIBRARIES");
    if (!mapped_file((uintptr_t)map->l_ld, path))
        return false;
    if (is_ours_file(path))
        return true;
    const char *other = simulated_name(base_of(map->l_name), simulated);
    snprintf(library, sizeof(library), "%s/%s", folder ? folder : "", other ? other : "");
    return other && realpath(library, real) && strcmp(real, path) == 0;
}

unsigned int la_objopen(struct link_map *map, Lmid_t list, uintptr_t *cookie)
{
    (void)list;
    (void)cookie;
    char simulated[LONGEST_NAME];
    const char *path = map->l_name, *base = base_of(path);
    if (*path && (is_math(base) || simulated_name(base, simulated)) && !is_from_us(map))
        refuse(path, "it was mapped although it is to be replaced");
    return 0; /* no bindings are audited */
}
