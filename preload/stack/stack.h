/*
 * The stack of a call as one node id: native frames from the unwinder, Python frames beside them.
 */
#ifndef GPUMEM_PRELOAD_STACK_STACK_H
#define GPUMEM_PRELOAD_STACK_STACK_H

#include <stddef.h>
#include <stdint.h>

struct gm_stack;

/* Bytes of a struct gm_stack; zeroed memory is a valid initial state. */
size_t gm_stack_size(void);

/* The thread was interrupted in the middle of a capture and does not come back to it: nothing
 * remembered holds. */
void gm_stack_reset(struct gm_stack *stack);

/* The state now belongs to another thread, and the former owner has ended at rest: what was learnt
 * of code and of the trace still holds, and no page is touched that was not before. */
void gm_stack_take_over(struct gm_stack *stack);

/*
 * Node id of the calling thread's stack, from the caller of the function whose frame address
 * (__builtin_frame_address(0)) is `frame` outward. 0 when no stacks are recorded.
 */
uint32_t gm_stack_capture(struct gm_stack *stack, void *frame);

/* Has what captures may need looked for. Once per process. */
void gm_stack_prepare(void);

#endif
