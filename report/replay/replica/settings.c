/* See settings.h. */
#include "replay/replica/settings.h"
#include "base/size.h"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_SIZE 64
#define LEAST_SPLIT 20   /* MiB; up to PyTorch 2.7 it was 21 */
#define LEAST_SEGMENT 11 /* MiB */

void gm_allocator_settings_default(struct gm_allocator_settings *settings)
{
    *settings = (struct gm_allocator_settings){.max_split_size = UINT64_MAX,
                                               .max_non_split_rounding = 20 * GM_MIB,
                                               .large_segment = 20 * GM_MIB};
}

bool gm_allocator_settings_are_equal(const struct gm_allocator_settings *a,
                                     const struct gm_allocator_settings *b)
{
    for (size_t i = 0; i < GM_DIVISIONS; i++)
        if (a->divisions[i] != b->divisions[i])
            return false;
    return a->max_split_size == b->max_split_size &&
           a->max_non_split_rounding == b->max_non_split_rounding &&
           a->large_segment == b->large_segment && a->gc_threshold == b->gc_threshold &&
           a->memory_fraction == b->memory_fraction && a->expandable == b->expandable &&
           a->async == b->async && a->oldest_first == b->oldest_first;
}

unsigned gm_allocator_divisions(const struct gm_allocator_settings *settings, uint64_t size)
{
    int log = 63 - __builtin_clzll(size | 1), index = log - 20;
    index = index < 0 ? 0 : index >= GM_DIVISIONS ? GM_DIVISIONS - 1 : index;
    return settings->divisions[index];
}

/* ---- one setting ----------------------------------------------------------------------------- */

static bool refuse_setting(char *error, size_t size, const char *name, const char *why)
{
    snprintf(error, size, "%s %s", name, why);
    return false;
}

/*
 * Numbers as PyTorch's std::stoll and std::stod take them: what follows the number is passed over, so "64MB" is 64.
 * What such a function refuses, or takes for a negative number, is refused here.
 */
static bool parse_whole(const char *text, uint64_t *value)
{
    char *end;
    if (!(text[0] >= '0' && text[0] <= '9'))
        return false;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return errno == 0 && *value <= INT64_MAX;
}

static bool parse_mib(const char *text, uint64_t least, uint64_t *bytes)
{
    uint64_t mib;
    if (!parse_whole(text, &mib) || mib < least)
        return false;
    *bytes = mib < (UINT64_MAX / GM_MIB) ? mib * GM_MIB : UINT64_MAX;
    return true;
}

static bool parse_share(const char *text, double *value)
{
    bool is_decimal = (text[0] >= '0' && text[0] <= '9') || text[0] == '.';
    if (!is_decimal || (text[0] == '0' && (text[1] | 32) == 'x'))
        return false;
    *value = strtod(text, NULL);
    return isfinite(*value) && *value >= 0 && *value <= 1;
}

static bool parse_bool(const char *text, bool *value)
{
    *value = strcmp(text, "True") == 0;
    return *value || strcmp(text, "False") == 0;
}

/* A power of two; 0 (none) only in a list. */
static bool parse_division(const char *text, bool is_listed, unsigned *value)
{
    uint64_t number;
    if (!parse_whole(text, &number) || number > 1 << 20 || (number & (number - 1)) != 0)
        return false;
    *value = (unsigned)number;
    return number || is_listed;
}

/* One of a list: "256:4", or ">:2" for all sizes behind the one that was named last. */
static bool parse_interval(char *text, size_t *last, bool *is_first,
                           unsigned divisions[GM_DIVISIONS])
{
    char *colon = strpbrk(text, ":=");
    unsigned value;
    uint64_t mib;
    if (!colon || !parse_division(colon + 1, true, &value))
        return false;
    *colon = 0;
    if (strcmp(text, ">") == 0) {
        for (size_t i = *last + 1; i < GM_DIVISIONS; i++)
            divisions[i] = value;
        return true;
    }
    if (!parse_whole(text, &mib) || mib == 0 || (mib & (mib - 1)) != 0)
        return false;
    size_t index = (size_t)(63 - __builtin_clzll(mib));
    index = index < GM_DIVISIONS ? index : GM_DIVISIONS - 1;
    for (size_t i = 0; *is_first && i < index; i++)
        divisions[i] = value;
    divisions[index] = value;
    *is_first = false;
    *last = index;
    return true;
}

/* "[256:1,512:2,>:4]": sizes in MiB, each with the divisions up to twice that. */
static bool parse_divisions(char *text, unsigned divisions[GM_DIVISIONS])
{
    size_t size = strlen(text), last = 0;
    bool is_first = true;
    if (text[0] != '[') {
        unsigned value;
        if (!parse_division(text, false, &value))
            return false;
        for (size_t i = 0; i < GM_DIVISIONS; i++)
            divisions[i] = value;
        return true;
    }
    if (size < 2 || text[size - 1] != ']')
        return false;
    text[size - 1] = 0;
    if (size == 2)
        return true;
    for (char *rest = text + 1, *one; (one = strsep(&rest, ","));)
        if (!parse_interval(one, &last, &is_first, divisions))
            return false;
    return true;
}

