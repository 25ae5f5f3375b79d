/* A process that ends in the way that its arguments say, with some device memory:
 *   endings [-p] exit N | _exit N | raw N | tidy N | signal N | pool N
 * raw: by the bare system call, as Go ends; tidy: likewise, but all is freed and many threads record.
 * -p: in a child, which its parent waits for. pool: the parent ends three workers by signal N, waits
 * for them and ends well. */
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void allocate(void)
{
    void *memory;
    if (cudaMalloc(&memory, 1 << 20) != cudaSuccess)
        exit(99);
}

static void *churn(void *unused)
{
    void *memory;
    for (int i = 0; i < 20000; i++) {
        cudaMalloc(&memory, 512);
        cudaFree(memory);
    }
    return unused;
}

static void churn_in_threads(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, churn, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static int end(const char *how, int number)
{
    if (strcmp(how, "tidy") == 0) {
        churn_in_threads();
        syscall(SYS_exit_group, number);
    }
    allocate();
    if (strcmp(how, "raw") == 0)
        syscall(SYS_exit_group, number);
    if (strcmp(how, "_exit") == 0)
        _exit(number);
    if (strcmp(how, "signal") == 0)
        raise(number);
    return number;
}

static int pool(int number)
{
    pid_t workers[3];
    int ready[2];
    char byte;
    if (pipe(ready) != 0)
        return 98;
    for (int i = 0; i < 3; i++)
        if ((workers[i] = fork()) == 0) {
            allocate();
            if (write(ready[1], "", 1) == 1)
                pause();
            _exit(97);
        }
    for (int i = 0; i < 3; i++)
        if (read(ready[0], &byte, 1) != 1)
            return 96;
    for (int i = 0; i < 3; i++)
        kill(workers[i], number);
    for (int i = 0; i < 3; i++) {
        siginfo_t info;
        if (i == 0 ? waitpid(workers[i], NULL, 0) != workers[i]
                   : waitid(P_PID, (id_t)workers[i], &info, WEXITED) != 0)
            return 95;
    }
    return 0;
}

int main(int count, char **arguments)
{
    int in_child = count > 1 && strcmp(arguments[1], "-p") == 0;
    if (count < 3 + in_child)
        return 94;
    const char *how = arguments[1 + in_child];
    int number = atoi(arguments[2 + in_child]), status;
    if (strcmp(how, "pool") == 0)
        return pool(number);
    if (!in_child)
        return end(how, number);
    pid_t child = fork();
    if (child == 0)
        exit(end(how, number));
    if (wait(&status) != child)
        return 93;
    puts(WIFSIGNALED(status) ? "signal" : "exit");
    return 0;
}
