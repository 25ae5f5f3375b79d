/*
 * The functions behind the hooks: see real.h.
 *
 * A driver function is one per process: the first that was found. A runtime function depends on the
 * calling object, because plugins loaded with RTLD_LOCAL bring runtimes of their own; it is the one
 * the loader would have bound there without us. An object that calls without having the function
 * among its imports got a pointer from somewhere, and gets the first that was found. (So does code
 * reached by a tail call: with two runtimes in one process, an object that returns cudaMalloc(...)
 * as its last act is taken for the object that called it.)
 *
 * Steady state: one load for the driver; for the runtime a compare with the range of each calling
 * object, most often the first, and a load. Lock-free: every word is published once and only
 * gm_real_forget, with the owner of the word unloaded, empties it.
 *
 * The first call of a function in an object must not wait for the loader's lock, which is held
 * while constructors run, and these may wait for that very call. What the process was started with
 * is therefore looked up by our constructor. For an object that was opened later, the loader's list
 * is read at its first call (dl_iterate_phdr, whose lock constructors do not hold); the loader's
 * big lock is taken only where several objects define the function, to choose as the loader does.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/api.h"
#include "base/platform.h"
#include "base/room.h"
#include "interpose/real.h"
#include "loader/libc_dlsym.h"
#include "loader/next_symbol.h"
#include "writer/why.h"

enum {
    CALLER_MAX =
        64, /* objects that call the runtime; what more of them call is found at each call */
    RUNTIME_NAMES = 512, /* bytes of a path of a runtime library */
};

typedef _Atomic(void *) function_word;

/* An object that calls runtime functions. `size` 0: not in use, or not yet. */
struct caller {
    _Atomic bool taken;
    _Atomic uintptr_t start;
    _Atomic uintptr_t size;
    struct gm_object object;
    function_word function[GM_API_MAX];
};

function_word gm_real_first[GM_API_MAX];
static struct caller *callers;        /* CALLER_MAX, once there is one */
static _Atomic uint32_t caller_count; /* slots ever taken */
static _Atomic uint32_t generation;   /* of gm_real_forget */

static void *load_function(function_word *word)
{
    return atomic_load_explicit(word, memory_order_acquire);
}

/* Stores unless something is there; returns what is there afterwards. */
static void *keep_function(function_word *word, void *function)
{
    void *kept = NULL;
    if (atomic_compare_exchange_strong_explicit(word, &kept, function, memory_order_acq_rel,
                                                memory_order_acquire))
        return function;
    return kept;
}

static struct caller *find_caller(const void *address)
{
    uint32_t count = atomic_load_explicit(&caller_count, memory_order_acquire);
    for (uint32_t i = 0; i < count; i++) {
        uintptr_t size = atomic_load_explicit(&callers[i].size, memory_order_acquire);
        uintptr_t start = atomic_load_explicit(&callers[i].start, memory_order_acquire);
        /* Read again: the slot may have gone to another object between the two. */
        if ((uintptr_t)address - start < size &&
            gm_likely(size == atomic_load_explicit(&callers[i].size, memory_order_relaxed)))
            return &callers[i];
    }
    return NULL;
}

/* Takes a slot for the object. Two threads may both do so for one object: the first slot is used.
 */
static struct caller *add_caller(const struct gm_object *object)
{
    for (uint32_t i = 0; GM_ROOM(&callers, CALLER_MAX) && i < CALLER_MAX; i++) {
        struct caller *slot = &callers[i];
        if (atomic_exchange_explicit(&slot->taken, true, memory_order_acquire))
            continue;
        slot->object = *object;
        atomic_store_explicit(&slot->start, object->start, memory_order_relaxed);
        atomic_store_explicit(&slot->size, object->end - object->start, memory_order_release);
        uint32_t count = atomic_load_explicit(&caller_count, memory_order_relaxed);
        while (count <= i &&
               !atomic_compare_exchange_weak_explicit(&caller_count, &count, i + 1,
                                                      memory_order_acq_rel, memory_order_relaxed))
            ;
        return slot;
    }
    return NULL;
}

