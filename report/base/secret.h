/* A number that nobody knows beforehand: a hostile trace cannot choose keys that our tables do badly
 * with. No output depends on it. */
#ifndef GPUMEM_REPORT_BASE_SECRET_H
#define GPUMEM_REPORT_BASE_SECRET_H

#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>

/* The same for the life of the process: the kernel draws it. */
static inline uint64_t gm_secret(void)
{
    const void *random = (const void *)getauxval(AT_RANDOM);
    uint64_t secret = 0;
    if (random)
        memcpy(&secret, random, sizeof(secret));
    return secret;
}

#endif
