/* The user's folder for what gpumem may make again: $XDG_CACHE_HOME/gpumem, else ~/.cache/gpumem. */
#ifndef GPUMEM_REPORT_CACHE_FOLDER_H
#define GPUMEM_REPORT_CACHE_FOLDER_H

#include <linux/limits.h>
#include <stdbool.h>

/* The path of the folder `name` in it, which need not be there. False: the user has no such place. */
bool gm_cache_folder(const char *name, char path[PATH_MAX]);

/* Makes a folder with all those above it, for the user alone. False: nothing can be written there. */
bool gm_make_cache_folder(const char *path);

#endif
