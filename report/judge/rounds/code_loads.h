/* Modules of device code that a program loads, and how far it had come by then. What code takes of a
 * device is no allocation, and no record tells its size. Memory: 40 bytes for each load. */
#ifndef GPUMEM_REPORT_ROUNDS_CODE_LOADS_H
#define GPUMEM_REPORT_ROUNDS_CODE_LOADS_H

#include "base/map.h"
#include <stddef.h>
#include <stdint.h>

struct gm_code_load {
    uint64_t line;  /* gm_callers_line() */
    uint64_t begin; /* progress at that time */
    uint64_t end;   /* at its unloading; UINT64_MAX: not unloaded */
    uint32_t stack;
    uint16_t api;
};

/* All zero: nothing yet. */
struct gm_code_loads {
    struct gm_code_load *entries; /* in the order of time */
    size_t count;
    size_t capacity;
    struct gm_map by_address; /* of a CUmodule or CUlibrary -> entry */
    uint64_t progress;        /* allocations, blocks, and of programs without blocks copies */
};

/* A module is loaded: `load` tells line, stack and api. */
void gm_code_load(struct gm_code_loads *loads, uint64_t address, const struct gm_code_load *load);
void gm_code_unload(struct gm_code_loads *loads, uint64_t address);

/* Modules that one line of the program loaded, and that were there until its work was over. */
struct gm_code_line {
    const struct gm_code_load *latest;
    uint64_t modules;
    uint64_t times;  /* apart: the program went on between them */
    uint64_t later;  /* of these, in the second half of its progress */
    uint64_t before; /* progress at the first */
};

/* Of each line, those kept. Returns their number; the caller frees *lines. */
size_t gm_code_lines(const struct gm_code_loads *loads, struct gm_code_line **lines);

void gm_code_loads_free(struct gm_code_loads *loads);

#endif
