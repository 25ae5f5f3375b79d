/* See settings.h. */
#include "replica/settings.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((uint64_t)1 << 20)
#define NAME_MAX_SIZE 64

void gm_allocator_settings_default(struct gm_allocator_settings *settings)
{
    *settings = (struct gm_allocator_settings){.max_split_size = UINT64_MAX,
                                               .max_non_split_rounding = 20 * MIB,
                                               .large_segment = 20 * MIB};
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

static bool refuse(char *error, size_t size, const char *name, const char *why)
{
    snprintf(error, size, "%s %s", name, why);
    return false;
}

static bool parse_number(const char *text, double least, double most, double *value)
{
    char *end;
    if (!((text[0] >= '0' && text[0] <= '9') || text[0] == '.') ||
        (text[0] == '0' && (text[1] | 32) == 'x'))
        return false;
    *value = strtod(text, &end);
    return *end == 0 && isfinite(*value) && *value >= least && *value <= most;
}

static bool parse_bool(const char *text, bool *value)
{
    *value = strcmp(text, "True") == 0 || strcmp(text, "true") == 0 || strcmp(text, "1") == 0;
    return *value || strcmp(text, "False") == 0 || strcmp(text, "false") == 0 ||
           strcmp(text, "0") == 0;
}

static bool parse_division(const char *text, unsigned *value)
{
    double number;
    if (!parse_number(text, 1, 1 << 20, &number))
        return false;
    *value = (unsigned)number;
    return *value == number && (*value & (*value - 1)) == 0; /* a power of two */
}

/* "[256:1,512:2,>:4]": sizes in MiB, and the divisions from there to the next size that is named. */
static bool parse_divisions(char *text, unsigned divisions[GM_DIVISIONS])
{
    unsigned value;
    size_t size = strlen(text), last = 0;
    bool is_first = true;
    if (text[0] != '[') {
        if (!parse_division(text, &value))
            return false;
        for (size_t i = 0; i < GM_DIVISIONS; i++)
            divisions[i] = value;
        return true;
    }
    if (size < 2 || text[size - 1] != ']')
        return false;
    text[size - 1] = 0;
    for (char *rest = text + 1, *one; (one = strsep(&rest, ","));) {
        char *colon = strpbrk(one, ":=");
        double mib;
        if (!colon)
            return false;
        *colon = 0;
        if (!parse_division(colon + 1, &value))
            return false;
        if (strcmp(one, ">") == 0) {
            for (size_t i = last; i < GM_DIVISIONS; i++)
                divisions[i] = value;
            continue;
        }
        if (!parse_number(one, 1, 1 << 20, &mib))
            return false;
        size_t index = (size_t)(63 - __builtin_clzll((uint64_t)mib));
        index = index < GM_DIVISIONS ? index : GM_DIVISIONS - 1;
        for (size_t i = 0; is_first && i < index; i++)
            divisions[i] = value;
        divisions[index] = value;
        is_first = false;
        last = index + 1;
    }
    return true;
}

static bool is_known(const char *name)
{
    static const char *const names[] = {"release_lock_on_cudamalloc",
                                        "pinned_use_cuda_host_register",
                                        "pinned_num_register_threads",
                                        "pinned_use_background_threads",
                                        "pinned_reserve_segment_size_mb",
                                        "pinned_max_round_threshold_mb",
                                        "pinned_max_cached_size_mb",
                                        "pinned_max_power2_size_mb",
                                        "graph_capture_record_stream_reuse",
                                        "throw_on_cudamalloc_oom",
                                        "use_uvm",
                                        "initial_blocks"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

static bool apply(struct gm_allocator_settings *settings, const char *name, char *value,
                  char *error, size_t size)
{
    double number;
    if (strcmp(name, "max_split_size_mb") == 0) {
        if (!parse_number(value, 21, 1 << 24, &number))
            return refuse(error, size, name, "is a number of MiB above 20");
        settings->max_split_size = (uint64_t)number * MIB;
    } else if (strcmp(name, "max_non_split_rounding_mb") == 0) {
        if (!parse_number(value, 21, 1 << 24, &number))
            return refuse(error, size, name, "is a number of MiB above 20");
        settings->max_non_split_rounding = (uint64_t)number * MIB;
    } else if (strcmp(name, "large_segment_size_mb") == 0) {
        if (!parse_number(value, 20, 1 << 24, &number) || (uint64_t)number % 2)
            return refuse(error, size, name, "is an even number of MiB from 20 on");
        settings->large_segment = (uint64_t)number * MIB;
    } else if (strcmp(name, "garbage_collection_threshold") == 0) {
        if (!parse_number(value, 0, 1, &number) || number <= 0 || number >= 1)
            return refuse(error, size, name, "is a share between 0 and 1");
        settings->gc_threshold = number;
    } else if (strcmp(name, "per_process_memory_fraction") == 0) {
        if (!parse_number(value, 0, 1, &number) || number <= 0)
            return refuse(error, size, name, "is a share above 0, at most 1");
        settings->memory_fraction = number;
    } else if (strcmp(name, "expandable_segments") == 0) {
        if (!parse_bool(value, &settings->expandable))
            return refuse(error, size, name, "is True or False");
    } else if (strcmp(name, "roundup_power2_divisions") == 0) {
        if (!parse_divisions(value, settings->divisions))
            return refuse(error, size, name,
                          "is a power of two, or a list such as [256:1,512:2,>:4]");
    } else if (strcmp(name, "backend") == 0) {
        settings->async = strcmp(value, "cudaMallocAsync") == 0;
        if (!settings->async && strcmp(value, "native") != 0)
            return refuse(error, size, name, "is native or cudaMallocAsync");
    } else if (!is_known(name)) {
        return refuse(error, size, name, "is no setting that PyTorch's allocator has");
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
            return refuse(error, error_size, "the list of settings", "is too long");
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
            return refuse(error, error_size, "a setting",
                          "is name:value, with a name of PyTorch's");
        if (!apply(settings, at, value, error, error_size))
            return false;
        at += end + more;
    }
    return true;
}
