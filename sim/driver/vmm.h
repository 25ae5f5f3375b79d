/*
 * Physical memory of the virtual memory management functions, and multicast objects, which are
 * handles of the same kind.
 */
#ifndef GPUMEM_SIM_VMM_H
#define GPUMEM_SIM_VMM_H

#include "driver.h"

/* Lives while it has handle references, mappings or multicast bindings. */
struct gpusim_physical {
    struct gpusim_object base;
    CUmemAllocationProp properties;
    uint64_t size;
    int fd;                       /* a memory file of its own; -1 for a multicast object */
    bool exported;                /* see gpusim_exports_reap */
    struct gpusim_device *device; /* NULL: host memory */
    bool imported;                /* another process's */
    struct gpusim_physical *same; /* of an import: what this process exported; lives as long */
    uint64_t counted;             /* of an imported one: bytes, as far as it was mapped */
    bool multicast;
    unsigned int references; /* handles */
    unsigned int uses;       /* mappings and bindings */
    struct gpusim_multicast *team;
};

struct gpusim_physical *gpusim_physical_of(CUmemGenericAllocationHandle handle);
void gpusim_physical_drop_if_unused(struct gpusim_physical *physical);
/* Ends a multicast object with its bindings (multicast.c). */
void gpusim_multicast_delete(struct gpusim_multicast *team);

/* A descriptor of an object, for other processes; -1: there is none. */
int gpusim_multicast_export(struct gpusim_multicast *team);
/* The object that another process, or this one, exported as `fd`; NULL: it is none. */
struct gpusim_physical *gpusim_multicast_import(int fd);

/* Functions that multicast objects and logical endpoints share (multicast.c). Binding memory
 * accepts `object` NULL and `device` -1 (not given). */
CUresult gpusim_multicast_new(uint64_t size, unsigned int devices, struct gpusim_physical **object);
CUresult gpusim_multicast_add(struct gpusim_physical *object, CUdevice ordinal);
CUresult gpusim_multicast_bind_memory(struct gpusim_physical *object, CUdevice device,
                                      uint64_t offset, CUmemGenericAllocationHandle handle,
                                      uint64_t memory_offset, uint64_t size,
                                      unsigned long long flags);
CUresult gpusim_multicast_bind_address(struct gpusim_physical *object, CUdevice device,
                                       uint64_t offset, CUdeviceptr pointer, uint64_t size,
                                       unsigned long long flags);
CUresult gpusim_multicast_unbind(struct gpusim_physical *object, CUdevice ordinal, uint64_t offset,
                                 uint64_t size);

#endif
