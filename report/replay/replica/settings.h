/* The settings of PyTorch's caching allocator that change where blocks lie. */
#ifndef GPUMEM_REPORT_REPLICA_SETTINGS_H
#define GPUMEM_REPORT_REPLICA_SETTINGS_H

#include "base/text.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GM_DIVISIONS                                                                               \
    16 /* for sizes from 1 MiB on, each twice the one before; the last for all beyond */

struct gm_allocator_settings {
    uint64_t max_split_size;          /* bytes; UINT64_MAX: none */
    uint64_t max_non_split_rounding;  /* bytes */
    uint64_t large_segment;           /* bytes */
    unsigned divisions[GM_DIVISIONS]; /* of roundup_power2_divisions; 0 or 1: none */
    double gc_threshold;              /* share of the allowed memory; 0: none */
    double memory_fraction; /* share of the device that the process allows itself; 0: no limit */
    bool expandable;
    bool async; /* backend:cudaMallocAsync */
    bool
        oldest_first; /* of free blocks of one size that of the oldest segment is taken, as in PyTorch 2.15; else that
                          of the lowest address */
};

void gm_allocator_settings_default(struct gm_allocator_settings *settings);

/* Applies "name:value,name:value", as in PYTORCH_CUDA_ALLOC_CONF; '=' may stand for ':'. Names that do not change
 * where blocks lie are passed over if PyTorch knows them. False with a line in `error` (bytes of the text are not
 * repeated in it unless they are letters, digits or '_'). */
bool gm_allocator_settings_apply(struct gm_allocator_settings *settings, struct gm_text text,
                                 char *error, size_t error_size);

/* Whether both ask for the same. */
bool gm_allocator_settings_are_equal(const struct gm_allocator_settings *a,
                                     const struct gm_allocator_settings *b);

/* PyTorch's roundup_power2_divisions for a size. */
unsigned gm_allocator_divisions(const struct gm_allocator_settings *settings, uint64_t size);

#endif
