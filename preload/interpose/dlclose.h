/* The dlclose hook. */
#ifndef GPUMEM_PRELOAD_INTERPOSE_DLCLOSE_H
#define GPUMEM_PRELOAD_INTERPOSE_DLCLOSE_H

/* The dlclose of this library, whoever else exports the name. */
int gm_dlclose_hook(void *handle) __attribute__((visibility("hidden")));

/* Has a function called right before and right after each dlclose, on its thread: it drops what is
 * remembered of loaded code. One function in all; to be set before there is anything to drop. */
void gm_dlclose_watch(void (*code_may_change)(void));

#endif
