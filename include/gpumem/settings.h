/*
 * The values of the GPUMEM_ variables: which are valid, and what they mean. The preload reads them
 * with these functions, and gpumem uses them to find values that were not understood, so that the
 * two cannot disagree. They use no malloc and no stdio, and treat values as untrusted.
 *
 * Every function returns false, and changes nothing, for an invalid value.
 */
#ifndef GPUMEM_SETTINGS_H
#define GPUMEM_SETTINGS_H

#include "trace.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define GM_RING_RECORDS_MIN 64u
#define GM_RING_RECORDS_MAX (1u << 20)
#define GM_DEPTH_MAX 256u
#define GM_FLIGHT_SIZE_MIN (16u << 10)
#define GM_FLIGHT_SIZE_MAX (UINT64_C(64) << 30)
#define GM_OUTPUT_MAX 512u /* bytes of GPUMEM_OUTPUT, with the end */

/* A decimal number with an optional K, M or G (powers of 1024). */
static inline bool gm_setting_size(const char *text, uint64_t *size)
{
    uint64_t value = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++) {
        value = value * 10 + (uint64_t)(*at - '0');
        if (value > UINT32_MAX)
            return false;
    }
    if (at == text)
        return false;
    unsigned shift = *at == 'K' ? 10 : *at == 'M' ? 20 : *at == 'G' ? 30 : 0;
    if (at[shift != 0])
        return false;
    *size = value << shift;
    return true;
}

/* GPUMEM_RING, bytes: the largest power of two of records that fits. */
static inline bool gm_setting_ring(const char *text, uint32_t *records)
{
    uint64_t size;
    if (!gm_setting_size(text, &size))
        return false;
    size /= sizeof(struct gm_record);
    if (size < GM_RING_RECORDS_MIN || size > GM_RING_RECORDS_MAX)
        return false;
    *records = GM_RING_RECORDS_MIN;
    while (*records * 2 <= size)
        *records *= 2;
    return true;
}

/* GPUMEM_DEPTH, frames. */
static inline bool gm_setting_depth(const char *text, uint32_t *depth)
{
    uint64_t value;
    if (!gm_setting_size(text, &value) || value < 1 || value > GM_DEPTH_MAX)
        return false;
    *depth = (uint32_t)value;
    return true;
}

/* GPUMEM_FLIGHT_SIZE, bytes. */
static inline bool gm_setting_flight_size(const char *text, uint64_t *size)
{
    uint64_t value;
    if (!gm_setting_size(text, &value) || value < GM_FLIGHT_SIZE_MIN || value > GM_FLIGHT_SIZE_MAX)
        return false;
    *size = value;
    return true;
}

/* GPUMEM_STACKS: a list of "native", "python", or "none". */
static inline bool gm_setting_stacks(const char *text, bool *native, bool *python)
{
    bool wants_native = false, wants_python = false;
    do {
        size_t length = strcspn(text, ",");
        if (length == 6 && strncmp(text, "native", 6) == 0)
            wants_native = true;
        else if (length == 6 && strncmp(text, "python", 6) == 0)
            wants_python = true;
        else if (!(length == 4 && strncmp(text, "none", 4) == 0))
            return false;
        text += length;
    } while (*text++);
    *native = wants_native;
    *python = wants_python;
    return true;
}

/* One of two words: GPUMEM_ON_FULL, GPUMEM_MODE, and "0" or "1". */
static inline bool gm_setting_choice(const char *text, const char *no, const char *yes,
                                     bool *is_yes)
{
    if (strcmp(text, no) != 0 && strcmp(text, yes) != 0)
        return false;
    *is_yes = strcmp(text, yes) == 0;
    return true;
}

/* Whether the value of the variable `name` is valid. An empty value counts as none, and every value
 * of another variable as valid. */
static inline bool gm_setting_is_understood(const char *name, const char *value)
{
    uint64_t size;
    uint32_t number;
    bool no, yes;
    if (!*value)
        return true;
    if (strcmp(name, "GPUMEM_OUTPUT") == 0)
        return strlen(value) < GM_OUTPUT_MAX;
    if (strcmp(name, "GPUMEM_RING") == 0)
        return gm_setting_ring(value, &number);
    if (strcmp(name, "GPUMEM_DEPTH") == 0)
        return gm_setting_depth(value, &number);
    if (strcmp(name, "GPUMEM_STACKS") == 0)
        return gm_setting_stacks(value, &no, &yes);
    if (strcmp(name, "GPUMEM_ON_FULL") == 0)
        return gm_setting_choice(value, "block", "drop", &yes);
    if (strcmp(name, "GPUMEM_MODE") == 0)
        return gm_setting_choice(value, "full", "flight", &yes);
    if (strcmp(name, "GPUMEM_FLIGHT_SIZE") == 0)
        return gm_setting_flight_size(value, &size);
    if (strcmp(name, "GPUMEM_TORCH") == 0 || strcmp(name, "GPUMEM_NVML") == 0 ||
        strcmp(name, "GPUMEM_NVTX") == 0 || strcmp(name, "GPUMEM_XLA") == 0)
        return gm_setting_choice(value, "0", "1", &yes);
    return true;
}

#endif
