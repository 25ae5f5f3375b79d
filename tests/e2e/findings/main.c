/* programs NAME [marked]: runs one of the programs; without arguments, lists them. */
#include "programs.h"
#include <gpumem/gpumem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool marked;

void check(cudaError_t error)
{
    if (error == cudaSuccess)
        return;
    fprintf(stderr, "%s\n", cudaGetErrorString(error));
    exit(1);
}

void step_done(const char *name)
{
    if (marked)
        gpumem_mark(name);
}

size_t draw(size_t least, size_t most)
{
    static unsigned long long state = 88172645463325252ull;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return least + (size_t)(state % (most - least + 1));
}

void release(void **memory)
{
    check(cudaFree(*memory));
    *memory = NULL;
}

void work(size_t bytes)
{
    void *temporaries[3];
    for (size_t i = 0; i < 3; i++)
        check(cudaMalloc(&temporaries[i], bytes)); /* note: churn, if often */
    for (size_t i = 0; i < 3; i++)
        release(&temporaries[i]);
}

static bool run_named(const struct program *programs, const char *name)
{
    for (; programs->name; programs++) {
        if (strcmp(programs->name, name) != 0)
            continue;
        programs->run();
        return true;
    }
    return false;
}

int main(int count, char **arguments)
{
    if (count < 2) {
        for (const struct program *program = sound_programs; program->name; program++)
            puts(program->name);
        for (const struct program *program = sick_programs; program->name; program++)
            puts(program->name);
        return 0;
    }
    marked = count > 2 && strcmp(arguments[2], "marked") == 0;
    return run_named(sound_programs, arguments[1]) || run_named(sick_programs, arguments[1]) ? 0
                                                                                             : 2;
}
