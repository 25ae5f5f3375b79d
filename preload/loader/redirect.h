/*
 * Points the words through which one loaded object calls imported functions elsewhere.
 *
 * A word is replaced by one aligned store: other threads call the one function or the other. A word
 * on a page that the loader made read-only is made writable for that store only. Words that the
 * loader fills later (an object that is being loaded) are not ours to see.
 */
#ifndef GPUMEM_PRELOAD_LOADER_REDIRECT_H
#define GPUMEM_PRELOAD_LOADER_REDIRECT_H

#include <link.h>
#include <stdint.h>

/* What to call instead of the import of that name; 0: it stays as it is. */
typedef uintptr_t gm_replacement(const char *name);

/* The object is loaded and stays so during the call: as inside dl_iterate_phdr. */
void gm_redirect_imports(const struct dl_phdr_info *object, gm_replacement *replacement);

#endif