/* ---- finding --------------------------------------------------------------------------------- */

static bool is_wrapper(uint16_t api, const void *function)
{
    return function == (const void *)gm_api[api].wrapper;
}

/* Never our own function: that would be a call without end. */
static void *not_ours(uint16_t api, void *function)
{
    return is_wrapper(api, function) ? NULL : function;
}

/*
 * Where one object alone defines the function there is nothing to choose, and the loader need not
 * be asked: it would make us wait for a constructor that waits for this thread. Not a definition
 * before us: it would come back to us.
 */
static void *find_only(uint16_t api)
{
    struct gm_object owner;
    struct gm_definitions found = gm_object_definitions(gm_api[api].symbol);
    bool behind_us =
        found.count == 1 && gm_object_of(found.first, &owner) && !gm_object_precedes_us(&owner);
    return behind_us ? found.first : NULL;
}

/* By api: what the objects that the process was started with give. Written by the constructor. */
static void *early[GM_API_MAX];

/*
 * What was found at the start still is what the loader would find, for the driver always: what came
 * later stands behind it in the search order. A runtime may have come with its caller.
 */
static void *find_early(uint16_t api, const struct gm_object *caller)
{
    bool holds = gm_api[api].layer == GM_LAYER_DRIVER || !gm_objects_came_since_start() ||
                 (caller != NULL && gm_object_is_of_start(caller));
    return holds ? early[api] : NULL;
}

static void *find_in_library(uint16_t api, const char *library)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL)
        return NULL;
    void *function = gm_real_dlsym(handle, gm_api[api].symbol);
    gm_next_dlclose(handle);
    return not_ours(api, function);
}

static void *find_driver(uint16_t api)
{
    void *function = not_ours(api, gm_next_symbol(gm_api[api].symbol, NULL));
    return function != NULL ? function : find_in_library(api, "libcuda.so.1");
}

/*
 * What the loader would have bound in an object that imports the function: the global scope comes
 * first, then the object's own. A definition without versions (another interposer) satisfies every
 * reference, one with versions only its own.
 */
static void *find_binding(uint16_t api, const struct gm_object *object, const char *version)
{
    const char *symbol = gm_api[api].symbol;
    struct gm_object owner;
    void *function = gm_next_symbol(symbol, NULL);
    if (function != NULL && version != NULL && gm_object_of(function, &owner) &&
        gm_object_is_versioned(&owner))
        function = gm_next_symbol(symbol, version);
    if (function == NULL)
        function = gm_object_search(object, symbol, version);
    return not_ours(api, function);
}

struct loaded_runtime {
    char path[RUNTIME_NAMES];
};

static int is_runtime(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct loaded_runtime *runtime = data;
    const char *name = strrchr(info->dlpi_name, '/');
    size_t length = strlen(info->dlpi_name);
    name = name != NULL ? name + 1 : info->dlpi_name;
    if (strncmp(name, "libcudart", strlen("libcudart")) != 0 || length >= sizeof runtime->path)
        return 0;
    memcpy(runtime->path, info->dlpi_name, length + 1);
    return 1;
}

/* The last resort: whichever runtime library is loaded. */
static void *find_any_runtime(uint16_t api)
{
    struct loaded_runtime runtime;
    return dl_iterate_phdr(is_runtime, &runtime) != 0 ? find_in_library(api, runtime.path) : NULL;
}

static void *find_runtime(uint16_t api, const struct gm_object *caller)
{
    const char *version;
    void *function = NULL;
    if (caller != NULL && gm_object_imports(caller, gm_api[api].symbol, &version))
        function = find_binding(api, caller, version);
    if (function == NULL)
        function = load_function(&gm_real_first[api]);
    if (function == NULL)
        function = not_ours(api, gm_next_symbol(gm_api[api].symbol, NULL));
    return function != NULL ? function : find_any_runtime(api);
}

