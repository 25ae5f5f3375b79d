/*
 * What the loader's own tables say of loaded objects: read-only, no lock, no allocation.
 */
#ifndef GPUMEM_PRELOAD_LOADER_OBJECTS_H
#define GPUMEM_PRELOAD_LOADER_OBJECTS_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* A loaded object: the program, a shared library. Its addresses are [start, end). */
struct gm_object {
    struct link_map *map;
    uintptr_t start;
    uintptr_t end;
};

/* The object that holds `address`; false for code that no object holds (generated code). */
bool gm_object_of(const void *address, struct gm_object *object);

/*
 * The object that dl_iterate_phdr tells of, with `map` holding what reading its tables takes: the
 * loader's own map is not at hand there. False for this library, and for an object without tables.
 */
bool gm_object_told(const struct dl_phdr_info *info, struct link_map *map,
                    struct gm_object *object);

/*
 * Remembers which objects the process was started with; called once, from our constructor. They
 * stay, so what was found in them then holds, and needs no loader any more.
 */
void gm_objects_note_start(void);

/* Whether the object is one of them; false for all where we were not preloaded. No lock. */
bool gm_object_is_of_start(const struct gm_object *object);

/* Whether any object was opened since (or may have been, where we were not preloaded). No lock. */
bool gm_objects_came_since_start(void);

/* Whether both addresses stand in one object. */
bool gm_object_same(const void *one, const void *other);

/*
 * Whether the object comes before this library in the program's search order: the program itself
 * and libraries preloaded before us. Their functions reach ours by RTLD_NEXT, so they must never
 * become what ours forward to. Nothing comes before us when we were not preloaded.
 */
bool gm_object_precedes_us(const struct gm_object *object);

/* Whether this library was loaded before libc: by LD_PRELOAD, not by a later dlopen. */
bool gm_is_preloaded(void);

/* Address of a function that the object itself defines and exports; NULL if it does not. */
void *gm_object_function(const struct gm_object *object, const char *symbol);

/* Whether it defines and exports the symbol, be that a function or a variable. */
bool gm_object_defines(const struct gm_object *object, const char *symbol);

/*
 * The definitions of a function among the objects of our namespace, this library left out. The
 * loader's big lock, held while constructors run, is not taken: threads may ask that a constructor
 * waits for.
 */
struct gm_definitions {
    const char *symbol;
    uint32_t count;
    void *first;
};

struct gm_definitions gm_object_definitions(const char *symbol);

static inline bool gm_object_any_defines(const char *symbol)
{
    return gm_object_definitions(symbol).count > 0;
}

/* Visits the names of functions that the object needs of others. */
void gm_object_each_needed(const struct gm_object *object,
                           void (*visit)(const char *name, void *data), void *data);

/* Whether the object defines symbol versions. */
bool gm_object_is_versioned(const struct gm_object *object);

/* One relocation that refers to a symbol by name. */
struct gm_import {
    const char *name;
    uint32_t index;  /* of the symbol */
    uint32_t type;   /* of the relocation */
    uintptr_t *slot; /* the word that the loader filled */
};

/* Visits them until the visitor returns false. Returns false if it did. */
bool gm_object_each_import(const struct gm_object *object,
                           bool (*visit)(const struct gm_import *import, void *data), void *data);

/*
 * Whether the object refers to `symbol` by name, that is, can call it without looking it up.
 * `version` becomes the version it was linked with, NULL if none.
 */
bool gm_object_imports(const struct gm_object *object, const char *symbol, const char **version);

#endif
