/*
 * Records all the time while it fills the file system of the folder FULL: fill FULL. Ends with 0 if
 * it survives.
 */
#include <cuda.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static CUcontext context;

static void allocate(int count)
{
    CUdeviceptr address;
    for (int i = 0; i < count; i++)
        if (cuMemAlloc(&address, 64) != CUDA_SUCCESS)
            exit(2);
}

/* Up to the last byte: large pieces first, then small ones. */
static void fill_disk(const char *folder)
{
    static char bytes[1 << 16];
    char path[512];
    int random = open("/dev/urandom", O_RDONLY);
    for (size_t piece = sizeof(bytes); piece >= 512; piece /= 8) {
        snprintf(path, sizeof(path), "%s/filler.%zu", folder, piece);
        int file = open(path, O_WRONLY | O_CREAT, 0600);
        while (read(random, bytes, piece) == (ssize_t)piece && write(file, bytes, piece) > 0)
            ;
        fsync(file);
        close(file);
    }
    close(random);
}

int main(int count, char **arguments)
{
    CUdevice device;
    if (count != 2 || cuInit(0) || cuDeviceGet(&device, 0) ||
        cuDevicePrimaryCtxRetain(&context, device) || cuCtxSetCurrent(context))
        return 2;
    allocate(20000);
    sync();
    fill_disk(arguments[1]);
    /* Each time the kernel writes the pages back, the next store into one needs room again. */
    for (int round = 0; round < 20; round++) {
        allocate(5000);
        sync();
    }
    puts("went on");
    return 0;
}
