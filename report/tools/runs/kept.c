/* See kept.h. */
#define XXH_INLINE_ALL
#include "tools/runs/kept.h"
#include "base/memory.h"
#include "base/text.h"
#include "names/cache/folder.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

/* Of all folders together; a run has at most half of each. */
static const struct gm_cache_most most = {.bytes = UINT64_C(512) << 20, .files = 256};

enum {
    DIGITS = 16
}; /* a name is the hash of the folder where the run was started, "-", and the trace's own */

static bool is_kept_name(const char *name)
{
    return strspn(name, "0123456789abcdef") == DIGITS && name[DIGITS] == '-' &&
           gm_name_ends_with(name, ".trace");
}

/* The start of the names of this folder's traces. False: it has no path. */
static bool name_here(char name[DIGITS + 2])
{
    char folder[PATH_MAX];
    if (!getcwd(folder, sizeof(folder)))
        return false;
    snprintf(name, DIGITS + 2, "%016" PRIx64 "-", (uint64_t)XXH3_64bits(folder, strlen(folder)));
    return true;
}

/* NULL: there is none, or another user could put something into it. */
static DIR *open_folder(const char *path)
{
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool is_safe = descriptor >= 0 && fstat(descriptor, &status) == 0 &&
                   status.st_uid == geteuid() && !(status.st_mode & (S_IWGRP | S_IWOTH));
    DIR *folder = is_safe ? fdopendir(descriptor) : NULL;
    if (!folder && descriptor >= 0)
        close(descriptor);
    return folder;
}

static bool is_good(int folder, const char *name, struct stat *status)
{
    return is_kept_name(name) && fstatat(folder, name, status, AT_SYMLINK_NOFOLLOW) == 0 &&
           S_ISREG(status->st_mode) && status->st_uid == geteuid();
}

void gm_kept_list(void (*take)(void *context, const char *path), void *context)
{
    char path[PATH_MAX], whole[2 * PATH_MAX], here[DIGITS + 2];
    struct stat status;
    DIR *folder = gm_cache_folder("dry-traces", path) && name_here(here) ? open_folder(path) : NULL;
    int descriptor = folder ? dirfd(folder) : -1;
    for (struct dirent *entry; descriptor >= 0 && (entry = readdir(folder));) {
        if (strncmp(entry->d_name, here, DIGITS + 1) != 0 ||
            !is_good(descriptor, entry->d_name, &status))
            continue;
        snprintf(whole, sizeof(whole), "%s/%s", path, entry->d_name);
        take(context, whole);
    }
    if (folder)
        closedir(folder);
}

/* ---- keeping ----------------------------------------------------------------------------------- */

static void remove_older(DIR *folder, const char *here, struct timespec began)
{
    struct stat status;
    int descriptor = dirfd(folder);
    for (struct dirent *entry; descriptor >= 0 && (entry = readdir(folder));)
        if (strncmp(entry->d_name, here, DIGITS + 1) == 0 &&
            is_good(descriptor, entry->d_name, &status) &&
            (status.st_mtim.tv_sec < began.tv_sec ||
             (status.st_mtim.tv_sec == began.tv_sec && status.st_mtim.tv_nsec < began.tv_nsec)))
            unlinkat(descriptor, entry->d_name, 0);
}

/* Why they cannot be kept. A link leads to where a trace could be written, and where it stays. */
static const char *look_at_traces(char *const *traces, size_t count)
{
    struct stat status;
    uint64_t size = 0;
    for (size_t i = 0; i < count; i++) {
        if (lstat(traces[i], &status) != 0 || !S_ISREG(status.st_mode))
            return "it could only be written elsewhere";
        size += (uint64_t)status.st_size;
    }
    return size > most.bytes / 2 || count > most.files / 2 ? "it is too large" : NULL;
}

/* A file system of its own is usual for folders of temporary files. */
static bool put_file(const char *from, const char *to)
{
    return link(from, to) == 0 || (errno != EEXIST && gm_copy_file(from, to));
}

/* All of them, or none. */
static bool put_all(char **traces, size_t count, const char *path, const char *here)
{
    char **kept = gm_allocate(count + 1, sizeof(*kept));
    size_t done = 0;
    bool is_good = true;
    while (is_good && done < count) {
        const char *slash = strrchr(traces[done], '/'), *name = slash ? slash + 1 : traces[done];
        size_t size = strlen(path) + DIGITS + strlen(name) + 3;
        kept[done] = gm_allocate(size, 1);
        snprintf(kept[done], size, "%s/%s%s", path, here, name);
        is_good = put_file(traces[done], kept[done]);
        done++;
    }
    for (size_t i = 0; i < done; i++) {
        if (!is_good && i + 1 < done)
            unlink(kept[i]);
        free(is_good ? traces[i] : kept[i]);
        traces[i] = is_good ? kept[i] : traces[i];
    }
    free(kept);
    return is_good;
}

const char *gm_kept_replace(char **traces, size_t count, struct timespec began)
{
    char path[PATH_MAX], here[DIGITS + 2];
    if (!gm_cache_folder("dry-traces", path) || !name_here(here))
        return "there is no folder for it";
    DIR *folder = gm_make_cache_folder(path) ? open_folder(path) : NULL;
    if (!folder)
        return "others can write to the cache folder, or you cannot";
    remove_older(folder, here, began);
    closedir(folder);
    const char *why = look_at_traces(traces, count);
    if (why)
        return why;
    if (!put_all(traces, count, path, here))
        return "it cannot be written to the cache folder";
    gm_cache_make_room(path, is_kept_name, most);
    return NULL;
}
