/*
 * libunwind, opened privately: linked or global it would replace the program's backtrace().
 */
#ifndef GPUMEM_PRELOAD_STACK_NATIVE_UNWIND_FALLBACK_H
#define GPUMEM_PRELOAD_STACK_NATIVE_UNWIND_FALLBACK_H

#include <stdbool.h>
#include <stdint.h>

struct gm_frame;

/* Finds the library and its functions. Calls dlopen; once, outside of any hook. */
bool gm_fallback_open(void);

/*
 * Walks the calling thread's stack from the first frame whose stack pointer is `sp` or above, and
 * writes the frames downwards from frames[-1]: the outermost ends up at frames[-count]. At most
 * `depth` frames. `generation` tells when what libunwind remembers of loaded code is out of date.
 * `*flags` becomes a set of GM_WALK_TRUNCATED, GM_WALK_CUT. Returns the count; 0 also when
 * libunwind is not there.
 */
uint32_t gm_fallback_walk(uint64_t sp, uint32_t generation, struct gm_frame *frames, uint32_t depth,
                          uint32_t *flags);

/* In a child: libunwind is used no more if a thread of the parent was inside of it at the fork. */
void gm_fallback_forget(void);

#endif
