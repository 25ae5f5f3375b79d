/* See kept.h. */
#define XXH_INLINE_ALL
#include "commands/ask/kept.h"
#include "base/memory.h"
#include "names/cache/folder.h"
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <xxhash.h>

#define SLOTS 256u
#define SECONDS 3600
#define SIZE_MAX_OF_FILE (4u << 20)

bool gm_kept_add_file(FILE *out, const char *path)
{
    struct stat file;
    char whole[PATH_MAX];
    if (stat(path, &file) != 0 || !S_ISREG(file.st_mode) || !realpath(path, whole))
        return false;
    fprintf(out, "%s %ju %ju %jd %jd.%09ld %jd.%09ld\n", whole, (uintmax_t)file.st_dev,
            (uintmax_t)file.st_ino, (intmax_t)file.st_size, (intmax_t)file.st_mtim.tv_sec,
            file.st_mtim.tv_nsec, (intmax_t)file.st_ctim.tv_sec, file.st_ctim.tv_nsec);
    return true;
}

/* The file in which an answer of that identity stands, if any does. */
static bool find_slot(const char *identity, char path[PATH_MAX], char folder[PATH_MAX])
{
    unsigned slot = (unsigned)(XXH64(identity, strlen(identity), 0) % SLOTS);
    if (!gm_cache_folder("ask", folder))
        return false;
    int length = snprintf(path, PATH_MAX, "%s/%02x", folder, slot);
    return length > 0 && length < PATH_MAX - 16;
}

/* All of a file, with a NUL behind it; NULL: it is not there, or none of ours that is young enough. */
static char *read_kept_file(const char *path, size_t *size)
{
    struct stat file;
    char *text = NULL;
    int opened = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (opened < 0)
        return NULL;
    /* not time(): Linux (multigrain timestamps, since 6.13) stamps files by a clock up to a tick ahead of it */
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (fstat(opened, &file) == 0 && S_ISREG(file.st_mode) && file.st_uid == geteuid() &&
        file.st_size <= SIZE_MAX_OF_FILE && file.st_mtime <= now.tv_sec &&
        now.tv_sec - file.st_mtime < SECONDS) {
        text = gm_allocate((size_t)file.st_size + 1, 1);
        *size = (size_t)file.st_size;
        if (read(opened, text, *size) != (ssize_t)*size) {
            free(text);
            text = NULL;
        }
    }
    close(opened);
    return text;
}

/* A file has the size of the identity, the identity, and the answer. */
char *gm_kept_find(const char *identity, size_t *size)
{
    char path[PATH_MAX], folder[PATH_MAX], head[32];
    size_t whole;
    char *text = find_slot(identity, path, folder) ? read_kept_file(path, &whole) : NULL;
    if (!text)
        return NULL;
    size_t identity_size = strlen(identity);
    size_t head_size = (size_t)snprintf(head, sizeof(head), "%zu\n", identity_size);
    bool is_it = whole > head_size + identity_size && memcmp(text, head, head_size) == 0 &&
                 memcmp(text + head_size, identity, identity_size) == 0;
    if (!is_it) {
        free(text);
        return NULL;
    }
    *size = whole - head_size - identity_size;
    memmove(text, text + head_size + identity_size, *size + 1);
    return text;
}

void gm_kept_keep(const char *identity, const char *answer, size_t size)
{
    char path[PATH_MAX], folder[PATH_MAX], made[PATH_MAX];
    if (!find_slot(identity, path, folder) || !gm_make_cache_folder(folder))
        return;
    snprintf(made, sizeof(made), "%.*s.XXXXXX", PATH_MAX - 16, path);
    int opened = mkostemp(made, O_CLOEXEC);
    FILE *file = opened < 0 ? NULL : fdopen(opened, "w");
    if (!file)
        return;
    fprintf(file, "%zu\n%s", strlen(identity), identity);
    fwrite(answer, 1, size, file);
    bool is_written = !ferror(file);
    if (fclose(file) != 0 || !is_written || rename(made, path) != 0)
        unlink(made);
}
