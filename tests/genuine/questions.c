/*
 * Preloaded, writes down what a library asks NVIDIA's driver for, by dlsym and by cuGetProcAddress,
 * in the file $QUESTIONS: lines "dlsym NAME" and "lookup NAME VERSION FLAGS". An empty name is "-".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __x86_64__
#define FIRST_GLIBC "GLIBC_2.2.5"
#else
#define FIRST_GLIBC "GLIBC_2.17"
#endif

typedef int (*lookup_v1)(const char *name, void **function, int version, uint64_t flags);
typedef int (*lookup_v2)(const char *name, void **function, int version, uint64_t flags,
                         int *status);

static lookup_v1 real_v1;
static lookup_v2 real_v2;

static FILE *notes(void)
{
    static FILE *file;
    const char *path = getenv("QUESTIONS");

    if (!file && path && (file = fopen(path, "a")))
        setvbuf(file, NULL, _IOLBF, 0);
    return file ? file : stderr;
}

static void *watched(void *function);

static void note(const char *name, void **function, int version, uint64_t flags, int result)
{
    fprintf(notes(), "lookup %s %d %llu\n", *name ? name : "-", version, (unsigned long long)flags);
    if (result == 0 && function && *function)
        *function = watched(*function);
}

static int ask_v1(const char *name, void **function, int version, uint64_t flags)
{
    int result = real_v1(name, function, version, flags);

    note(name, function, version, flags, result);
    return result;
}

static int ask_v2(const char *name, void **function, int version, uint64_t flags, int *status)
{
    int result = real_v2(name, function, version, flags, status);

    note(name, function, version, flags, result);
    return result;
}

/* The driver answers with its own lookups: these are watched, too. */
static void *watched(void *function)
{
    return !function                     ? NULL
           : function == (void *)real_v1 ? (void *)ask_v1
           : function == (void *)real_v2 ? (void *)ask_v2
                                         : function;
}

static void learn(void *(*real)(void *, const char *), void *library)
{
    if (!real_v1)
        real_v1 = (lookup_v1)real(library, "cuGetProcAddress");
    if (!real_v2)
        real_v2 = (lookup_v2)real(library, "cuGetProcAddress_v2");
}

void *dlsym(void *library, const char *name)
{
    static void *(*real)(void *, const char *);

    if (!real)
        real = (void *(*)(void *, const char *))dlvsym(RTLD_NEXT, "dlsym", FIRST_GLIBC);
    void *found = real(library, name);
    if (strncmp(name, "cu", 2) != 0 || name[2] < 'A' || name[2] > 'Z')
        return found;
    learn(real, library);
    fprintf(notes(), "dlsym %s\n", name);
    return watched(found);
}
