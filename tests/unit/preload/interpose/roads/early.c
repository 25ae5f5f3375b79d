/* Looks up a function in its constructor, which runs before that of the library preloaded first. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

int roads_early(void);

static void *(*found)(void);
static void *driver;

__attribute__((constructor)) static void look_up(void)
{
    driver = dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuMemAlloc_v2");
    found = (void *(*)(void))dlsym(RTLD_DEFAULT, "malloc");
}

int roads_early(void)
{
    int result = found != NULL && driver != NULL ? ((int (*)(void))driver)() : -2;
    return result;
}
