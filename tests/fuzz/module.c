/* A small module with inlined functions, for the seeds of the fuzz target. It is never run. */
static inline __attribute__((always_inline)) int leaf(int x)
{
    volatile int y = x * 3;
    return y;
}

static inline __attribute__((always_inline)) int middle(int x)
{
    return leaf(x) + leaf(x + 1);
}

__attribute__((noinline)) static int outer(int x)
{
    return x > 3 ? middle(x) : outer(x + 1);
}

void _start(void);

void _start(void)
{
    for (;;)
        outer(middle(1));
}
