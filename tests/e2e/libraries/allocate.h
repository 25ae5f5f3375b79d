/* Libraries named as known ones, each with one function that allocates. */
#ifndef GM_TESTS_ALLOCATE_H
#define GM_TESTS_ALLOCATE_H

#include <stddef.h>

typedef void *allocator(void *next, size_t size); /* `next`: another one, or NULL */

void *allocate_nccl(void *next, size_t size);
void *allocate_cudnn(void *next, size_t size);
void *allocate_torch(void *next, size_t size);
void *allocate_c10(void *next, size_t size);
void *allocate_mine(void *next, size_t size);

#endif
