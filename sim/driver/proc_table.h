/*
 * What cuGetProcAddress answers, sorted by name and version; generated from the typedef headers.
 */
#ifndef GPUMEM_SIM_PROC_TABLE_H
#define GPUMEM_SIM_PROC_TABLE_H

struct gpusim_proc {
    const char *name;
    int version;      /* CUDA version that brought this ABI */
    int driver;       /* of the first driver that has it, which can be later */
    void *function;   /* legacy default stream */
    void *per_thread; /* the same for the per-thread default stream, NULL where there is none */
};

extern const struct gpusim_proc gpusim_procs[];
extern const unsigned int gpusim_proc_count;

/* The same for functions that the headers may not have (future.c): the newest up to that version,
 * or NULL. */
const struct gpusim_proc *gpusim_future_proc(const char *name, int version);

#endif
