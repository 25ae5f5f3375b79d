/* Stands for NVIDIA's nvJitLink: its result says what it was given. Of a dry run it may only get what is no PTX, or comes with
 * something else. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOTH(name, ...)                                                                            \
    int name(__VA_ARGS__);                                                                         \
    int __##name##_13_0(__VA_ARGS__) __attribute__((alias(#name)));                                \
    int name(__VA_ARGS__)

struct linker {
    char said[256];
};

static void say(struct linker *linker, const char *what, int type)
{
    size_t length = strlen(linker->said);
    snprintf(linker->said + length, sizeof(linker->said) - length, "%s %d; ", what, type);
}

BOTH(nvJitLinkCreate, struct linker **handle, unsigned int count, const char **options)
{
    *handle = calloc(1, sizeof(**handle));
    if (*handle)
        say(*handle, count ? options[0] : "", (int)count);
    return *handle ? 0 : 6;
}

BOTH(nvJitLinkDestroy, struct linker **handle)
{
    free(*handle);
    *handle = NULL;
    return 0;
}

BOTH(nvJitLinkAddData, struct linker *linker, int type, const void *data, size_t size,
     const char *name)
{
    (void)data, (void)size;
    say(linker, name ? name : "", type);
    return 0;
}

BOTH(nvJitLinkAddFile, struct linker *linker, int type, const char *path)
{
    say(linker, path, type);
    return 0;
}

BOTH(nvJitLinkComplete, struct linker *linker)
{
    say(linker, "complete", 0);
    return 0;
}

BOTH(nvJitLinkGetLinkedCubinSize, struct linker *linker, size_t *size)
{
    *size = strlen(linker->said) + 1;
    return 0;
}

BOTH(nvJitLinkGetLinkedCubin, struct linker *linker, char *out)
{
    memcpy(out, linker->said, strlen(linker->said) + 1);
    return 0;
}

int nvJitLinkVersion(unsigned int *major, unsigned int *minor);
int nvJitLinkVersion(unsigned int *major, unsigned int *minor)
{
    *major = 13;
    *minor = 7;
    return 0;
}
