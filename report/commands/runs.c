/* See runs.h. */
#include "commands/runs.h"
#include "base/clock.h"
#include "base/memory.h"
#include "base/size.h"
#include "commands/command.h"
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A file of the folder, and the process that it is of. Times are of the machine's monotonic clock.
 */
struct candidate {
    char *name;
    struct timespec written;
    bool is_trace; /* the header could be read */
    bool is_member;
    uint64_t born;
    uint64_t gone;
    struct gm_trace_header header;
};

struct folder {
    struct candidate *entries;
    size_t count;
    size_t capacity;
};

/* ---- processes ------------------------------------------------------------------------------- */

/* The kernel tells the start of a process in ticks, of which a part may have passed before. The
 * header is made at the first recorded call, which is later. */
static uint64_t birth_of(const struct gm_trace_header *header)
{
    uint64_t tick = UINT64_C(1000000000) / (uint64_t)sysconf(_SC_CLK_TCK);
    uint64_t first = header->clock_start.monotonic_ns;
    if (!header->process_start || header->process_start >= first / tick)
        return first;
    return (header->process_start + 1) * tick;
}

/* Without a mark of its end a process lived as long as its file was written to. */
static uint64_t end_of(const struct gm_trace_header *header, const struct timespec *written)
{
    struct gm_clock_scale scale = gm_clock_scale(header);
    const struct gm_clock_pair *start = &header->clock_start;
    uint64_t latest = header->clock_latest[header->clock_latest_index & 1].monotonic_ns;
    uint64_t end = start->monotonic_ns;
    if (header->end != GM_END_NONE)
        end += gm_clock_elapsed(&scale, header->end_time);
    else if (written->tv_sec >= 0) {
        uint64_t real =
            (uint64_t)written->tv_sec * UINT64_C(1000000000) + (uint64_t)written->tv_nsec;
        end += real > start->realtime_ns ? real - start->realtime_ns : 0;
    }
    return latest > end ? latest : end;
}

static bool is_same_machine(const struct gm_trace_header *a, const struct gm_trace_header *b)
{
    return memcmp(a->boot_id, b->boot_id, sizeof(a->boot_id)) == 0 &&
           memcmp(a->host, b->host, sizeof(a->host)) == 0 && a->pid_namespace == b->pid_namespace;
}

static bool overlap(const struct candidate *a, const struct candidate *b)
{
    return a->born <= b->gone && b->born <= a->gone;
}

/* One process has one trace at a time, and after an exec another one. */
static bool is_same_process(const struct candidate *a, const struct candidate *b)
{
    return a->header.pid == b->header.pid && a->header.process_start == b->header.process_start;
}

static bool is_parent(const struct candidate *parent, const struct candidate *child)
{
    return child->header.parent_pid != 0 && child->header.parent_pid == parent->header.pid &&
           parent->born <= child->born && child->born <= parent->gone;
}

static bool is_tied(const struct candidate *a, const struct candidate *b)
{
    if (is_same_process(a, b))
        return a->header.process_start != 0 && a->header.generation != b->header.generation;
    if (is_parent(a, b) || is_parent(b, a))
        return true;
    return a->header.parent_pid != 0 && a->header.parent_pid == b->header.parent_pid &&
           overlap(a, b);
}

/* ---- the run of a trace ---------------------------------------------------------------------- */

/* Takes in all that is tied to a member, and what is tied to that. */
static void take_tied(struct folder *folder, const struct candidate *newest)
{
    size_t *queue = gm_allocate(folder->count + 1, sizeof(*queue)), count = 0;
    for (size_t i = 0; i < folder->count; i++)
        if (folder->entries[i].is_member)
            queue[count++] = i;
    for (size_t at = 0; at < count; at++)
        for (size_t i = 0; i < folder->count; i++) {
            struct candidate *other = &folder->entries[i];
            if (other->is_member || !other->is_trace || other->header.run_id[0] ||
                !is_same_machine(&newest->header, &other->header) ||
                !is_tied(&folder->entries[queue[at]], other))
                continue;
            other->is_member = true;
            queue[count++] = i;
        }
    free(queue);
}

static void choose(struct folder *folder, struct candidate *newest)
{
    const char *run_id = newest->header.run_id;
    newest->is_member = true;
    if (!newest->is_trace)
        return;
    for (size_t i = 0; i < folder->count; i++) {
        struct candidate *other = &folder->entries[i];
        if (!other->is_trace || other == newest)
            continue;
        if (run_id[0] || other->header.run_id[0])
            other->is_member =
                strncmp(run_id, other->header.run_id, sizeof(newest->header.run_id)) == 0;
        else
            other->is_member = is_same_machine(&newest->header, &other->header) &&
                               !is_same_process(newest, other) && overlap(newest, other);
    }
    if (!run_id[0])
        take_tied(folder, newest);
}

