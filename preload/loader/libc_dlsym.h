/*
 * The dlsym of others, for our own lookups and for those that our hook passes on.
 *
 * Two functions called dlsym stand behind the hook. The *next* one, of another preloaded library or
 * of libc, answers the program, so that other interposers stay in the chain. Our own lookups go to
 * *libc's*, found by its symbol version, which interposers do not carry.
 */
#ifndef GPUMEM_PRELOAD_LOADER_LIBC_DLSYM_H
#define GPUMEM_PRELOAD_LOADER_LIBC_DLSYM_H

typedef void *gm_dlsym(void *handle, const char *symbol);

/* The dlsym that the program would reach without us; never NULL. */
gm_dlsym *gm_next_dlsym(void);

/* Libc's own dlsym, and dlvsym unless `version` is NULL: also before our constructors ran. They
 * look from this library, which is what RTLD_NEXT means to them. */
void *gm_real_dlsym(void *handle, const char *symbol);
void *gm_real_dlvsym(void *handle, const char *symbol, const char *version);

/* Some address inside libc. */
const void *gm_libc_address(void);

#endif
