/*
 * Calls after the end of the driver return an error and do nothing else.
 *
 * Handlers run in reverse order of registration and the dynamic linker, which runs the destructors
 * of libraries, registers before main. So the handler that calls the driver once more is registered
 * even earlier, by a function that the linker runs before all constructors (GNU: .preinit_array).
 */
#include <cuda.h>
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

/* What exit() runs; the last argument names the object to unload, none here. */
extern int __cxa_atexit(void (*function)(void *), void *argument, void *object);

static CUresult (*get_count)(int *);

static void call_once_more(void *unused)
{
    int count;

    (void)unused;
    _exit(get_count && get_count(&count) == CUDA_ERROR_DEINITIALIZED ? 0 : 1);
}

static void register_first(void)
{
    __cxa_atexit(call_once_more, NULL, NULL);
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = register_first;

int main(void)
{
    CUresult (*initialize)(unsigned int);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    void *symbol = driver ? dlsym(driver, "cuInit") : NULL;
    int count;

    if (!symbol)
        return 1;
    memcpy(&initialize, &symbol, sizeof(symbol));
    symbol = dlsym(driver, "cuDeviceGetCount");
    if (initialize(0) != CUDA_SUCCESS)
        return 1;
    memcpy(&get_count, &symbol, sizeof(symbol));
    if (get_count(&count) != CUDA_SUCCESS)
        get_count = NULL;
    return 0;
}
