/* What the program's search order gives without this library. */
#ifndef GPUMEM_PRELOAD_LOADER_NEXT_SYMBOL_H
#define GPUMEM_PRELOAD_LOADER_NEXT_SYMBOL_H

#include "loader/objects.h"

/*
 * The definition that the program's search order gives without this library: the next one after us,
 * or the first of all where we were not preloaded. `version` NULL: any.
 */
void *gm_next_symbol(const char *symbol, const char *version);

/* dlclose as the program would have found it without us: for handles of our own. */
int gm_next_dlclose(void *handle);

/* `symbol` in the search list of a loaded object: itself and what it depends on. */
void *gm_object_search(const struct gm_object *object, const char *symbol, const char *version);

/*
 * Whether the object that `found` stands in defines the symbol there. An undefined symbol of a
 * program that is not position independent has an address too: that of a jump in the program, which
 * can lead to our wrapper.
 */
bool gm_object_is_definition(const void *found, const char *symbol);

#endif
