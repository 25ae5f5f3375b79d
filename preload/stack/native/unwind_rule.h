/*
 * How one frame is left: the part of a row of call frame information that the fast walk needs, and
 * how it is read from a loaded image.
 */
#ifndef GPUMEM_PRELOAD_STACK_NATIVE_UNWIND_RULE_H
#define GPUMEM_PRELOAD_STACK_NATIVE_UNWIND_RULE_H

#include "stack/native/unwind_image.h"
#include "stack/native/unwind_machine.h"
#include <stdint.h>

enum gm_rule_kind {
    GM_RULE_UNUSED = 0, /* free place of the hash */
    GM_RULE_SP,         /* CFA = stack pointer + cfa_offset */
    GM_RULE_FP,         /* CFA = frame pointer + cfa_offset */
    GM_RULE_REALIGNED,  /* x86-64: CFA in a word below rbp, saved rbp at rbp */
    GM_RULE_END,        /* the outermost frame */
    GM_RULE_NO_CFI, /* nothing is said of this code: the outermost frame if the frame pointer is 0 */
    GM_RULE_DECLINED, /* for a general unwinder */
};

/* 16 bytes, four to a cache line. */
struct gm_rule {
    uint64_t pc;
    int32_t cfa_offset;
    struct gm_saved_words saved;
    uint8_t kind; /* enum gm_rule_kind */
};

_Static_assert(sizeof(struct gm_rule) == 16, "a set of four fills a cache line");

/*
 * The rule for return address `pc` inside `image`. Never fails: CFI that a rule cannot express
 * gives GM_RULE_DECLINED.
 */
struct gm_rule gm_rule_read(const struct gm_image *image, uint64_t pc);

#endif
