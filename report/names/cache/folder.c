/* See folder.h. */
#include "names/cache/folder.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
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
