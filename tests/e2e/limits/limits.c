/*
 * What comes upon the limits of the recorder: limits MODE COUNT [PLUGIN]. Run by limits.py, which
 * reads the trace.
 */
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static CUdevice device;

static void demand(int good, const char *what)
{
    if (!good) {
        fprintf(stderr, "limits: %s\n", what);
        exit(1);
    }
}

static CUdeviceptr take(size_t size)
{
    CUdeviceptr address;
    demand(cuMemAlloc(&address, size) == 0, "cuMemAlloc");
    return address;
}

/* ---- contexts -------------------------------------------------------------------------------- */

/* Each is made, holds an allocation, and is destroyed with it. */
static void contexts(int count)
{
    for (int i = 0; i < count; i++) {
        CUcontext context;
        demand(cuCtxCreate(&context, NULL, 0, device) == 0, "cuCtxCreate");
        take(1 << 20);
        demand(cuCtxDestroy(context) == 0, "cuCtxDestroy");
    }
}

static const struct mode {
    const char *name;
    void (*run)(int count);
} modes[] = {
    {"contexts", contexts},
};

int main(int count, char **arguments)
{
    demand(count >= 3, "usage: limits MODE COUNT");
    demand(cuInit(0) == 0 && cuDeviceGet(&device, 0) == 0, "cuInit");
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
        if (strcmp(arguments[1], modes[i].name) == 0) {
            modes[i].run(atoi(arguments[2]));
            puts("done");
            return 0;
        }
    demand(0, "no such mode");
}
