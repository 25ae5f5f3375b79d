/* See runs.h. */
#include "tools/runs/runs.h"
#include "base/clock.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/size.h"
#include "base/text.h"
#include "tools/runs/kept.h"
#include "tools/runs/run_note.h"
#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
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
static uint64_t run_end(const struct gm_trace_header *header, const struct timespec *written)
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

static void add_found_run(void *context, const char *path)
{
    struct folder *folder = context;
    struct stat status;
    if (fstatat(AT_FDCWD, path, &status, 0) != 0 || !S_ISREG(status.st_mode))
        return;
    GM_RESERVE(folder->entries, folder->capacity, folder->count + 1);
    struct candidate *entry = &folder->entries[folder->count++];
    *entry = (struct candidate){.name = gm_copy_text(path), .written = status.st_mtim};
    entry->is_trace = gm_run_read_header(AT_FDCWD, path, &entry->header);
    if (!entry->is_trace)
        return;
    entry->born = birth_of(&entry->header);
    entry->gone = run_end(&entry->header, &entry->written);
}

static void free_folder(struct folder *folder)
{
    for (size_t i = 0; folder->entries && i < folder->count; i++)
        free(folder->entries[i].name);
    free(folder->entries);
}

bool gm_run_is_summary(const char *path)
{
    static const char first_member[] = "{\"gpumem_summary\"";
    char start[sizeof(first_member) - 1];
    struct stat status;
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode))
        return false;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return false;
    bool is_one = read(descriptor, start, sizeof(start)) == (ssize_t)sizeof(start) &&
                  memcmp(start, first_member, sizeof(start)) == 0;
    close(descriptor);
    return is_one;
}

/* The files of a folder whose names end so; of "." without the folder's name. */
static void add_folder(struct folder *folder, const char *path, const char *ending)
{
    DIR *entries = opendir(path);
    bool is_here = strcmp(path, ".") == 0;
    const char *slash = gm_name_ends_with(path, "/") || strcmp(path, "/") == 0 ? "" : "/";
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        size_t size = strlen(path) + strlen(entry->d_name) + 2;
        char *whole = gm_allocate(size, 1);
        if (is_here)
            snprintf(whole, size, "%s", entry->d_name);
        else
            snprintf(whole, size, "%s%s%s", path, slash, entry->d_name);
        if (gm_name_ends_with(entry->d_name, ending))
            add_found_run(folder, whole);
        free(whole);
    }
    if (entries)
        closedir(entries);
}

static void add_pattern(struct folder *folder, const char *pattern)
{
    glob_t found = {0};
    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc; i++)
            add_found_run(folder, found.gl_pathv[i]);
    globfree(&found);
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

GM_ORDER(by_birth, struct candidate, GM_UP(born) GM_BY_TEXT(name))

static void take_members(struct folder *folder, struct gm_run_traces *run)
{
    run->is_chosen = true;
    if (folder->count)
        qsort(folder->entries, folder->count, sizeof(*folder->entries), by_birth);
    for (size_t i = 0; i < folder->count; i++) {
        if (!folder->entries[i].is_member) {
            run->left_out++;
            continue;
        }
        GM_APPEND(run->paths, run->capacity, run->count, gm_copy_text(folder->entries[i].name));
    }
}

static struct candidate *newest_of(const struct folder *folder)
{
    struct candidate *newest = folder->count ? folder->entries : NULL;
    for (size_t i = 1; i < folder->count; i++)
        if (is_newer(&folder->entries[i], newest))
            newest = &folder->entries[i];
    return newest;
}

/* ---- a run that left no trace here ----------------------------------------------------------- */

/* Whether the note of a run is about one that came after the newest trace. */
static bool is_later(const struct gm_run_note *note, const struct candidate *newest)
{
    return !newest || note->written.tv_sec > newest->written.tv_sec ||
           (note->written.tv_sec == newest->written.tv_sec &&
            note->written.tv_nsec >= newest->written.tv_nsec);
}

static int take_noted(const struct gm_run_note *note, const struct folder *folder,
                      struct gm_run_traces *run)
{
    for (size_t i = 0; i < note->trace_count; i++)
        GM_APPEND(run->paths, run->capacity, run->count, gm_copy_text(note->traces[i]));
    run->is_chosen = true;
    run->left_out += folder->count;
    if (note->trace_count)
        return GM_EXIT_FINE;
    gm_complain("the newest run here recorded nothing: '%s' ended with exit code %d and made no "
                "CUDA call that was seen; name a trace to see one of the %zu of older runs",
                note->command, note->code, folder->count);
    return GM_EXIT_NOTHING;
}

/* ---- what arguments name --------------------------------------------------------------------- */

/* Adds the newest run of what was listed in `folder`; `note` can be NULL. */
static int take_newest(struct folder *folder, const struct gm_run_note *note,
                       struct gm_run_traces *run)
{
    struct candidate *newest = newest_of(folder);
    int code = GM_EXIT_FINE;
    if (note && is_later(note, newest)) {
        code = take_noted(note, folder, run);
    } else if (newest) {
        choose(folder, newest);
        take_members(folder, run);
    }
    free_folder(folder);
    return code;
}