/* Keeps what the calling object's calls lead to, if the table has room for the object. */
static void *keep_for_caller(uint16_t api, const struct gm_object *object, void *function)
{
    struct caller *caller = find_caller((const void *)object->start);
    if (caller == NULL)
        caller = add_caller(object);
    return caller != NULL ? keep_function(&caller->function[api], function) : function;
}

/* The function behind a wrapper that has none yet. */
static void *find_function(uint16_t api, const void *address)
{
    const int error = errno;
    const uint32_t before = atomic_load_explicit(&generation, memory_order_acquire);
    const bool is_driver = gm_api[api].layer == GM_LAYER_DRIVER;
    struct gm_object object;
    const struct gm_object *caller = !is_driver && gm_object_of(address, &object) ? &object : NULL;
    void *function = find_early(api, caller);
    if (function == NULL)
        function = find_only(api);
    if (function == NULL)
        function = is_driver ? find_driver(api) : find_runtime(api, caller);
    /* Found before something was unloaded: good for this call, which is under way, but not kept. */
    if (function != NULL && before == atomic_load_explicit(&generation, memory_order_acquire)) {
        void *first = keep_function(&gm_real_first[api], function);
        if (is_driver)
            function = first;
        else if (caller != NULL)
            function = keep_for_caller(api, caller, function);
    }
    errno = error;
    return function;
}

void *gm_real(uint16_t api, const void *caller)
{
    void *function = NULL;
    if (gm_unlikely(api == 0 || api >= gm_api_count || api >= GM_API_MAX))
        return NULL;
    if (gm_api[api].layer == GM_LAYER_DRIVER) {
        function = load_function(&gm_real_first[api]);
    } else {
        struct caller *known = find_caller(caller);
        if (gm_likely(known != NULL))
            function = load_function(&known->function[api]);
    }
    return gm_likely(function != NULL) ? function : find_function(api, caller);
}

void gm_real_find_early(void)
{
    const bool has_driver = gm_object_any_defines("cuInit");
    const bool has_runtime = gm_object_any_defines("cudaMalloc");
    if (!gm_is_preloaded())
        return;
    for (uint16_t api = 1; api < gm_api_count && api < GM_API_MAX; api++) {
        const bool is_driver = gm_api[api].layer == GM_LAYER_DRIVER;
        if (is_driver ? !has_driver : !has_runtime)
            continue;
        early[api] = find_only(api);
        if (is_driver && early[api] == NULL)
            early[api] = not_ours(api, gm_next_symbol(gm_api[api].symbol, NULL));
    }
}

/* ---- lookups --------------------------------------------------------------------------------- */

void gm_real_set(uint16_t api, void *function)
{
    if (api != 0 && api < GM_API_MAX && function != NULL && !is_wrapper(api, function))
        keep_function(&gm_real_first[api], function);
}

bool gm_real_driver_reached(void)
{
    for (uint16_t api = 1; api < gm_api_count && api < GM_API_MAX; api++)
        if (gm_api[api].layer == GM_LAYER_DRIVER && load_function(&gm_real_first[api]) != NULL)
            return true;
    return false;
}

/* Calls `visit` with each object that a driver function was found in until it returns true. */
static bool each_driver(bool (*visit)(const struct gm_object *object, void *data), void *data)
{
    struct gm_object object = {0};
    for (uint16_t api = 1; api < gm_api_count && api < GM_API_MAX; api++) {
        const void *function = load_function(&gm_real_first[api]);
        if (gm_api[api].layer != GM_LAYER_DRIVER || function == NULL ||
            (uintptr_t)function - object.start < object.end - object.start ||
            !gm_object_of(function, &object))
            continue;
        if (visit(&object, data))
            return true;
    }
    return false;
}

static bool defines(const struct gm_object *object, void *symbol)
{
    return gm_object_defines(object, symbol);
}

