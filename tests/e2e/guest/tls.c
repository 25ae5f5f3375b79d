/*
 * A program with so much thread-local memory that there is no room for it in the stack which a guest
 * would give a thread of its own, or next to none behind it. Run by run.py.
 */
#include "../programs/plant.h"
#include <cuda_runtime_api.h>
#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Thread_local volatile char room[TLS_BYTES];

static int is_guest(const char *task)
{
    char path[300], name[32] = "";
    snprintf(path, sizeof(path), "/proc/self/task/%s/comm", task);
    FILE *file = fopen(path, "r");
    if (!file)
        return 0;
    int got = fscanf(file, "%31s", name) == 1;
    fclose(file);
    return got && strcmp(name, "gpumem") == 0;
}

static int has_guest_thread(void)
{
    int found = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && (entry = readdir(tasks));)
        found += entry->d_name[0] != '.' && is_guest(entry->d_name);
    if (tasks)
        closedir(tasks);
    return found;
}

int main(void)
{
    cpu_set_t cpus;
    for (size_t i = 0; i < sizeof(room); i += 4096)
        room[i] = 1;
    for (int i = 0; i < 60000; i++) { /* more than half a ring, several times */
        void *address;
        cudaMalloc(&address, 64 + (size_t)i % 100);
        cudaFree(address);
    }
    void *kept;
    cudaMalloc(&kept, 3000);
    PLANTED(3000, 1);
    /* With one CPU, the recorder starts no thread. */
    if (getenv("LD_PRELOAD") && sched_getaffinity(0, sizeof(cpus), &cpus) == 0 &&
        CPU_COUNT(&cpus) > 1 && !has_guest_thread()) {
        fputs("the recorder has no thread\n", stderr);
        return 1;
    }
    puts("ok");
    return 0;
}
