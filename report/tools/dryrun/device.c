/* See device.h. */
#include "tools/dryrun/device.h"
#include "base/complain.h"
#include "base/memory.h"
#include "base/size.h"
#include "base/text.h"
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char suffix[] = ".device";

#define NCCL_UNTOLD (UINT64_C(512) << 20) /* where a device's file does not say: docs/dry-run.md */

static void copy_value(char *to, size_t size, const char *from)
{
    snprintf(to, size, "%s", from);
    gm_clean_text(to);
}

static bool read_capability(const char *value, char cc[8])
{
    char *end;
    unsigned long major = strtoul(value, &end, 10);
    if (!isdigit((unsigned char)*value) || major < 5 || major > 99 || end[0] != '.' ||
        !isdigit((unsigned char)end[1]) || end[2])
        return false;
    snprintf(cc, 8, "%lu.%c", major, end[1]);
    return true;
}

static bool read_count(const char *value, unsigned long most, unsigned *count)
{
    char *end;
    unsigned long number = strtoul(value, &end, 10);
    if (!isdigit((unsigned char)*value) || *end || number < 1 || number > most)
        return false;
    *count = (unsigned)number;
    return true;
}

static bool set_property(struct gm_dry_device *device, const char *key, const char *value)
{
    if (strcmp(key, "name") == 0)
        copy_value(device->name, sizeof(device->name), value);
    else if (strcmp(key, "also") == 0)
        copy_value(device->also, sizeof(device->also), value);
    else if (strcmp(key, "source") == 0)
        copy_value(device->source, sizeof(device->source), value);
    else if (strcmp(key, "cc") == 0)
        return read_capability(value, device->cc);
    else if (strcmp(key, "sms") == 0)
        return read_count(value, 4096, &device->sms);
    else if (strcmp(key, "kernels") == 0)
        return read_count(value, 999, &device->kernels);
    else if (strcmp(key, "memory") == 0)
        return gm_size_parse(value, &device->memory);
    else if (strcmp(key, "context") == 0)
        return gm_size_parse(value, &device->context);
    else if (strcmp(key, "nccl") == 0)
        return gm_size_parse(value, &device->nccl);
    else if (strcmp(key, "nccl-rank") == 0)
        return gm_size_parse(value, &device->nccl_rank);
    else
        return false;
    return true;
}

static char *trimmed(char *text)
{
    size_t length = strlen(text);
    while (length && isspace((unsigned char)text[length - 1]))
        text[--length] = 0;
    while (isspace((unsigned char)*text))
        text++;
    return text;
}

static bool is_whole_profile(const struct gm_dry_device *device, const char *path)
{
    const char *missing = !device->name[0]                     ? "name"
                          : !device->cc[0]                     ? "cc"
                          : !device->sms                       ? "sms"
                          : device->memory < (1 << 20)         ? "memory, of 1 MiB or more"
                          : device->context >= device->memory  ? "context below memory"
                          : device->memory > UINT64_C(1) << 40 ? "memory, of 1 TiB or less"
                                                               : NULL;
    if (missing)
        gm_complain("%s: no %s", path, missing);
    return !missing;
}

bool gm_dry_device_read(struct gm_dry_device *device, const char *path)
{
    char line[1024];
    FILE *file = fopen(path, "re");
    *device = (struct gm_dry_device){.nccl = NCCL_UNTOLD};
    if (!file) {
        gm_complain("%s: %s", path, strerror(errno));
        return false;
    }
    bool good = true;
    for (unsigned number = 1; good && fgets(line, sizeof(line), file); number++) {
        char *key = trimmed(line), *value = strchr(key, '=');
        if (*key == '#' || !*key)
            continue;
        if (value)
            *value++ = 0;
        good = value && set_property(device, trimmed(key), trimmed(value));
        if (!good)
            gm_complain("%s:%u: not understood", path, number);
    }
    fclose(file);
    return good && is_whole_profile(device, path);
}

/* Whether two names are the same to a person. */
static bool matches_text(const char *a, const char *b, size_t length)
{
    const char *end = b + length;
    for (;;) {
        while (*a && strchr(" -_", *a))
            a++;
        while (b < end && strchr(" -_", *b))
            b++;
        if (!*a || b == end)
            return !*a && b == end;
        if (tolower((unsigned char)*a++) != tolower((unsigned char)*b++))
            return false;
    }
}

static bool has_device_name(const struct gm_dry_device *device, const char *stem, size_t length,
                            const char *name)
{
    if (matches_text(name, stem, length) || matches_text(name, device->name, strlen(device->name)))
        return true;
    for (const char *also = device->also; *also;) {
        size_t word = strcspn(also, " ");
        if (word && matches_text(name, also, word))
            return true;
        also += word + (also[word] != 0);
    }
    return false;
}

static int by_profile_name(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

bool gm_dry_device_find(struct gm_dry_device *device, const char *name, const char *folder)
{
    if (strchr(name, '/') || strstr(name, suffix))
        return gm_dry_device_read(device, name);
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, by_profile_name);
    bool found = false;
    char names[1024] = "";
    for (int i = 0; i < count; i++) {
        size_t length = strlen(entries[i]->d_name);
        char path[PATH_MAX];
        if (!found && length > strlen(suffix) &&
            strcmp(entries[i]->d_name + length - strlen(suffix), suffix) == 0) {
            size_t stem = length - strlen(suffix), used = strlen(names);
            snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
            snprintf(names + used, sizeof(names) - used, " %.*s", (int)stem, entries[i]->d_name);
            found = gm_dry_device_read(device, path) &&
                    has_device_name(device, entries[i]->d_name, stem, name);
        }
        free(entries[i]);
    }
    free(entries);
    if (!found)
        gm_complain("--device: '%s' is none of%s, nor a file", name, names);
    return found;
}
