/*
 * The stack of a call as one node id: native frames from the unwinder, Python frames beside them.
 */
#ifndef GPUMEM_PRELOAD_STACK_H
#define GPUMEM_PRELOAD_STACK_H

#include <stddef.h>
#include <stdint.h>

struct gm_stack;

/* Bytes of a struct gm_stack; zeroed memory is a valid initial state. */
size_t gm_stack_size(void);

/* The state now belongs to another thread: nothing remembered holds. */
void gm_stack_reset(struct gm_stack *stack);

/*
 * Node id of the calling thread's stack, from the caller of the function whose frame address
 * (__builtin_frame_address(0)) is `frame` outward. 0 when no stacks are recorded.
 */
uint32_t gm_stack_capture(struct gm_stack *stack, void *frame);

/* Looks for a Python interpreter while none was found. Takes the loader's lock: not on the way of
 * an event. */
void gm_stack_look_for_python(void);

/* Opens what captures may need and what must not be opened on a hot path. Once per process. */
void gm_stack_prepare(void);

#endif