/* ---- the folder ------------------------------------------------------------------------------ */

bool gm_run_read_header(int folder, const char *name, struct gm_trace_header *header)
{
    /* Links too: the recorder leaves one where it had to write elsewhere. Nothing but files is
     * opened. */
    struct stat status;
    if (fstatat(folder, name, &status, 0) != 0 || !S_ISREG(status.st_mode))
        return false;
    int descriptor = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return false;
    bool good = fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
                pread(descriptor, header, sizeof(*header), 0) == (ssize_t)sizeof(*header) &&
                memcmp(header->magic, GM_TRACE_MAGIC, sizeof(header->magic)) == 0;
    close(descriptor);
    return good;
}

static bool is_trace_name(const char *name)
{
    size_t length = strlen(name);
    return length > 6 && strcmp(name + length - 6, ".trace") == 0;
}

static void add(struct folder *folder, int descriptor, const char *name)
{
    struct stat status;
    if (!is_trace_name(name) || fstatat(descriptor, name, &status, 0) != 0 ||
        !S_ISREG(status.st_mode))
        return;
    GM_RESERVE(folder->entries, folder->capacity, folder->count + 1);
    struct candidate *entry = &folder->entries[folder->count++];
    *entry = (struct candidate){.name = gm_copy_text(name), .written = status.st_mtim};
    entry->is_trace = gm_run_read_header(descriptor, name, &entry->header);
    if (!entry->is_trace)
        return;
    entry->born = birth_of(&entry->header);
    entry->gone = end_of(&entry->header, &entry->written);
}

/* The later of two times; of equal ones the greater name, so that the answer is always the same. */
static bool is_newer(const struct candidate *a, const struct candidate *b)
{
    if (a->written.tv_sec != b->written.tv_sec)
        return a->written.tv_sec > b->written.tv_sec;
    if (a->written.tv_nsec != b->written.tv_nsec)
        return a->written.tv_nsec > b->written.tv_nsec;
    return strcmp(a->name, b->name) > 0;
}

static int by_birth(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    if (a->born != b->born)
        return a->born < b->born ? -1 : 1;
    return strcmp(a->name, b->name);
}

static void take_members(struct folder *folder, struct gm_run_traces *run)
{
    qsort(folder->entries, folder->count, sizeof(*folder->entries), by_birth);
    for (size_t i = 0; i < folder->count; i++) {
        if (!folder->entries[i].is_member) {
            run->left_out++;
            continue;
        }
        GM_RESERVE(run->paths, run->capacity, run->count + 1);
        run->paths[run->count++] = gm_copy_text(folder->entries[i].name);
    }
}

bool gm_newest_run(struct gm_run_traces *run)
{
    struct folder folder = {0};
    DIR *entries = opendir(".");
    *run = (struct gm_run_traces){0};
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        add(&folder, AT_FDCWD, entry->d_name);
    if (entries)
        closedir(entries);
    struct candidate *newest = folder.entries;
    for (size_t i = 1; i < folder.count; i++)
        if (is_newer(&folder.entries[i], newest))
            newest = &folder.entries[i];
    if (newest) {
        choose(&folder, newest);
        take_members(&folder, run);
    } else {
        gm_complain("no *.trace file in this folder; record one with: gpumem run -- COMMAND");
    }
    for (size_t i = 0; i < folder.count; i++)
        free(folder.entries[i].name);
    free(folder.entries);
    return run->count != 0;
}

void gm_run_tell(const struct gm_run_traces *run)
{
    if (run->count > 1 || run->left_out)
        fprintf(stderr, "gpumem: the newest run has %zu trace%s; left out: %zu of other runs\n",
                run->count, gm_plural(run->count), run->left_out);
}

bool gm_run_if_none_named(struct gm_run_traces *run, char ***paths, size_t *count)
{
    if (*count)
        return true;
    if (!gm_newest_run(run))
        return false;
    gm_run_tell(run);
    *paths = run->paths;
    *count = run->count;
    return true;
}

void gm_run_free(struct gm_run_traces *run)
{
    for (size_t i = 0; i < run->count; i++)
        free(run->paths[i]);
    free(run->paths);
}
