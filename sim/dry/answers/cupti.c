/* CUPTI: nothing is ever traced, and every record list is empty. */
#include "common.h"

#ifndef CUPTI_API_VERSION
#define CUPTI_API_VERSION 18
#endif

ANSWER(cuptiGetVersion, uint32_t *version)
{
    if (version)
        *version = CUPTI_API_VERSION;
    return 0;
}

ANSWER(cuptiActivityGetNextRecord, void *buffer, size_t bytes, void **record)
{
    (void)buffer, (void)bytes;
    if (record)
        *record = NULL;
    return 12; /* CUPTI_ERROR_MAX_LIMIT_REACHED: no more records */
}

ANSWER(cuptiGetTimestamp, uint64_t *nanoseconds)
{
    if (nanoseconds)
        *nanoseconds = 1;
    return 0;
}

ANSWER(cuptiGetResultString, int result, const char **text)
{
    (void)result;
    if (text)
        *text = "simulated CUPTI";
    return 0;
}
