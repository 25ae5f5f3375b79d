/*
 * What the generated table (api.table -> generate.py -> gm_api.c) says of each hooked function.
 */
#ifndef GPUMEM_PRELOAD_BASE_API_H
#define GPUMEM_PRELOAD_BASE_API_H

#include "base/platform.h"
#include <stddef.h>
#include <stdint.h>

enum {
    GM_API_MAX = 2048, /* more than CUDA has functions; api ids from here on get no function */
};

enum gm_layer { GM_LAYER_DRIVER = 0, GM_LAYER_RUNTIME = 1 };

struct gm_api_entry {
    const char *symbol; /* exported name: "cuMemAlloc_v2", "cudaMallocAsync_ptsz" */
    const char
        *name; /* name cuGetProcAddress is asked for: "cuMemAlloc"; NULL at the runtime layer */
    void (*wrapper)(void); /* our function of that exact ABI */
    uint32_t since;        /* CUDA version of this ABI (11020 for 11.2), driver layer only */
    uint8_t layer;         /* enum gm_layer */
    uint8_t per_thread;    /* 1: the per-thread default stream form (_ptds, _ptsz) */
    uint8_t is_vital; /* 1: makes or ends memory or what memory belongs to; else copies, sets.. */
};

/* Index 0 is a placeholder: api ids start at 1, so that 0 can mean "none". Ids are the `api` of
 * records. */
extern const struct gm_api_entry gm_api[];
extern const uint16_t gm_api_count;

/* Id of an exported symbol name, 0 if it is not in the table. Exact match only. */
GM_BEFORE_SANITIZERS uint16_t gm_api_find(const char *symbol);

/*
 * The rows of the function that cuGetProcAddress knows by a name: its plain forms, then those of
 * the per-thread default stream, each by `since`. Only the first `length` bytes of the name count.
 */
struct gm_api_rows {
    const uint16_t *row;
    size_t count;
};

GM_BEFORE_SANITIZERS struct gm_api_rows gm_api_rows(const char *name, size_t length);

/*
 * Id of the ABI that cuGetProcAddress(name, version, flags) means: the highest `since` <= version
 * among the rows with that name and that per_thread form (the plain form where no per-thread form
 * exists). 0 if the name is not in the table or no ABI is old enough.
 */
uint16_t gm_api_find_version(const char *name, uint32_t version, int per_thread);

#endif