bool gm_real_driver_defines(const char *symbol)
{
    return each_driver(defines, (void *)(uintptr_t)symbol);
}

struct wanted {
    const char *symbol;
    void *function;
};

static bool has_function(const struct gm_object *object, void *data)
{
    struct wanted *wanted = data;
    wanted->function = gm_object_function(object, wanted->symbol);
    return wanted->function != NULL;
}

void *gm_real_driver_function(const char *symbol)
{
    struct wanted wanted = {.symbol = symbol};
    each_driver(has_function, &wanted);
    return wanted.function;
}

bool gm_real_is_wanted(uint16_t api, const void *found, const void *asker)
{
    struct gm_object object;
    if (gm_object_of(found, &object) && gm_object_precedes_us(&object)) {
        gm_why(GM_WHY_ROAD_BEFORE_US, (uintptr_t)found, gm_api[api].symbol);
        return false;
    }
    if (!gm_object_of(asker, &object) || gm_object_precedes_us(&object) ||
        gm_object_function(&object, gm_api[api].symbol) == NULL)
        return true;
    gm_why(GM_WHY_ROAD_ASKER, (uintptr_t)asker, gm_api[api].symbol);
    return false;
}

bool gm_real_offer(uint16_t api, void *found, const void *asker)
{
    const char *version;
    struct gm_object object;
    if (api == 0 || api >= GM_API_MAX || is_wrapper(api, found))
        return false;
    if (gm_api[api].layer == GM_LAYER_RUNTIME && gm_object_of(asker, &object) &&
        gm_object_imports(&object, gm_api[api].symbol, &version)) {
        /* The asker's calls by name and by pointer arrive alike: both must mean one runtime. */
        void *bound = find_binding(api, &object, version);
        if (bound != NULL && !gm_object_same(bound, found)) {
            gm_why(GM_WHY_ROAD_OTHER, (uintptr_t)found, gm_api[api].symbol);
            return false;
        }
    }
    bool is_kept = gm_object_same(keep_function(&gm_real_first[api], found), found);
    if (!is_kept)
        gm_why(GM_WHY_ROAD_OTHER, (uintptr_t)found, gm_api[api].symbol);
    return is_kept;
}

/* ---- unloading -------------------------------------------------------------------------------
 *
 * An address counts as loaded when some object holds it. Between the loader's unmapping and this
 * look another thread could have loaded another object at the same place; it would have to do that
 * in the few instructions between, and then call CUDA from the very same addresses.
 */

static bool is_loaded(const struct gm_object *known)
{
    struct gm_object now;
    return gm_object_of((const void *)known->start, &now) && now.map == known->map &&
           now.start == known->start && now.end == known->end;
}

/* Empties the words whose function is no longer in any object. Neighbours share an object. */
static void forget_unloaded(function_word *words)
{
    struct gm_object object = {0};
    for (uint32_t api = 0; api < gm_api_count && api < GM_API_MAX; api++) {
        void *function = load_function(&words[api]);
        if (function == NULL || (uintptr_t)function - object.start < object.end - object.start)
            continue;
        if (!gm_object_of(function, &object)) {
            object = (struct gm_object){0};
            atomic_compare_exchange_strong(&words[api], &function, NULL);
        }
    }
}

void gm_real_forget(void)
{
    uint32_t count = atomic_load_explicit(&caller_count, memory_order_acquire);
    atomic_fetch_add_explicit(&generation, 1, memory_order_acq_rel);
    forget_unloaded(gm_real_first);
    for (uint32_t i = 0; i < count; i++) {
        struct caller *caller = &callers[i];
        if (atomic_load_explicit(&caller->size, memory_order_acquire) == 0)
            continue;
        if (is_loaded(&caller->object)) {
            forget_unloaded(caller->function);
            continue;
        }
        atomic_store_explicit(&caller->size, 0, memory_order_release);
        memset(caller->function, 0, sizeof caller->function);
        atomic_store_explicit(&caller->taken, false, memory_order_release);
    }
}
