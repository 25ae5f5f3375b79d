/* The cuGetProcAddress hooks. */
#ifndef GPUMEM_PRELOAD_INTERPOSE_GET_PROC_ADDRESS_H
#define GPUMEM_PRELOAD_INTERPOSE_GET_PROC_ADDRESS_H

/* Objects may have been unloaded: forget what they export. */
void gm_get_proc_address_forget(void);

#endif
