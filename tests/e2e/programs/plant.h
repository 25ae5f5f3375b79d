/* How end-to-end programs report their planted leaks to the harness (run.py), and log the results
 * of the API. */
#ifndef GPUMEM_TESTS_PLANT_H
#define GPUMEM_TESTS_PLANT_H

#include <stdio.h>

/* `bytes` in `count` allocations leak at the line before this one, in this function. */
#define PLANTED(bytes, count)                                                                      \
    printf("LEAK function=%s line=%d bytes=%zu count=%d\n", __func__, __LINE__ - 1,                \
           (size_t)(bytes), (count))

/* Every API result goes to standard output: with and without the preload it must be the same. */
#define LOG(call) printf("%d %s\n", (int)(call), #call)

#endif
