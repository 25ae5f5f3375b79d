/* See profile.h. */
#include "profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    int capability, threads, blocks, shared;
} generations[] = {
    {75, 1024, 16, 65536},   {80, 2048, 32, 167936},  {86, 1536, 16, 102400},
    {87, 1536, 16, 167936},  {89, 1536, 24, 102400},  {90, 2048, 32, 233472},
    {100, 2048, 32, 233472}, {103, 2048, 32, 233472}, {120, 1536, 24, 102400},
};

#define DEFAULT                                                                                    \
    {                                                                                              \
        .major = 9, .sms = 108, .kernels = 90, .l2_bytes = 41943040, .threads_per_sm = 2048,       \
        .blocks_per_sm = 32, .shared_per_sm = 233472, .name = "gpumem simulated GPU"               \
    }

struct gpusim_profile gpusim_profile = DEFAULT;

/* A generation that is not listed is like the nearest below it. */
static void fill_in_generation(struct gpusim_profile *profile)
{
    int capability = profile->major * 10 + profile->minor;

    for (size_t i = 0; i < sizeof(generations) / sizeof(generations[0]); i++)
        if (i == 0 || generations[i].capability <= capability) {
            profile->threads_per_sm = generations[i].threads;
            profile->blocks_per_sm = generations[i].blocks;
            profile->shared_per_sm = generations[i].shared;
        }
}

static bool read_profile_number(const char *text, int lowest, int highest, int *number)
{
    char *end;
    long value = strtol(text, &end, 10);

    if (end == text || *end || value < lowest || value > highest)
        return false;
    *number = (int)value;
    return true;
}

static bool read_key(const char *key, const char *value, struct gpusim_profile *profile)
{
    int length = 0;

    if (strcmp(key, "cc") == 0)
        return sscanf(value, "%2d.%1d%n", &profile->major, &profile->minor, &length) == 2 &&
               !value[length] && profile->major >= 5 && profile->minor >= 0;
    if (strcmp(key, "sms") == 0)
        return read_profile_number(value, 1, 4096, &profile->sms);
    if (strcmp(key, "kernels") == 0)
        return read_profile_number(value, 50, 999, &profile->kernels);
    if (strcmp(key, "l2") == 0)
        return read_profile_number(value, 0, 1 << 30, &profile->l2_bytes);
    return false;
}

bool gpusim_profile_read(const char *text)
{
    struct gpusim_profile profile = DEFAULT;
    char copy[512], *rest = copy;

    profile.kernels = 0;
    if (strlen(text) >= sizeof(copy))
        return false;
    strcpy(copy, text);
    while (rest && *rest) {
        char *key = rest, *value = strchr(key, '=');

        if (!value)
            return false;
        *value++ = '\0';
        if (strcmp(key, "name") == 0) {
            snprintf(profile.name, sizeof(profile.name), "%.96s (gpumem simulated)", value);
            break;
        }
        rest = strchr(value, ',');
        if (rest)
            *rest++ = '\0';
        if (!read_key(key, value, &profile))
            return false;
    }
    fill_in_generation(&profile);
    if (!profile.kernels)
        profile.kernels = profile.major * 10 + profile.minor;
    gpusim_profile = profile;
    return true;
}

bool gpusim_profile_attribute(CUdevice_attribute attribute, int *value)
{
    const struct gpusim_profile *profile = &gpusim_profile;

    switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = profile->major;
        return true;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = profile->minor;
        return true;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = profile->sms;
        return true;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE:
        *value = profile->l2_bytes;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR:
        *value = profile->threads_per_sm;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR:
        *value = profile->blocks_per_sm;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR:
        *value = profile->shared_per_sm;
        return true;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
        *value = profile->shared_per_sm - (profile->major >= 8 ? 1024 : 0);
        return true;
    case CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK:
        *value = profile->major >= 8 ? 1024 : 0;
        return true;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH:
        *value = profile->major >= 9;
        return true;
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED: /* needs an NVSwitch, which cards of 12.x have none of */
        *value = profile->major == 9 || profile->major == 10;
        return true;
    default:
        return false;
    }
}
