/* program [tool] [cuda] [injection]: names what it does by NVTX, and lets a library do so. The
 * memory of each piece of work is known: 1 MiB more. With "injection" a preloaded tool is injected
 * by hand first. */
#include "calls.h"
#include <cuda_runtime_api.h>
#include <dlfcn.h>

void library_names_everything(int has_tool, void (*work)(void));

static void work(void)
{
    void *memory;
    if (cudaMalloc(&memory, 1 << 20) != cudaSuccess)
        puts("no memory");
}

static void rest(void)
{
}

static const void *no_table(uint32_t number)
{
    (void)number;
    return NULL;
}

/* As a copy of NVTX without functions would do it: what that does to errno is the tool's doing
 * alone. */
static void inject(void)
{
    void *symbol = dlsym(dlopen(NULL, RTLD_NOW), "InitializeInjectionNvtx2");
    errno = ERANGE;
    if (symbol && !((NvtxInitializeInjectionNvtxFunc_t)symbol)(no_table))
        puts("not injected");
    if (errno != ERANGE)
        puts("errno changed by the injection");
}

int main(int count, char **arguments)
{
    int has_tool = 0;
    void (*what)(void) = rest;
    for (int i = 1; i < count; i++) {
        has_tool |= strcmp(arguments[i], "tool") == 0;
        if (strcmp(arguments[i], "cuda") == 0)
            what = work;
        if (strcmp(arguments[i], "injection") == 0)
            inject();
    }
    name_everything("program", has_tool, what);
    library_names_everything(has_tool, what);
    return 0;
}
