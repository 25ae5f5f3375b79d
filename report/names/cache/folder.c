/* See folder.h. */
#include "names/cache/folder.h"
#include "base/memory.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

bool gm_cache_folder(const char *name, char path[PATH_MAX])
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int length = -1;
    if (cache && *cache == '/')
        length = snprintf(path, PATH_MAX, "%s/gpumem/%s", cache, name);
    else if (home && *home == '/')
        length = snprintf(path, PATH_MAX, "%s/.cache/gpumem/%s", home, name);
    return length > 0 && length < PATH_MAX;
}

bool gm_make_cache_folder(const char *path)
{
    char part[PATH_MAX];
    for (size_t at = 0; at < PATH_MAX - 1; at++) {
        part[at] = path[at];
        part[at + 1] = 0;
        bool ends = !path[at + 1] || path[at + 1] == '/';
        if (ends && part[at] != '/' && mkdir(part, 0700) != 0 && errno != EEXIST && !path[at + 1])
            return false;
        if (!path[at + 1])
            return access(path, W_OK | X_OK) == 0;
    }
    return false;
}

/* ---- files -------------------------------------------------------------------------------------- */

static bool copy_bytes(int from, int to)
{
    ssize_t sent;
    do
        sent = sendfile(to, from, NULL, 1 << 20);
    while (sent > 0);
    return sent == 0 && fsync(to) == 0;
}

bool gm_copy_file(const char *from_path, const char *to_path)
{
    int from = open(from_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int to = open(to_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    bool good = from >= 0 && to >= 0 && copy_bytes(from, to);
    if (from >= 0)
        close(from);
    if (to >= 0 && close(to) != 0)
        good = false;
    if (to >= 0 && !good)
        unlink(to_path);
    return good;
}

/* ---- room ---------------------------------------------------------------------------------------- */

struct old_file {
    char name[NAME_MAX + 1];
    uint64_t size;
    struct timespec written;
};

static int oldest_first(const void *a, const void *b)
{
    const struct timespec *one = &((const struct old_file *)a)->written;
    const struct timespec *other = &((const struct old_file *)b)->written;
    if (one->tv_sec != other->tv_sec)
        return one->tv_sec < other->tv_sec ? -1 : 1;
    return (one->tv_nsec > other->tv_nsec) - (one->tv_nsec < other->tv_nsec);
}

static struct old_file *list_files(DIR *folder, int descriptor, bool (*is_ours)(const char *name),
                                   size_t *count, uint64_t *size)
{
    struct old_file *files = NULL;
    size_t capacity = 0;
    struct stat status;
    for (struct dirent *entry; (entry = readdir(folder));) {
        if (!is_ours(entry->d_name) ||
            fstatat(descriptor, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
            !S_ISREG(status.st_mode))
            continue;
        GM_RESERVE(files, capacity, *count + 1);
        struct old_file *file = &files[(*count)++];
        snprintf(file->name, sizeof(file->name), "%s", entry->d_name);
        file->size = (uint64_t)status.st_size;
        file->written = status.st_mtim;
        *size += file->size;
    }
    return files;
}

void gm_cache_make_room(const char *path, bool (*is_ours)(const char *name),
                        struct gm_cache_most most)
{
    size_t count = 0;
    uint64_t size = 0;
    DIR *folder = opendir(path);
    int descriptor = folder ? dirfd(folder) : -1;
    if (descriptor < 0)
        return;
    struct old_file *files = list_files(folder, descriptor, is_ours, &count, &size);
    size_t left = count;
    if (size > most.bytes || count > most.files) {
        qsort(files, count, sizeof(*files), oldest_first);
        for (size_t i = 0; i < count && (size > most.bytes / 4 * 3 || left > most.files / 4 * 3);
             i++)
            if (unlinkat(descriptor, files[i].name, 0) == 0) {
                size -= files[i].size;
                left--;
            }
    }
    free(files);
    closedir(folder);
}
