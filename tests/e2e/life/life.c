/*
 * Ways of living that a guest in the process must survive: life MODE. Run by run.py, which compares
 * output, totals and leaks.
 */
#include "../programs/plant.h"
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void churn(int pairs)
{
    void *address;
    for (int i = 0; i < pairs; i++) {
        cudaMalloc(&address, 512 + (size_t)i % 7 * 512);
        cudaFree(address);
    }
}

/* The host closes descriptors it did not open and gets the numbers again for files of its own. */
static void closed_descriptors(void)
{
    char name[] = "own.XXXXXX";
    struct stat status;
    churn(1);
    for (int descriptor = 3; descriptor < 2048; descriptor++)
        close(descriptor);
    int own = mkstemp(name);
    for (int copy = own + 1; copy < 2000; copy++)
        dup2(own, copy);
    churn(20000);
    fstat(own, &status);
    printf("own file: %ld bytes\n", (long)status.st_size);
    unlink(name);
}

/* Only its owner writes to it, and descriptor numbers are the same as without a guest. */
static void descriptor_numbers(void)
{
    churn(10);
    printf("next descriptor: %d\n", open("/dev/null", O_RDONLY));
}

static void *leak_one(void *unused)
{
    void *address;
    (void)unused;
    churn(20);
    cudaMalloc(&address, 1000);
    return NULL;
}
enum { LINE_OF_LEAK = __LINE__ - 3 };

/* More threads than rings, one after the other and at the same time; each dies with an allocation
 * of its own. */
static void threads_end(void)
{
    pthread_t threads[40];
    void *address;
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < 40; i++)
            pthread_create(&threads[i], NULL, leak_one, NULL);
        for (int i = 0; i < 40; i++)
            pthread_join(threads[i], NULL);
    }
    /* The peak is here, where no thread races for it, because the order of concurrent calls is
     * unknown. */
    cudaMalloc(&address, 1 << 20);
    cudaFree(address);
    printf("LEAK function=leak_one line=%d bytes=400000 count=400\n", LINE_OF_LEAK);
}

/* A child without CUDA calls leaves nothing; the parent's trace goes on. */
static void quiet_child(void)
{
    churn(100);
    pid_t child = fork();
    if (child == 0)
        exit(3);
    int status;
    waitpid(child, &status, 0);
    printf("child: %d\n", WEXITSTATUS(status));
    churn(100);
}

static void *held;

static void free_at_exit(void)
{
    printf("at exit: %d\n", (int)cudaFree(held));
    fflush(stdout);
}

/* Registered before CUDA is used, so it runs after the runtime's own exit handlers would. */
static void exit_handler(void)
{
    atexit(free_at_exit);
    LOG(cudaMalloc(&held, 4096));
}

static void *early;

__attribute__((constructor)) static void before_main(void)
{
    if (getenv("LIFE_EARLY"))
        cudaMalloc(&early, 2048);
}

__attribute__((destructor)) static void after_main(void)
{
    if (early)
        cudaFree(early);
}

static void *keep_allocating(void *stop)
{
    while (!__atomic_load_n((int *)stop, __ATOMIC_RELAXED))
        churn(100);
    return NULL;
}

/* exit() while other threads are in the middle of calls. */
static void exit_under_load(void)
{
    static int stop;
    pthread_t thread;
    for (int i = 0; i < 3; i++)
        pthread_create(&thread, NULL, keep_allocating, &stop);
    churn(5000);
    printf("leaving\n");
    exit(0);
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {
        {"closed_descriptors", closed_descriptors},
        {"descriptor_numbers", descriptor_numbers},
        {"threads_end", threads_end},
        {"quiet_child", quiet_child},
        {"exit_handler", exit_handler},
        {"exit_under_load", exit_under_load},
    };
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (count > 1 && strcmp(arguments[1], modes[i].name) == 0)
            modes[i].run();
    return 0;
}