static void add_path(struct gm_run_traces *run, const char *path)
{
    GM_APPEND(run->paths, run->capacity, run->count, gm_copy_text(path));
}

GM_ORDER(by_file_name, struct candidate, GM_BY_TEXT(name))

/* Takes the summaries among what was listed: they are a set, of whichever runs. What is left can be traces. */
static void take_summaries(struct folder *folder, struct gm_run_traces *run)
{
    size_t kept = 0;
    if (folder->count)
        qsort(folder->entries, folder->count, sizeof(*folder->entries), by_file_name);
    for (size_t i = 0; i < folder->count; i++) {
        struct candidate *entry = &folder->entries[i];
        if (entry->is_trace || !gm_run_is_summary(entry->name)) {
            folder->entries[kept++] = *entry;
            continue;
        }
        add_path(run, entry->name);
        free(entry->name);
    }
    folder->count = kept;
}

/* A folder without traces may have summaries. */
static bool take_folder_of_summaries(const char *path, struct gm_run_traces *run)
{
    struct folder folder = {0};
    size_t before = run->count;
    add_folder(&folder, path, ".sum");
    take_summaries(&folder, run);
    free_folder(&folder);
    return run->count != before;
}

/* Whether a dry run that was started here is newer than what is in the folder. Then it takes the folder's place. */
static bool take_dry_run(struct folder *folder, const struct gm_run_note *note,
                         struct gm_run_traces *run)
{
    struct folder kept = {0};
    gm_kept_list(add_found_run, &kept);
    const struct candidate *dry = newest_of(&kept), *other = newest_of(folder);
    bool is_newest = dry && !(note && is_later(note, dry)) && (!other || is_newer(dry, other));
    if (is_newest) {
        run->left_out += folder->count;
        struct folder passed_over = *folder;
        *folder = kept;
        kept = passed_over;
    }
    free_folder(&kept);
    return is_newest;
}

static int take_folder(const char *path, struct gm_run_traces *run, bool or_dry_run)
{
    struct folder folder = {0};
    struct gm_run_note note;
    size_t before = run->count;
    add_folder(&folder, path, ".trace");
    bool has_note = gm_run_note_read(&note, path);
    if (or_dry_run && take_dry_run(&folder, has_note ? &note : NULL, run))
        has_note = false;
    int code = take_newest(&folder, has_note ? &note : NULL, run);
    gm_run_note_free(&note);
    if (code != GM_EXIT_FINE || run->count != before || take_folder_of_summaries(path, run))
        return code;
    if (strcmp(path, ".") == 0)
        gm_complain("no *.trace file in this folder; record one with: gpumem run -- COMMAND");
    else
        gm_complain("%s: no *.trace file in this folder", path);
    return GM_EXIT_UNREADABLE;
}

static int take_argument(const char *path, struct gm_run_traces *run)
{
    struct stat status;
    struct folder folder = {0};
    bool is_there = stat(path, &status) == 0;
    if (is_there && S_ISDIR(status.st_mode))
        return take_folder(path, run, false);
    if (!is_there && strpbrk(path, "*?["))
        add_pattern(&folder, path);
    size_t before = run->count;
    take_summaries(&folder, run);
    if (folder.count)
        return take_newest(&folder, NULL, run);
    free(folder.entries);
    if (run->count == before)
        add_path(run, path);
    return GM_EXIT_FINE;
}

/* A file that is named twice, by links too, is one. */
static void drop_same_files(struct gm_run_traces *run)
{
    struct stat *known = gm_allocate(run->count + 1, sizeof(*known));
    size_t kept = 0;
    for (size_t i = 0; i < run->count; i++) {
        struct stat status = {0};
        size_t at = 0;
        bool is_there = stat(run->paths[i], &status) == 0 && S_ISREG(status.st_mode);
        while (is_there && at < kept &&
               !(known[at].st_ino == status.st_ino && known[at].st_dev == status.st_dev &&
                 S_ISREG(known[at].st_mode)))
            at++;
        if (is_there && at < kept) {
            free(run->paths[i]);
            continue;
        }
        known[kept] = status;
        run->paths[kept++] = run->paths[i];
    }
    run->count = kept;
    free(known);
}

static int find_run(struct gm_run_traces *run, char **arguments, size_t count, bool or_dry_run)
{
    *run = (struct gm_run_traces){0};
    int code = count ? GM_EXIT_FINE : take_folder(".", run, or_dry_run);
    for (size_t i = 0; i < count; i++) {
        int one = take_argument(arguments[i], run);
        code = one == GM_EXIT_FINE ? code : one;
    }
    drop_same_files(run);
    if (run->is_chosen && run->left_out)
        fprintf(stderr, "gpumem: the newest run has %zu trace%s; left out: %zu of other runs\n",
                run->count, gm_plural(run->count), run->left_out);
    return code;
}

int gm_run_find(struct gm_run_traces *run, char **arguments, size_t count)
{
    return find_run(run, arguments, count, false);
}

int gm_run_find_any(struct gm_run_traces *run, char **arguments, size_t count)
{
    return find_run(run, arguments, count, true);
}

void gm_run_free(struct gm_run_traces *run)
{
    for (size_t i = 0; i < run->count; i++)
        free(run->paths[i]);
    free(run->paths);
}
