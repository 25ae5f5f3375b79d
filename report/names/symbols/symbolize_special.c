/* See symbolize_special.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* O_PATH */
#endif
#include "names/symbols/symbolize_special.h"

#include <fcntl.h>
#include <linux/limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Files of /proc, /sys and their kind are made when they are read, and reading can do things. */
static bool is_on_disk(int fd)
{
    static const long made_up[] = {PROC_SUPER_MAGIC,  SYSFS_MAGIC,      DEBUGFS_MAGIC,
                                   TRACEFS_MAGIC,     SECURITYFS_MAGIC, CGROUP2_SUPER_MAGIC,
                                   DEVPTS_SUPER_MAGIC};
    struct statfs system;

    if (fstatfs(fd, &system) != 0)
        return false;
    for (size_t i = 0; i < sizeof(made_up) / sizeof(made_up[0]); i++)
        if ((long)system.f_type == made_up[i])
            return false;
    return true;
}

static bool is_regular(int place)
{
    struct stat status;

    return fstat(place, &status) == 0 && S_ISREG(status.st_mode) && is_on_disk(place);
}

/* A place is looked at before it is opened, and what is opened is what was looked at. */
int gm_open_regular_file(const char *path)
{
    char again[32];
    int fd = -1, place = open(path, O_PATH | O_CLOEXEC);

    if (place < 0)
        return -1;
    snprintf(again, sizeof(again), "/proc/self/fd/%d", place);
    if (is_regular(place))
        fd = open(again, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    close(place);
    return fd;
}

static bool is_special(void *nothing, const char *path)
{
    (void)nothing;
    int place = open(path, O_PATH | O_CLOEXEC);
    bool special = place >= 0 && !is_regular(place);

    if (place >= 0)
        close(place);
    return special;
}

/* Length of the path of the folder that a file lies in, with its last slash. */
static int folder_length(const char *file)
{
    const char *slash = file == NULL ? NULL : strrchr(file, '/');

    return slash == NULL ? 0 : (int)(slash + 1 - file);
}

/* Who looks at a path; once it returns true, nobody looks any further. */
struct visitor {
    gm_place_visitor visit;
    void *argument;
};

/* The place that `name` leads to: see gm_is_special_file. */
static bool visit_place(const struct visitor *visitor, const char *from, const char *folder,
                        const char *name)
{
    char path[PATH_MAX];
    bool is_whole = folder != NULL && folder[0] == '/';
    int length = name[0] == '/'
                     ? snprintf(path, sizeof(path), "%s", name)
                     : snprintf(path, sizeof(path), "%.*s%s/%s", is_whole ? 0 : folder_length(from),
                                from ? from : "", folder == NULL ? "." : folder, name);

    /* libdw has no limit: what is too long for the kernel cannot be opened either */
    return length >= 0 && (size_t)length < sizeof(path) && visitor->visit(visitor->argument, path);
}

bool gm_is_special_file(const char *from, const char *folder, const char *name)
{
    static const struct visitor visitor = {.visit = is_special};

    return visit_place(&visitor, from, folder, name);
}

/* In a folder for all debug files those of a module lie below the module's own path, or its end. */
static bool visit_below(const struct visitor *visitor, const char *folder, const char *file,
                        const char *name)
{
    char below[PATH_MAX];

    for (const char *end = file; (end = strchr(end, '/')) != NULL; end++) {
        int length = snprintf(below, sizeof(below), "%s%.*s", folder, folder_length(end), end);
        if (length >= 0 && (size_t)length < sizeof(below) &&
            visit_place(visitor, NULL, below, name))
            return true;
    }
    return false;
}

/* Debug info that modules share lies beside them or in ".dwz". */
static bool visit_for(const struct visitor *visitor, const char *debug_path, const char *file,
                      const char *name)
{
    char folder[PATH_MAX];
    bool ended = visit_place(visitor, file, ".dwz", name + folder_length(name));

    for (const char *at = debug_path; !ended; at++) {
        size_t length = strcspn(at, ":");
        snprintf(folder, sizeof(folder), "%.*s", (int)length, at);
        ended = folder[0] == '/' ? visit_below(visitor, folder, file, name)
                                 : visit_place(visitor, file, folder[0] ? folder : NULL, name);
        at += length;
        if (*at == '\0')
            break;
    }
    return ended;
}

/* Without a link libdwfl tries the module's own name, with and without an end. */
static bool visit_beside(const struct visitor *visitor, const char *debug_path, const char *file,
                         const char *link)
{
    const char *name = file + folder_length(file);
    char usual[PATH_MAX];

    if (link != NULL)
        return visit_for(visitor, debug_path, file, link);
    snprintf(usual, sizeof(usual), "%s.debug", name);
    return visit_for(visitor, debug_path, file, usual) ||
           visit_for(visitor, debug_path, file, name);
}

bool gm_visit_debug_places(const char *debug_path, const char *file, const char *link,
                           gm_place_visitor visit, void *argument)
{
    const struct visitor visitor = {visit, argument};

    if (file == NULL)
        return false;                    /* a name alone leads nowhere */
    char *target = realpath(file, NULL); /* libdwfl looks there, too */
    bool ended = visit_beside(&visitor, debug_path, file, link) ||
                 (target != NULL && strcmp(target, file) != 0 &&
                  visit_beside(&visitor, debug_path, target, link));
    free(target);
    return ended;
}

bool gm_is_special_debug_file(const char *debug_path, const char *file, const char *link)
{
    return gm_visit_debug_places(debug_path, file, link, is_special, NULL);
}
