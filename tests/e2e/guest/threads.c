/*
 * What the threads of a guest could change in a process: threads MODE. Run by run.py.
 */
#include "../programs/plant.h"
#include "set_ids.h"
#include <cuda_runtime_api.h>
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* More than half a ring a few times, with pauses in which a drainer has a CPU to itself. */
static void churn(void)
{
    for (int i = 0; i < 60000; i++) {
        void *address;
        cudaMalloc(&address, 512);
        cudaFree(address);
        if (i % 8192 == 8191)
            usleep(20000);
    }
}

static void say_goodbye(void)
{
    void *address;
    puts("exit handler");
    cudaMalloc(&address, 700); /* recorded, whichever thread this is */
    cudaFree(address);
    fflush(stdout);
}

static void *churn_and_leak(void *unused)
{
    void *address;
    churn();
    cudaMalloc(&address, 3000);
    PLANTED(3000, 1);
    puts("worker done");
    return unused;
}

static pthread_t start_worker(void *(*work)(void *))
{
    pthread_t thread;
    pthread_create(&thread, NULL, work, NULL);
    return thread;
}

/* The process ends with its last thread, with exit handlers and code 0. */
static void main_leaves(void)
{
    atexit(say_goodbye);
    churn(); /* all threads of a guest have started */
    pthread_detach(start_worker(churn_and_leak));
    pthread_exit(NULL);
}

/* The same, but the guest needs its threads only after the main one has left. */
static void main_leaves_early(void)
{
    atexit(say_goodbye);
    pthread_detach(start_worker(churn_and_leak));
    pthread_exit(NULL);
}

static void *just_churn(void *unused)
{
    churn();
    return unused;
}

static void *end_process(void *unused)
{
    churn();
    puts("ending");
    fflush(stdout);
    exit(3);
    return unused;
}

/* Ends the main thread without the C library, which then still counts that thread, so another one
 * has to end the process. */
static void main_leaves_by_system_call(void)
{
    churn();
    pthread_detach(start_worker(end_process));
    syscall(SYS_exit, 5);
}

static void *bind_to_one_cpu_and_churn(void *unused)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    sched_getaffinity(0, sizeof(all), &all);
    for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all))
            CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
    churn();
    return unused;
}

/* A thread that binds itself to a CPU binds no other thread. */
static void bound_thread(void)
{
    int fewest = CPU_SETSIZE;
    pthread_join(start_worker(bind_to_one_cpu_and_churn), NULL);
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; (entry = readdir(tasks));) {
        cpu_set_t set;
        if (entry->d_name[0] == '.' ||
            sched_getaffinity(atoi(entry->d_name), sizeof(set), &set) != 0)
            continue;
        fewest = CPU_COUNT(&set) < fewest ? CPU_COUNT(&set) : fewest;
    }
    printf("fewest CPUs: %d\n", fewest);
}

/* Main thread, worker and exit code are unchanged. */
static void worker_ends_first(void)
{
    pthread_join(start_worker(just_churn), NULL);
}

static void set_ids_beside_drainer(void)
{
    churn();
    set_ids_beside("gpumem");
}

/* Of one allocation a guest may have this thread only. */
static void set_ids_beside_nvml(void)
{
    void *address;
    cudaMalloc(&address, 512);
    cudaFree(address);
    set_ids_beside("gpumem-nvml");
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {
        {"main_leaves", main_leaves},
        {"main_leaves_early", main_leaves_early},
        {"main_leaves_by_system_call", main_leaves_by_system_call},
        {"bound_thread", bound_thread},
        {"worker_ends_first", worker_ends_first},
        {"set_ids_beside_drainer", set_ids_beside_drainer},
        {"set_ids_beside_nvml", set_ids_beside_nvml},
    };
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (count > 1 && strcmp(arguments[1], modes[i].name) == 0)
            modes[i].run();
    return 0;
}