/* What changes no place, in any of PyTorch's versions from 2.1 to 2.15. */
static bool is_known(const char *name)
{
    static const char *const names[] = {
        "expandable_segments_reserve",       "expandable_segments_reserve_by_class",
        "graph_capture_record_stream_reuse", "pinned_free_catch_all",
        "pinned_max_cached_size_mb",         "pinned_max_round_threshold_mb",
        "pinned_num_register_threads",       "pinned_reserve_segment_size_mb",
        "pinned_use_background_threads",     "pinned_use_cuda_host_register",
        "pinned_use_hip_host_register",      "release_lock_on_cudamalloc",
        "release_lock_on_hipmalloc",         "throw_on_cudamalloc_oom"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool apply(struct gm_allocator_settings *settings, const char *name, char *value,
                  char *error, size_t size)
{
    double share;
    if (strcmp(name, "max_split_size_mb") == 0) {
        if (!parse_mib(value, LEAST_SPLIT, &settings->max_split_size))
            return refuse_setting(error, size, name, "is a number of MiB, from 20 on");
    } else if (strcmp(name, "max_non_split_rounding_mb") == 0) {
        if (!parse_mib(value, LEAST_SPLIT, &settings->max_non_split_rounding))
            return refuse_setting(error, size, name, "is a number of MiB, from 20 on");
    } else if (strcmp(name, "large_segment_size_mb") == 0) {
        if (!parse_mib(value, LEAST_SEGMENT, &settings->large_segment) ||
            settings->large_segment > INT64_MAX)
            return refuse_setting(error, size, name, "is a number of MiB above 10");
    } else if (strcmp(name, "garbage_collection_threshold") == 0) {
        if (!parse_share(value, &share) || share <= 0 || share >= 1)
            return refuse_setting(error, size, name, "is a share between 0 and 1");
        settings->gc_threshold = share;
    } else if (strcmp(name, "per_process_memory_fraction") == 0) {
        if (!parse_share(value, &share) || share <= 0)
            return refuse_setting(error, size, name, "is a share above 0, at most 1");
        settings->memory_fraction = share;
    } else if (strcmp(name, "expandable_segments") == 0) {
        if (!parse_bool(value, &settings->expandable))
            return refuse_setting(error, size, name, "is True or False");
    } else if (strcmp(name, "roundup_power2_divisions") == 0) {
        if (!parse_divisions(value, settings->divisions))
            return refuse_setting(error, size, name,
                                  "is a power of two, or a list such as [256:1,512:2,>:4]");
    } else if (strcmp(name, "backend") == 0) {
        settings->async = strcmp(value, "cudaMallocAsync") == 0;
        if (!settings->async && strcmp(value, "native") != 0)
            return refuse_setting(error, size, name, "is native or cudaMallocAsync");
    } else if (!is_known(name)) {
        return refuse_setting(error, size, name, "is no setting that PyTorch's allocator has");
    }
    return true;
}

/* ---- a list ---------------------------------------------------------------------------------- */

/* The end of what stands before the next comma outside of brackets. */
static size_t end_of_one(const char *text)
{
    size_t at = 0;
    for (int depth = 0; text[at] && (depth || text[at] != ','); at++)
        depth += text[at] == '[' ? 1 : text[at] == ']' ? -1 : 0;
    return at;
}

static bool is_name(const char *text)
{
    return *text && text[strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_")] == 0;
}

bool gm_allocator_settings_apply(struct gm_allocator_settings *settings, struct gm_text text,
                                 char *error, size_t error_size)
{
    char copy[1024];
    size_t size = 0;
    for (size_t i = 0; i < text.size && text.bytes[i]; i++) {
        if (text.bytes[i] == ' ')
            continue;
        if (size == sizeof(copy) - 1)
            return refuse_setting(error, error_size, "the list of settings", "is too long");
        copy[size++] = text.bytes[i];
    }
    copy[size] = 0;
    for (char *at = copy; *at;) {
        size_t end = end_of_one(at);
        bool more = at[end] == ',';
        at[end] = 0;
        char *value = strpbrk(at, ":=");
        if (value)
            *value++ = 0;
        if (!value || !is_name(at) || strlen(at) >= NAME_MAX_SIZE)
            return refuse_setting(error, error_size, "a setting",
                                  "is name:value, with a name of PyTorch's");
        if (!apply(settings, at, value, error, error_size))
            return false;
        at += end + more;
    }
    return true;
}
