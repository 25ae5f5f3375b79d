/*
 * What differs between machines in how a frame is left.
 *
 * The DWARF numbers are those of the psABI of x86-64 (figure 3.36) and of "DWARF for the Arm 64-bit
 * Architecture" (AADWARF64, table of registers).
 */
#ifndef GPUMEM_PRELOAD_STACK_NATIVE_UNWIND_MACHINE_H
#define GPUMEM_PRELOAD_STACK_NATIVE_UNWIND_MACHINE_H

#include <stdint.h>

/*
 * Where a frame's return address and frame pointer (rbp, x29) were saved, in words from its CFA.
 * Zero: a frame that was not found from another one.
 */
#if defined(__x86_64__)

#define GM_UNWIND_HAS_RULES 1

/* Whether libunwind asks if it may read a word, also where tables are wrong. */
#define GM_FALLBACK_CHECKS_READS 1

enum { GM_REGISTER_FP = 6, GM_REGISTER_SP = 7, GM_REGISTER_RETURN = 16 };

/* A call pushes the return address, so that one always lies in the word below the CFA. */
struct gm_saved_words {
    int16_t fp; /* 0: unchanged */
    int8_t
        cfa; /* of a dynamically realigned frame: where the CFA lies, from the saved rbp; 0: none */
} __attribute__((packed));

static inline int64_t gm_return_word(struct gm_saved_words saved)
{
    (void)saved;
    return -1;
}

/* 0: unchanged. */
static inline int64_t gm_fp_word(struct gm_saved_words saved)
{
    return saved.fp;
}

static inline int64_t gm_cfa_word(struct gm_saved_words saved)
{
    return saved.cfa;
}

static inline uint64_t gm_code_address(uint64_t saved)
{
    return saved;
}

#elif defined(__aarch64__)

#define GM_UNWIND_HAS_RULES 1
#define GM_FALLBACK_CHECKS_READS 0 /* 1.6 faults on a CFA outside of the stack */

enum { GM_REGISTER_FP = 29, GM_REGISTER_SP = 31, GM_REGISTER_RETURN = 30 };

/* A function saves x30 where it likes, mostly in the word above x29. */
struct gm_saved_words {
    int16_t return_address;
    int8_t fp_step; /* from the word of x30 to that of x29; 0: x29 is unchanged */
} __attribute__((packed));

static inline int64_t gm_return_word(struct gm_saved_words saved)
{
    return saved.return_address;
}

/* 0: unchanged. */
static inline int64_t gm_fp_word(struct gm_saved_words saved)
{
    return saved.fp_step ? saved.return_address + saved.fp_step : 0;
}

static inline int64_t gm_cfa_word(struct gm_saved_words saved)
{
    (void)saved;
    return 0;
}

/* What was saved, without the code by which pointer authentication has signed it (xpaclri). */
static inline uint64_t gm_code_address(uint64_t saved)
{
    register uint64_t x30 __asm__("x30") = saved;
    __asm__("hint #7" : "+r"(x30));
    return x30;
}

#else

#define GM_UNWIND_HAS_RULES 0

enum { GM_REGISTER_FP, GM_REGISTER_SP, GM_REGISTER_RETURN };

struct gm_saved_words {
    int8_t unused[3];
};

#endif

_Static_assert(sizeof(struct gm_saved_words) == 3, "a byte is left in the word that holds it");

#endif
