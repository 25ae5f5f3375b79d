/* What the recorder calls and its tests do not want: the table of hooks, the hook of dlclose, and stacks. */
#include "base/api.h"
#include "interpose/dlclose.h"
#include "stack/stack.h"

const struct gm_api_entry gm_api[] = {{.symbol = ""}, {.symbol = "first"}, {.symbol = "second"}};
const uint16_t gm_api_count = 3;

uint16_t gm_api_find(const char *symbol)
{
    (void)symbol;
    return 0;
}

struct gm_api_rows gm_api_rows(const char *name, size_t length)
{
    (void)name, (void)length;
    return (struct gm_api_rows){NULL, 0};
}

void gm_dlclose_watch(void (*code_may_change)(void))
{
    (void)code_may_change;
}

size_t gm_stack_size(void)
{
    return 64;
}

void gm_stack_reset(struct gm_stack *stack)
{
    (void)stack;
}

void gm_stack_take_over(struct gm_stack *stack)
{
    (void)stack;
}

void (*fake_capture)(void);

_Thread_local uint32_t fake_stack;

/* The tests say which stack they want to read back, and may stop here: the record has its time. */
uint32_t gm_stack_capture(struct gm_stack *stack, void *frame)
{
    (void)stack;
    (void)frame;
    if (fake_capture)
        fake_capture();
    return fake_stack;
}

void gm_stack_prepare(void)
{
}
