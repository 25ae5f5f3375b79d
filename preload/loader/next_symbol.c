/* See next_symbol.h. */
#define _GNU_SOURCE
#include "loader/next_symbol.h"
#include "base/platform.h"
#include "loader/libc_dlsym.h"
#include <dlfcn.h>
#include <stdatomic.h>

bool gm_object_is_definition(const void *found, const char *symbol)
{
    struct gm_object object;
    return gm_object_of(found, &object) && gm_object_function(&object, symbol) == found;
}

static void *find_first(const char *symbol, const char *version)
{
    void *program = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
    void *found = program != NULL ? gm_real_dlvsym(program, symbol, version) : NULL;
    return found != NULL && gm_object_is_definition(found, symbol) ? found : NULL;
}

void *gm_next_symbol(const char *symbol, const char *version)
{
    return gm_is_preloaded() ? gm_real_dlvsym(RTLD_NEXT, symbol, version)
                             : find_first(symbol, version);
}

typedef int dlclose_function(void *handle);

static _Atomic(dlclose_function *) next_dlclose;

int gm_next_dlclose(void *handle)
{
    dlclose_function *function = atomic_load_explicit(&next_dlclose, memory_order_acquire);
    if (gm_unlikely(function == NULL)) {
        function = (dlclose_function *)gm_next_symbol("dlclose", NULL);
        if (function == NULL)
            return -1;
        atomic_store_explicit(&next_dlclose, function, memory_order_release);
    }
    return function(handle);
}

/*
 * A link_map is not a handle: given to dlsym, that of an object loaded as a dependency crashes
 * glibc 2.36. Opening the object again by the loader's own name for it gives a handle.
 */
void *gm_object_search(const struct gm_object *object, const char *symbol, const char *version)
{
    if (object->map->l_name[0] == '\0')
        return NULL; /* the program: its search list is the global one */
    void *handle = dlopen(object->map->l_name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL)
        return NULL;
    void *found = gm_real_dlvsym(handle, symbol, version);
    gm_next_dlclose(handle);
    return found;
}
