/* The user's folder for what gpumem may make again: $XDG_CACHE_HOME/gpumem, else ~/.cache/gpumem. */
#ifndef GPUMEM_REPORT_CACHE_FOLDER_H
#define GPUMEM_REPORT_CACHE_FOLDER_H

#include <linux/limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The path of the folder `name` in it, which need not be there. False: the user has no such place. */
bool gm_cache_folder(const char *name, char path[PATH_MAX]);

/* Makes a folder with all those above it, for the user alone. False: nothing can be written there. */
bool gm_make_cache_folder(const char *path);

/* What a folder may hold. */
struct gm_cache_most {
    uint64_t bytes;
    size_t files;
};

/* Where there is more: removes what was written longest ago, down to three quarters, so that the next ones need not
 * look for room again. `is_ours`: by its name; the folder can be one that the user chose, with other files in it. */
void gm_cache_make_room(const char *path, bool (*is_ours)(const char *name),
                        struct gm_cache_most most);

/* Copies a file to where nothing is yet, whole or not at all. */
bool gm_copy_file(const char *from_path, const char *to_path);

#endif
