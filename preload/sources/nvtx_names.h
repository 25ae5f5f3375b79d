/*
 * Names that programs registered with NVTX, strings and domains, by the handles they were given.
 *
 * Guarantees: looking a name up takes no lock; registering takes one of its own, holds it for a
 * bounded time and never calls out. Who cannot have it for long, because its holder was interrupted
 * or stayed behind at a fork, goes without a name. No malloc: there is room for 4096 names and 256
 * KiB of them; what does not fit has no name, and is counted. Names survive a fork, as the program's handles do.
 */
#ifndef GPUMEM_PRELOAD_SOURCES_NVTX_NAMES_H
#define GPUMEM_PRELOAD_SOURCES_NVTX_NAMES_H

#include "sources/mark.h"
#include <wchar.h>

#define GM_NVTX_NAME_MAX 1024u /* bytes; longer names are cut */

/* The name of a handle; without bytes if it is not known. */
struct gm_name gm_nvtx_name_of(const void *handle);

/* Keeps a copy of the name for a handle that another tool gave. */
void gm_nvtx_name_set(const void *handle, struct gm_name name);

/* The same, and makes the handle: one that nobody else has, the same for the same name. NULL when
 * there is no room. */
const void *gm_nvtx_name_register(struct gm_name name);

/* A C string, cut to size; NULL is no name. */
struct gm_name gm_nvtx_narrow(const char *text);

/* A wide string as UTF-8 in `buffer`; what is no character becomes U+FFFD. */
struct gm_name gm_nvtx_wide(const wchar_t *text, char buffer[GM_NVTX_NAME_MAX]);

/* Tells the trace of this process how many names had no room. To be called when it begins; from then
 * on whoever has no room calls it. */
void gm_nvtx_names_tell(void);

/* In a child: who held the lock may not be there. Names stay, handles of the program's mean them.
 */
void gm_nvtx_names_forget(void);

#endif
