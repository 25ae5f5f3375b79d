/* The dlsym hook. */
#ifndef GPUMEM_PRELOAD_INTERPOSE_DLSYM_H
#define GPUMEM_PRELOAD_INTERPOSE_DLSYM_H

/* The dlsym of this library, whoever else exports the name. */
void *gm_dlsym_hook(void *handle, const char *symbol) __attribute__((visibility("hidden")));

#endif
