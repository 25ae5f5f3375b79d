/* The dlsym hook. */
#ifndef GPUMEM_PRELOAD_INTERPOSE_DLSYM_H
#define GPUMEM_PRELOAD_INTERPOSE_DLSYM_H

/* The dlsym of this library, whoever else exports the name. */
void *gm_dlsym_hook(void *handle, const char *symbol) __attribute__((visibility("hidden")));

/* The function by which programs get a plugin of XLA, and what stands for one: sources/pjrt.c defines it. */
#define GM_PJRT_GET "GetPjrtApi"
void *gm_pjrt_offer(void *found);

#endif
