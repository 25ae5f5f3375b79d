/*
 * The functions behind the hooks.
 *
 * A real function is found once and kept: the first pointer that the program, or the loader on its
 * behalf, was given for a symbol is the one the hook forwards to, so that other interposers stay in
 * the chain. Nothing here allocates; lookups happen outside the recorder's own locks.
 *
 * Words: the *asker* is the object that looks a function up, the *caller* the one that calls it.
 */
#ifndef GPUMEM_PRELOAD_INTERPOSE_REAL_H
#define GPUMEM_PRELOAD_INTERPOSE_REAL_H

#include "base/api.h"
#include "base/platform.h"
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The function that wrapper `api` forwards to, or NULL when there is none in this process.
 * `caller` is the return address of the wrapper: a runtime function is looked up in the scope of
 * the object that calls, because several copies of the CUDA runtime can live in one process.
 */
void *gm_real(uint16_t api, const void *caller);

/* By api: the first function that was found, of the driver's the one that is forwarded to. */
extern _Atomic(void *) gm_real_first[GM_API_MAX];

/* gm_real for driver functions, of which there is one of each in a process. */
static inline void *gm_real_driver(uint16_t api)
{
    void *function = atomic_load_explicit(&gm_real_first[api], memory_order_acquire);
    return gm_likely(function != NULL) ? function : gm_real(api, NULL);
}

/* Keeps `function` as the real one of `api` if none is known yet. */
void gm_real_set(uint16_t api, void *function);

/*
 * Finds what there is to be found at the start of the process, from our constructor, where the
 * loader's lock is ours: the first call of a function must not wait for it.
 */
void gm_real_find_early(void);

/* Whether an object that a driver function was found in defines and exports `symbol`. No lock. */
bool gm_real_driver_defines(const char *symbol);

/* The function of that name in such an object, NULL if none has it. No lock. */
void *gm_real_driver_function(const char *symbol);

/* Whether a lookup of a driver function, or a call of one, ever came here. */
bool gm_real_driver_reached(void);

/*
 * Whether a lookup of `api` that found `found` may be answered with our wrapper, as far as the
 * asker is concerned. Not when
 *   - `found` comes before us: it is called first and reaches us by itself;
 *   - the asker stands behind us and defines that function itself: it asks for what it forwards to,
 *     and our wrapper would lead back to it.
 */
bool gm_real_is_wanted(uint16_t api, const void *found, const void *asker);

/*
 * A lookup found `found` for `api`. Keeps it if nothing is kept yet; true if a call of our wrapper
 * made by the asker would reach the same object's function, so that the wrapper can stand for it.
 */
bool gm_real_offer(uint16_t api, void *found, const void *asker);

/* Objects may have been unloaded: forget every function of theirs. */
void gm_real_forget(void);

#endif
