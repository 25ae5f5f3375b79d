/* See stack.h. Frames come from libunwind, opened privately. */
#include "stack.h"
#include <dlfcn.h>
#include "config.h"
#include "modules.h"
#include "platform.h"
#include "tables.h"
#include "trace_file.h"

#define FRAMES_MAX 256

struct gm_stack {
    void *frames[FRAMES_MAX];
};

typedef int backtrace_function(void **frames, int size);

static backtrace_function *unwind;

size_t gm_stack_size(void)
{
    return sizeof(struct gm_stack);
}

void gm_stack_reset(struct gm_stack *stack)
{
    (void)stack;
}

/* RTLD_LOCAL: libunwind exports a backtrace() that must not replace the program's. */
void gm_stack_prepare(void)
{
    void *library = gm_config.native_stacks ? dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL) : NULL;
    if (library)
        unwind = (backtrace_function *)dlsym(library, "unw_backtrace");
}

uint32_t gm_stack_capture(struct gm_stack *stack, void *frame)
{
    if (!unwind)
        return 0;
    uint64_t caller = ((uint64_t *)frame)[1]; /* the hook's return address */
    int count = unwind(stack->frames, (int)gm_config.depth);
    int inner = 0;
    while (inner < count && (uint64_t)stack->frames[inner] != caller)
        inner++;
    if (inner == count)
        return 0;
    uint32_t node = 0;
    for (int i = count; i-- > inner;) {
        uint64_t offset;
        uint16_t module = gm_module_of((uint64_t)stack->frames[i], &offset);
        node = gm_node_intern(node, module, offset, GM_NODE_NATIVE);
    }
    return node;
}
