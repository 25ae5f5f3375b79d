/*
 * The functions behind the hooks.
 *
 * A real function is found once and kept: the first pointer that the program, or the loader on its
 * behalf, was given for a symbol is the one the hook forwards to, so that other interposers stay in
 * the chain. Nothing here allocates; lookups happen outside the recorder's own locks.
 */
#ifndef GPUMEM_PRELOAD_REAL_H
#define GPUMEM_PRELOAD_REAL_H

#include <stdbool.h>
#include <stdint.h>

/*
 * The function that wrapper `api` forwards to, or NULL when there is none in this process.
 * `caller` is the return address of the wrapper: a runtime function is looked up in the scope of
 * the object that calls, because several copies of the CUDA runtime can live in one process.
 */
void *gm_real(uint16_t api, const void *caller);

/* Keeps `function` as the real one of `api` if none is known yet. */
void gm_real_set(uint16_t api, void *function);

/* Whether a lookup of a driver function, or a call of one, ever came here. */
bool gm_real_driver_reached(void);

/* The libc's own dlsym; never NULL once the library is loaded. */
void *gm_real_dlsym(void *handle, const char *symbol);

#endif
