/* Which stacks are the same to a reader: they differ in nothing but frames of the Python
 * interpreter.
 *
 * CPython rewrites its bytecode as it runs (3.11 and later), so that one line of Python reaches the
 * same call from different places of the interpreter: the first time from one, later from another.
 * Where Python frames were recorded they say all that the interpreter's own could say. A stack
 * without Python frames keeps those it has.
 *
 * Told by the names of modules alone; answers are kept. Memory: distinct nodes that are asked for.
 */
#ifndef GPUMEM_REPORT_TRACE_SAME_STACKS_H
#define GPUMEM_REPORT_TRACE_SAME_STACKS_H

#include "base/text.h"
#include <stdbool.h>
#include <stdint.h>

struct gm_trace;
struct gm_same_stacks;

/* Whether a module is the Python interpreter or its bridge to C: between Python frames and a call
 * of CUDA it tells nothing. */
bool gm_is_interpreter(struct gm_text path);

struct gm_same_stacks *gm_same_stacks_new(const struct gm_trace *trace);
void gm_same_stacks_free(struct gm_same_stacks *same);

/* A number that two stacks have in common if they are the same, and only then; 0: the empty one. */
uint32_t gm_same_stacks_number(struct gm_same_stacks *same, uint32_t stack);

/* The latest answers, by the stack that was asked for. Every gm_same_stacks begins with them. */
#define GM_STACK_ANSWERS 4096u
struct gm_stack_answers {
    struct gm_stack_answer {
        uint32_t stack; /* 0: none yet */
        uint32_t first;
    } kept[GM_STACK_ANSWERS];
};

/* The first stack, of those this function was asked for, that is the same; an id without a node is
 * left as it is. */
uint32_t gm_same_stacks_find_first(struct gm_same_stacks *same, uint32_t stack);
static inline uint32_t gm_same_stacks_first(struct gm_same_stacks *same, uint32_t stack)
{
    const struct gm_stack_answers *answers = (const struct gm_stack_answers *)same;
    const struct gm_stack_answer *answer = &answers->kept[stack % GM_STACK_ANSWERS];
    if (answer->stack != stack)
        return gm_same_stacks_find_first(same, stack);
    return answer->first; /* of no stack, 0, it is 0 */
}

/* A stack that says nothing of the program borrows the one that set its thread to work: `stack` is shown
 * as called from node `lender`. The first lender stays. */
void gm_same_stacks_lend(struct gm_same_stacks *same, uint32_t stack, uint32_t lender);

/* The node that was lent to a stack; 0: none. */
uint32_t gm_same_stacks_lender(const struct gm_same_stacks *same, uint32_t stack);

#endif
