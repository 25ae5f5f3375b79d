/* program [tool] [cuda]: names what it does by NVTX, and lets a library do so. The memory of each
 * piece of work is known: 1 MiB more. */
#include <errno.h>
#include <cuda_runtime_api.h>
#include "calls.h"

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

int main(int count, char **arguments)
{
    int has_tool = 0;
    void (*what)(void) = rest;
    for (int i = 1; i < count; i++) {
        has_tool |= strcmp(arguments[i], "tool") == 0;
        if (strcmp(arguments[i], "cuda") == 0)
            what = work;
    }
    errno = ERANGE;
    name_everything("program", has_tool, what);
    library_names_everything(has_tool, what);
    if (errno != ERANGE)
        puts("errno changed");
    return 0;
}
