/*
 * Marks and ranges of two threads, without CUDA. Prints its calls, so that the test need not know
 * them. Each kind of difficult name occurs once: NULL, empty, too long.
 */
#include <errno.h>
#include <gpumem/gpumem.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static char too_long[5000];

static void *other_thread(void *unused)
{
    gpumem_range_push("thread");
    gpumem_mark("in the thread");
    gpumem_range_pop();
    return unused;
}

int main(void)
{
    pthread_t thread;
    void (*volatile by_pointer)(const char *) = gpumem_mark;

    memset(too_long, 'x', sizeof too_long - 1);
    errno = ERANGE;
    gpumem_range_push("outer");
    gpumem_mark(NULL);
    gpumem_mark("");
    gpumem_mark(too_long);
    by_pointer("by pointer");
    for (int i = 0; i < 1000; i++)
        gpumem_mark("step");
    gpumem_range_pop();
    if (errno != ERANGE)
        puts("errno changed");
    if (pthread_create(&thread, NULL, other_thread, NULL) == 0)
        pthread_join(thread, NULL);
    gpumem_range_pop(); /* one too many */
    puts("done");
    return 0;
}
