/* See trace_home.h. */
#include "tools/runs/trace_home.h"
#include "base/memory.h"
#include "base/process_alive.h"
#include "names/cache/folder.h"
#include "tools/runs/runs.h"
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool gm_is_link(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
}

static bool is_finished(const char *path)
{
    struct gm_trace_header header;
    return gm_run_read_header(AT_FDCWD, path, &header) && (header.flags & GM_HEADER_ELSEWHERE) &&
           (header.end == GM_END_EXEC || !gm_process_alive(&header));
}

void gm_bring_home(const char *path)
{
    char target[PATH_MAX];
    if (!gm_is_link(path) || !realpath(path, target) || !is_finished(target))
        return;
    size_t size = strlen(path) + sizeof(".part");
    char *copy = gm_allocate(size, 1);
    snprintf(copy, size, "%s.part", path);
    if (gm_copy_file(target, copy)) {
        if (rename(copy, path) == 0)
            unlink(target);
        else
            unlink(copy);
    }
    free(copy);
}

void gm_remove_trace(const char *path)
{
    char target[PATH_MAX];
    if (gm_is_link(path) && realpath(path, target))
        unlink(target);
    unlink(path);
}
