/*
 * What PyTorch's own structure of a block tells beyond the arguments of its report: the size asked
 * for, the stream, the pool, and whether a block that is given back waits for other streams.
 */
#ifndef GPUMEM_PRELOAD_SOURCES_TORCH_BLOCK_H
#define GPUMEM_PRELOAD_SOURCES_TORCH_BLOCK_H

#include <gpumem/trace.h>
#include <stdbool.h>
#include <stdint.h>

/* Where a report was called from. The block's address is in the register, or in the frame. */
struct gm_torch_caller {
    uint64_t code;         /* return address */
    uint64_t held;         /* rax at the call; 0 on other machines */
    uint64_t allocator;    /* low 48 bits of rbx, where compilers keep `this`; likewise */
    const uint64_t *frame; /* of the caller, from its stack pointer on */
};

/* What was reported. */
struct gm_torch_report {
    uint64_t address;
    uint64_t size; /* bytes */
    int8_t device;
};

struct gm_torch_told {
    uint64_t requested; /* bytes asked for */
    uint64_t stream;    /* cudaStream_t */
    uint32_t pool;      /* tells pools apart; never 0 */
    bool is_common;     /* the pool is of the allocator itself; false: or it is not known */
};

/* A block is handed out. False: its structure was not found, nothing is told. */
bool gm_torch_block_given(const struct gm_torch_caller *caller,
                          const struct gm_torch_report *report, struct gm_torch_told *told);

/* A block was given back. */
enum gm_block_end gm_torch_block_returned(const struct gm_torch_caller *caller,
                                          const struct gm_torch_report *report);

#endif
