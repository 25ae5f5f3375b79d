/*
 * How one frame is left: the part of a row of call frame information that the fast walk needs, and
 * how it is read from a loaded image (x86-64).
 */
#ifndef GPUMEM_PRELOAD_STACK_NATIVE_UNWIND_RULE_H
#define GPUMEM_PRELOAD_STACK_NATIVE_UNWIND_RULE_H

#include "stack/native/unwind_image.h"
#include <stdint.h>

enum gm_rule_kind {
    GM_RULE_UNUSED = 0, /* free place of the hash */
    GM_RULE_RSP,        /* CFA = rsp + cfa_offset */
    GM_RULE_RBP,        /* CFA = rbp + cfa_offset */
    GM_RULE_REALIGNED,  /* CFA = word at rbp + 8 * cfa_word; saved rbp at rbp */
    GM_RULE_END,        /* the outermost frame */
    GM_RULE_NO_CFI,     /* nothing is said of this code: the outermost frame if rbp is 0 (psABI) */
    GM_RULE_DECLINED,   /* for a general unwinder */
};

/* The return address is always at CFA - 8. 16 bytes, four to a cache line. */
struct gm_rule {
    uint64_t pc;
    int32_t cfa_offset;
    int16_t rbp_word; /* saved rbp at CFA + 8 * rbp_word; 0: rbp is unchanged */
    uint8_t kind;     /* enum gm_rule_kind */
    int8_t cfa_word;
};

_Static_assert(sizeof(struct gm_rule) == 16, "a set of four fills a cache line");

/*
 * The rule for return address `pc` inside `image`. Never fails: CFI that a rule cannot express
 * gives GM_RULE_DECLINED.
 */
struct gm_rule gm_rule_read(const struct gm_image *image, uint64_t pc);

#endif
