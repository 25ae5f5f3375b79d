/*
 * Programs that could notice a guest in their process: guest MODE [PLUGIN]. Run by run.py, which
 * compares output, totals and leaks with and without the preload.
 */
#include "../programs/generated_code.h"
#include "../programs/plant.h"
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static void pair(void)
{
    void *address;
    cudaMalloc(&address, 512);
    cudaFree(address);
}

/* ---- generated code -------------------------------------------------------------------------- */

/* On pages of the stack that no call has used before, so that knowledge about pages does not
 * help. */
static void call_far_below(generated_code *code, void (*function)(void))
{
    volatile char room[256 * 1024];
    room[0] = 0;
    code(function);
}

static void leak(void)
{
    void *address;
    cudaMalloc(&address, 3000);
}

/*
 * The host closes descriptors that it did not open, as daemons do, and opens its own files. Stacks
 * through generated code must not touch these files, and must still be recorded.
 */
static void descriptors_behind_generated_code(void)
{
    generated_code *code = generate_code();
    char name[] = "own.XXXXXX", text[32] = "";
    struct stat status;
    code(pair);
    printf("next descriptor: %d\n", dup(0));
    for (int descriptor = 3; descriptor < 2048; descriptor++)
        close(descriptor);
    int own = mkstemp(name);
    unlink(name);
    for (int copy = own + 1; copy < 20; copy++)
        dup2(own, copy);
    if (write(own, "the host's own", 14) == 14)
        lseek(own, 0, SEEK_SET);
    call_far_below(code, pair);
    printf("position %ld", (long)lseek(own, 0, SEEK_CUR));
    fstat(own, &status);
    printf(", size %ld, text '%.*s'\n", (long)status.st_size, (int)pread(own, text, 31, 0), text);
    code(leak);
    PLANTED(3000, 1);
}

/* An executable view of a file behind one that is not readable, as runtimes map code that they
 * write through a third view. */
static void generated_code_in_a_file(void)
{
    int file = memfd_create("code", 0);
    if (ftruncate(file, 8192) != 0 || pwrite(file, instructions, sizeof(instructions), 4096) < 0)
        return;
    char *view = mmap(NULL, 8192, PROT_NONE, MAP_SHARED, file, 0);
    mmap(view + 4096, 4096, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, file, 4096);
    close(file);
    generated_code *code = (generated_code *)(view + 4096);
    code(leak);
    PLANTED(3000, 1);
}

/* ---- descriptors and state ------------------------------------------------------------------- */

/* Output to a closed descriptor goes nowhere, least of all into the trace. */
static void no_standard_descriptors(void)
{
    const struct rlimit few = {64, 64};
    int out = fcntl(1, F_DUPFD, 30), next[3];
    for (int descriptor = 0; descriptor < 3; descriptor++)
        close(descriptor);
    setrlimit(RLIMIT_NOFILE, &few);
    pair();
    for (int i = 0; i < 3; i++)
        next[i] = open("/dev/null", O_RDONLY);
    dup2(out, 1);
    printf("next descriptors: %d %d %d\n", next[0], next[1], next[2]);
}

static void state_of_the_thread(void)
{
    sigset_t mask;
    int blocked = 0;
    uint32_t control = 0, control_after = 0;
#if defined(__x86_64__)
    __asm__("stmxcsr %0" : "=m"(control));
    control |= 0x6000; /* round towards zero */
    __asm__("ldmxcsr %0" : : "m"(control));
#endif
    dlerror();
    pair();
    const char *error = dlerror();
    printf("dlerror %s\n", error ? error : "none");
    errno = EXDEV; /* after the first call: the simulator's oracle opens its file there */
    for (int i = 0; i < 20000; i++)
        pair();
    printf("errno %d\n", errno);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    for (int number = 1; number < 65; number++)
        blocked += sigismember(&mask, number) == 1;
#if defined(__x86_64__)
    __asm__("stmxcsr %0" : "=m"(control_after));
#endif
    printf("blocked signals %d, rounding %x %x\n", blocked, control & 0x6000,
           control_after & 0x6000);
}

/* The constructor of the plugin waits for threads that call CUDA and start programs. */
static void constructor_that_waits(const char *plugin)
{
    pair();
    printf("plugin %s\n", dlopen(plugin, RTLD_NOW) ? "loaded" : dlerror());
}

int main(int count, char **arguments)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } modes[] = {
        {"descriptors_behind_generated_code", descriptors_behind_generated_code},
        {"generated_code_in_a_file", generated_code_in_a_file},
        {"no_standard_descriptors", no_standard_descriptors},
        {"state_of_the_thread", state_of_the_thread},
    };
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (count > 1 && strcmp(arguments[1], modes[i].name) == 0)
            modes[i].run();
    if (count > 2 && strcmp(arguments[1], "constructor_that_waits") == 0)
        constructor_that_waits(arguments[2]);
    return 0;
}
