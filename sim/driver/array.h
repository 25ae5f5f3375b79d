/*
 * CUDA arrays: linear storage behind an opaque handle. Levels of a mipmapped array and planes of an
 * array are arrays too, which share the storage of their owner and end with it.
 */
#ifndef GPUMEM_SIM_ARRAY_H
#define GPUMEM_SIM_ARRAY_H

#include "driver.h"

struct gpusim_array {
    struct gpusim_object base;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    struct gpusim_device *device;
    uint64_t storage;      /* address; 0: none (sparse, deferred mapping) */
    uint64_t storage_size; /* bytes of its own; 0 for a level or a plane */
    uint64_t pitch, slice; /* bytes from row to row, from slice to slice */
    bool is_part;          /* a level or a plane */
    struct gpusim_array *planes[3];
    struct gpusim_tile *tiles; /* of a sparse array: what is mapped */
};

struct gpusim_mipmap {
    struct gpusim_object base;
    CUDA_ARRAY3D_DESCRIPTOR descriptor;
    struct gpusim_device *device;
    unsigned int level_count;
    struct gpusim_array **levels;
    uint64_t storage, storage_size;
    bool external; /* in imported memory: not ours to free */
    uint64_t mapped_at, mapped_size;
    uint64_t counted;
    struct gpusim_tile *tiles;
};

/* Bytes of an array by the estimate of docs/accounting.md; 0 when the format is unknown. */
uint64_t gpusim_array_size(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
uint64_t gpusim_mipmap_size(const CUDA_ARRAY3D_DESCRIPTOR *descriptor, unsigned int levels);
unsigned int gpusim_element_size(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
/* A mipmapped array over storage that exists, counted by the caller. */
struct gpusim_mipmap *gpusim_mipmap_new(struct gpusim_context *context,
                                        const CUDA_ARRAY3D_DESCRIPTOR *descriptor,
                                        unsigned int levels, uint64_t storage);
CUresult gpusim_check_descriptor(const CUDA_ARRAY3D_DESCRIPTOR *descriptor);
void gpusim_arrays_of_context_free(struct gpusim_context *context);
/* Unmaps all tiles of an array (sparse.c). */
void gpusim_tiles_drop(struct gpusim_tile **tiles);

#endif
