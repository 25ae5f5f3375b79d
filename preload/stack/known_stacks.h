/*
 * Whole stacks that a thread met before, with their nodes.
 *
 * A stack is a function of the state it is walked from, of the words of the stack that a walk reads
 * (see unwind.c), and of the Python frames beside it. So where all of these are as they were, the
 * node is too, and nothing has to be walked or looked up: comparing words that stand in one row is
 * several times cheaper, because no load waits for another and few cache lines are touched.
 *
 * A program goes through its stacks in much the same order again and again: each known stack
 * remembers which one came next. Where that is wrong, the newest one with the same innermost frames
 * is tried; then the stack is walked.
 *
 * They lie in a ring: a new one takes the place of the oldest. Only the owning thread comes here.
 * Zeroed memory is the valid first state, also if it was abandoned in the middle of a call.
 */
#ifndef GPUMEM_PRELOAD_STACK_KNOWN_STACKS_H
#define GPUMEM_PRELOAD_STACK_KNOWN_STACKS_H

#include "stack/native/unwind.h"
#include "stack/python/python.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GM_KNOWN_BYTES (512u << 10) /* some 400 of PyTorch's, 40 native frames and 5 of Python */
#define GM_KNOWN_BITS 10            /* of the hash by innermost frames */

struct gm_known_stack;

struct gm_known_stacks {
    uint64_t end;        /* bytes of ring ever used; a stack's place is what it was at */
    uint64_t oldest;     /* what lies before is forgotten */
    uint64_t last;       /* place of the last one met + 1, 0 none */
    uint32_t generation; /* of loaded code */
    uint64_t newest[1u << GM_KNOWN_BITS]; /* place + 1 */
    /* Last, and never cleared: its pages are touched only as far as they are needed. */
    char ring[GM_KNOWN_BYTES] __attribute__((aligned(64)));
};

#define GM_KNOWN_TO_CLEAR offsetof(struct gm_known_stacks, ring)

/* The calling thread has taken the memory over: it has another stack. */
void gm_known_forget(struct gm_known_stacks *known);

/* By what a stack is looked for. Where no native frames are recorded, registers are all 0. */
struct gm_known_key {
    struct gm_registers registers;
    const struct gm_python_frame *scripts; /* root first */
    uint32_t script_count;
    bool scripts_truncated;
};

/* The node, 0 if the stack is not known. Sets *flags to those of its walk (enum gm_walk_flags). */
uint32_t gm_known_find(struct gm_known_stacks *known, const struct gm_known_key *key,
                       uint32_t *flags);

/*
 * Keeps the stack that `thread` has just walked for the key. Not if the walk does not tell by which
 * words it is known again.
 */
void gm_known_add(struct gm_known_stacks *known, const struct gm_known_key *key,
                  struct gm_unwind_thread *thread, const struct gm_walk *walk, uint32_t node);

#endif
