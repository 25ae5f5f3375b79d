/*
 * External memory.
 */
#include "memory.h"

#include <sys/mman.h>

void gpusim_unmap_external(uint64_t address, uint64_t size)
{
    munmap((void *)(uintptr_t)address, size);
}
