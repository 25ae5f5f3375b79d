/*
 * A process sets its users and groups, to what they are. The C library makes each of its threads do
 * the same, by a signal of its own, and waits for all of them.
 */
#ifndef GPUMEM_TESTS_SET_IDS_H
#define GPUMEM_TESTS_SET_IDS_H

#include <dirent.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int has_thread(const char *wanted)
{
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks));) {
        char path[300], name[32] = "";
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(name, sizeof(name), file))
            name[strcspn(name, "\n")] = 0;
        if (file)
            fclose(file);
        found |= strcmp(name, wanted) == 0;
    }
    closedir(tasks);
    return found;
}

/* Prints the results, and a missing thread of that name where the recorder is in the process. */
static void set_ids_beside(const char *thread)
{
    gid_t groups[256];
    int count = getgroups(256, groups);
    for (int i = 0; getenv("LD_PRELOAD") && !has_thread(thread) && i < 1000; i++)
        usleep(10000);
    if (getenv("LD_PRELOAD") && !has_thread(thread))
        printf("no thread %s\n", thread);
    alarm(60); /* a failure is a process that waits for ever */
    printf("setgroups %d\n", setgroups(count > 0 ? (size_t)count : 0, groups));
    printf("setgid %d\n", setgid(getgid()));
    printf("setegid %d\n", setegid(getegid()));
    printf("setresgid %d\n", setresgid(getgid(), getegid(), getegid()));
    printf("setuid %d\n", setuid(getuid()));
    printf("seteuid %d\n", seteuid(geteuid()));
    printf("setreuid %d\n", setreuid(getuid(), geteuid()));
}

#endif
