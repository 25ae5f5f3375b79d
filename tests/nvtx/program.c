/* program [tool] [cuda] [injection]: names its work by NVTX, and lets a library do so. Each piece
 * of work allocates 1 MiB and keeps it. With "injection" it first injects a preloaded tool by
 * hand. */
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

/* Calls the tool as a copy of NVTX without functions would, so that only the tool can change
 * errno. */
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
