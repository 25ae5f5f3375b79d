/* What libdw would open for a module, looked at before it does.
 *
 * A module names further files: one with its debug info (.gnu_debuglink), one that several share
 * (.gnu_debugaltlink), one per source (DW_AT_dwo_name), one with all of those (its own name and
 * ".dwp"). libdw opens whatever lies there. An open of a pipe waits, or wakes its writer, whom its
 * end then kills; an open of a device may set it to work. So we look at every place where libdw
 * (elfutils 0.188 to 0.193) would look, and ask it for nothing where something else than a regular
 * file lies. Whoever replaces a file between the two looks may still have it opened. */
#ifndef GPUMEM_REPORT_SYMBOLS_SYMBOLIZE_SPECIAL_H
#define GPUMEM_REPORT_SYMBOLS_SYMBOLIZE_SPECIAL_H

#include <stdbool.h>

/* Opens a regular file on a disk for reading, -1 if the path leads to anything else. */
int gm_open_regular_file(const char *path);

/* Whether something else than a regular file lies where `name` leads to: itself if it is absolute,
 * else below `folder` (NULL: none) and, if that is relative, below the folder of the file `from`. */
bool gm_is_special_file(const char *from, const char *folder, const char *name);

/* Shows the paths at which libdwfl looks for debug info of the module `file`, in the folders of
 * `debug_path`, which colons separate, until the visitor returns true; returns whether it did. `link`:
 * the name in the module; NULL: it has none. Places by build-id are left out: they are the system's, or
 * the user's who named a sysroot. */
typedef bool (*gm_place_visitor)(void *argument, const char *path);
bool gm_visit_debug_places(const char *debug_path, const char *file, const char *link,
                           gm_place_visitor visit, void *argument);

/* Whether something else than a regular file lies at one of them. */
bool gm_is_special_debug_file(const char *debug_path, const char *file, const char *link);

#endif
