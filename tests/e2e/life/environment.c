/*
 * Programs that change what exec gave them, before their first CUDA call: environment MODE. Run by
 * environment.py.
 */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static _Atomic int is_over;

static void set(void)
{
    setenv("RANK", "5", 1);
    setenv("COLOUR", "blue", 1);
    setenv("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True", 1);
    setenv("GPUMEM_RING", "1M", 1); /* for its children: the recorder has its settings */
    unsetenv("XLA_FLAGS");
}

/* From the first argument to the last variable, as setproctitle and PostgreSQL do. */
static void write_title(char **arguments)
{
    char **last = environ;
    while (last[1])
        last++;
    char *from = arguments[0], *end = *last + strlen(*last);
    memset(from, 0, (size_t)(end - from));
    snprintf(from, (size_t)(end - from), "worker: idle");
}

static void write_title_behind_the_environment(char **arguments)
{
    char **before = environ, **copy = calloc(4096, sizeof(*copy)), *last = NULL;
    for (size_t i = 0; before[i]; i++)
        copy[i] = strdup(last = before[i]);
    memset(arguments[0], 0, (size_t)(last + strlen(last) - arguments[0]));
    snprintf(arguments[0], 64, "worker: idle");
    environ = copy;
}

/* Sets variables all the time, so that the list of all is made anew again and again. */
static void *keep_setting(void *started)
{
    static char *few[] = {"RANK=3", "COLOUR=red", NULL};
    char name[32];
    for (int i = 0; !is_over; i++) {
        if (i % 300 == 0)
            environ = few;
        snprintf(name, sizeof(name), "NUMBER_%d", i % 300);
        setenv(name, "1", 1);
        *(_Atomic int *)started = 1;
    }
    return NULL;
}

static void allocate(void)
{
    void *address;
    cudaMalloc(&address, 512);
    cudaFree(address);
}

int main(int count, char **arguments)
{
    const char *mode = count > 1 ? arguments[1] : "";
    if (strcmp(mode, "set") == 0)
        set();
    if (strcmp(mode, "child") == 0 && fork() != 0) {
        wait(NULL);
        return 0;
    }
    if (strcmp(mode, "child") == 0)
        set();
    if (strcmp(mode, "title") == 0)
        write_title(arguments);
    else if (strcmp(mode, "moved") == 0)
        write_title_behind_the_environment(arguments);
    else if (strcmp(mode, "race") == 0) {
        pthread_t thread;
        _Atomic int started = 0;
        pthread_create(&thread, NULL, keep_setting, &started);
        while (!started)
            ;
        allocate();
        is_over = 1;
        pthread_join(thread, NULL);
    }
    allocate();
    return 0;
}
