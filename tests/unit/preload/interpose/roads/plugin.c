/*
 * A plugin linked to a runtime. Nothing here is a tail call: the return address of a hook must be
 * in this object.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

extern int cudaMalloc(void);
extern int cudaFree(void);
int plugin_malloc(void);
int plugin_free(void);
int plugin_default(void);
int plugin_handle(const char *library);

typedef int plain_function(void);

int plugin_malloc(void)
{
    int result = cudaMalloc();
    __asm__ volatile("" : "+r"(result));
    return result;
}

int plugin_free(void)
{
    int result = cudaFree();
    __asm__ volatile("" : "+r"(result));
    return result;
}

/* Calls the function that the plugin finds by RTLD_DEFAULT. */
int plugin_default(void)
{
    plain_function *function = (plain_function *)dlsym(RTLD_DEFAULT, "cudaMalloc");
    int result = function != NULL ? function() : 0;
    __asm__ volatile("" : "+r"(result));
    return result;
}

/* Calls the function that it finds in a library opened by hand. */
int plugin_handle(const char *library)
{
    plain_function *function = (plain_function *)dlsym(dlopen(library, RTLD_LAZY), "cudaMalloc");
    int result = function != NULL ? function() : 0;
    __asm__ volatile("" : "+r"(result));
    return result;
}
