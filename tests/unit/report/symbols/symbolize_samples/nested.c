/* Inlined calls three deep, a function split in a hot and a cold part, a return address and a
 * function inside a function. */
#include "marks.h"

static volatile int sink;
static volatile int trigger = 77;

static ALWAYS_INLINE int innermost(int value)
{
    MARK_HERE("innermost");
    return value * 3;
}

static ALWAYS_INLINE int middle(int value)
{
    int sum = value;

    for (int i = 0; i < 1 + (trigger == 0); i++) {
        int part = sum + i;
        sum += CALL("call_innermost", innermost(part));
    }
    return sum;
}

NOINLINE int outer(int value)
{
    MARK_HERE("outer");
    return CALL("call_middle", middle(value)) + 1;
}

__attribute__((noinline, cold)) void complain(int value)
{
    sink = value;
}

NOINLINE int split(int value)
{
    MARK_HERE("hot");
    if (__builtin_expect(value == 77, 0)) {
        complain(value);
        MARK_HERE("cold");
        complain(value + 1);
        value++;
    }
    return value + trigger;
}

NOINLINE int callee(int value)
{
    add_mark("return", (uintptr_t)__builtin_return_address(0) - 1, 0);
    return value + trigger;
}

NOINLINE int caller(int value)
{
    sink = value;
    int result = CALL("call_callee", callee(value));
    sink = result;
    return result;
}

#ifndef __clang__ /* an extension of GCC alone */
NOINLINE int holder(int value)
{
    NOINLINE int held(int more)
    {
        MARK_HERE("held");
        return more + value + trigger;
    }
    return held(value) + trigger;
}
#endif

int main(void)
{
    sink = outer(trigger);
    sink = split(trigger);
    sink = caller(trigger);
#ifndef __clang__
    sink = holder(trigger);
#endif
    return print_marks();
}
