/*
 * The mapping that holds an address, from /proc/self/maps by raw system calls: no malloc, no stdio,
 * 2 KiB of stack. Slow (it reads the whole file up to the address), so for once per thread.
 */
#ifndef GPUMEM_PRELOAD_STACK_NATIVE_UNWIND_MAPS_H
#define GPUMEM_PRELOAD_STACK_NATIVE_UNWIND_MAPS_H

#include <stdbool.h>
#include <stdint.h>

struct gm_mapping {
    uint64_t start;
    uint64_t end;
    uint64_t previous_end; /* end of the mapping below, 0 none */
    uint64_t file_start;   /* where the start of the same file is mapped below it, 0 none */
    bool readable;
};

/* False when nothing is mapped there or the file cannot be read. Preserves errno. */
bool gm_mapping_find(uint64_t address, struct gm_mapping *mapping);

#endif
