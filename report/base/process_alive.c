/* See process_alive.h. */
#include "base/process_alive.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool read_file(const char *path, char *text, size_t size)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t length = fread(text, 1, size - 1, file);
    fclose(file);
    text[length] = 0;
    return length > 0;
}

static bool same_boot(const struct gm_trace_header *header)
{
    char boot[64];
    if (!read_file("/proc/sys/kernel/random/boot_id", boot, sizeof(boot)))
        return false;
    boot[strcspn(boot, "\n")] = 0;
    return strncmp(boot, header->boot_id, sizeof(header->boot_id)) == 0;
}

bool gm_process_alive(const struct gm_trace_header *header)
{
    char path[32], text[1024];
    snprintf(path, sizeof(path), "/proc/%" PRIu32 "/stat", header->pid);
    if (!same_boot(header) || !read_file(path, text, sizeof(text)))
        return false;
    /* Field 22, counted behind the name in parentheses, which may hold blanks and parentheses. */
    const char *at = strrchr(text, ')');
    if (!at || at[1] == 0 || at[2] == 'Z' || at[2] == 'X')
        return false; /* a zombie records no more */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at && strtoull(at, NULL, 10) == header->process_start;
}
