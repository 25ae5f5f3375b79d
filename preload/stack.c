/* See stack.h. */
#include "stack.h"
#include <string.h>
#include "config.h"
#include "modules.h"
#include "tables.h"
#include "trace_file.h"
#include "unwind.h"

struct gm_stack {
    struct gm_unwind_thread unwind;
};

size_t gm_stack_size(void)
{
    return sizeof(struct gm_stack);
}

void gm_stack_reset(struct gm_stack *stack)
{
    memset(stack, 0, sizeof(*stack));
}

void gm_stack_prepare(void)
{
    if (gm_config.native_stacks)
        gm_unwind_open_fallback();
}

static uint32_t native_node(uint32_t parent, const struct gm_frame *frame)
{
    uint64_t offset;
    uint16_t module = gm_module_of(frame->pc, &offset);
    return gm_node_intern(parent, module, offset,
                          frame->flags & GM_FRAME_EXACT ? GM_NODE_LEAF : GM_NODE_NATIVE);
}

static void count_troubles(uint32_t flags)
{
    if (flags & (GM_WALK_TRUNCATED | GM_WALK_CUT))
        gm_count(GM_COUNT_STACK_TRUNCATED, 1);
    if (flags & GM_WALK_FALLBACK)
        gm_count(GM_COUNT_FALLBACK, 1);
}

uint32_t gm_stack_capture(struct gm_stack *stack, void *frame)
{
    struct gm_walk walk;
    if (!gm_config.native_stacks)
        return 0;
    gm_unwind_walk(&stack->unwind, gm_registers_of_caller(frame), gm_config.depth, &walk);
    if (walk.flags)
        count_troubles(walk.flags);
    if (walk.count == 0)
        return 0;
    uint32_t node;
    if (walk.kept)
        node = walk.frames[walk.kept - 1].node;
    else if (walk.flags & (GM_WALK_TRUNCATED | GM_WALK_CUT))
        node = gm_node_intern(0, 0, 0, GM_NODE_CUT);
    else
        node = 0;
    int saved_errno = errno; /* new frames can cost system calls */
    for (uint32_t i = walk.kept; i < walk.count; i++)
        walk.frames[i].node = node = native_node(node, &walk.frames[i]);
    errno = saved_errno;
    gm_unwind_interned(&stack->unwind, walk.count);
    return node;
}
