/* See process_alive.h. */
#include "base/process_alive.h"
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool read_process_file(const char *path, char *text, size_t size)
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
    if (!read_process_file("/proc/sys/kernel/random/boot_id", boot, sizeof(boot)))
        return false;
    boot[strcspn(boot, "\n")] = 0;
    return strncmp(boot, header->boot_id, sizeof(header->boot_id)) == 0;
}

uint64_t gm_process_start(const char *pid)
{
    char path[64], text[1024];
    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    if (!read_process_file(path, text, sizeof(text)))
        return 0;
    /* Field 22, counted behind the name in parentheses, which may hold blanks and parentheses. */
    const char *at = strrchr(text, ')');
    if (!at || at[1] == 0 || at[2] == 'Z' || at[2] == 'X')
        return 0; /* a zombie does no more */
    for (int field = 2; at && field < 22; field++)
        at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : 0;
}

/* Whether process `pid` of our own namespace began when the header says, and still runs. */
static bool is_the_one(const struct gm_trace_header *header, const char *pid)
{
    uint64_t start = gm_process_start(pid);
    return start && start == header->process_start;
}

/* ---- a process of another namespace ---------------------------------------------------------- */

/* The inode of the PID namespace that a process lives in; 0 where we may not know. */
static uint64_t namespace_of(const char *pid)
{
    char path[64];
    struct stat status;
    snprintf(path, sizeof(path), "/proc/%.20s/ns/pid", pid);
    return stat(path, &status) == 0 ? status.st_ino : 0;
}

/* The number that a process has in its own, innermost namespace; 0 if it cannot be read. */
static uint64_t own_number(const char *pid)
{
    char path[64], text[4096];
    snprintf(path, sizeof(path), "/proc/%.20s/status", pid);
    if (!read_process_file(path, text, sizeof(text)))
        return 0;
    char *line = strstr(text, "\nNSpid:");
    if (!line)
        return 0;
    line[1 + strcspn(line + 1, "\n")] = 0;
    const char *last = strrchr(line, '\t');
    return last ? strtoull(last, NULL, 10) : 0;
}

/* Looks through all processes that we see for the one that has the header's number in its own
 * namespace. Whose namespace we may not know is taken if number and start are right. */
static bool lives_elsewhere(const struct gm_trace_header *header)
{
    bool found = false;
    DIR *processes = opendir("/proc");
    if (!processes)
        return false;
    for (struct dirent *entry; !found && (entry = readdir(processes));) {
        const char *pid = entry->d_name;
        if (pid[0] < '1' || pid[0] > '9' || !is_the_one(header, pid) ||
            own_number(pid) != header->pid)
            continue;
        uint64_t lives_in = namespace_of(pid);
        found = lives_in == 0 || lives_in == header->pid_namespace;
    }
    closedir(processes);
    return found;
}

bool gm_process_alive(const struct gm_trace_header *header)
{
    char pid[16];
    if (!same_boot(header))
        return false;
    uint64_t own = namespace_of("self");
    if (header->pid_namespace && own && own != header->pid_namespace)
        return lives_elsewhere(header);
    snprintf(pid, sizeof(pid), "%" PRIu32, header->pid);
    return is_the_one(header, pid);
}
