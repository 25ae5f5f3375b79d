/* nvJitLink: compiles PTX and links what is compiled. Nothing that it compiles runs here, and a driver takes PTX as it is, so PTX
 * is what becomes of PTX. All else goes to the genuine library, which needs no device: only it can read what is in there. */
#include "common.h"

enum { INVALID_INPUT = 3, INTERNAL = 6 }; /* of nvJitLinkResult */
enum { PTX = 2, ANY = 10 };               /* of nvJitLinkInputType */

struct input {
    char *name;
    size_t size;
    struct input *next;
    char text[];
};

struct linker {
    struct input *inputs, **end; /* PTX */
    char **options;
    uint32_t count; /* of options */
    void *genuine;  /* the genuine library's handle, once something else came */
};

/* A function of the genuine library, which stub_library.py links beside this one. */
static void *genuine_function(const char *name)
{
    static void *library;
    void *opened = __atomic_load_n(&library, __ATOMIC_ACQUIRE);

    if (!opened) {
        opened = dlopen(GPUMEM_GENUINE, RTLD_NOW | RTLD_LOCAL);
        __atomic_store_n(&library, opened, __ATOMIC_RELEASE);
    }
    return opened ? dlsym(opened, name) : NULL;
}

#define GENUINE(name, ...) ((long (*)(__VA_ARGS__))genuine_function(#name))

ANSWER(nvJitLinkDestroy, struct linker **handle)
{
    struct linker *linker = handle ? *handle : NULL;
    long (*destroy)(void **) =
        linker && linker->genuine ? GENUINE(nvJitLinkDestroy, void **) : NULL;

    if (!linker)
        return INVALID_INPUT;
    if (destroy)
        (void)destroy(&linker->genuine);
    while (linker->inputs) {
        struct input *input = linker->inputs;
        linker->inputs = input->next;
        free(input->name);
        free(input);
    }
    for (uint32_t i = 0; i < linker->count; i++)
        free(linker->options[i]);
    free(linker->options);
    free(linker);
    *handle = NULL;
    return 0;
}

ANSWER(nvJitLinkCreate, struct linker **handle, uint32_t count, const char **options)
{
    struct linker *linker = handle ? calloc(1, sizeof(*linker)) : NULL;

    if (!linker)
        return INTERNAL;
    linker->end = &linker->inputs;
    linker->options = calloc(count + 1, sizeof(*linker->options));
    linker->count = linker->options ? count : 0;
    for (uint32_t i = 0; i < linker->count; i++)
        linker->options[i] = strdup(options[i]);
    *handle = linker;
    return 0;
}

/* Hands all that came to the genuine library. */
static long turn_to_genuine(struct linker *linker)
{
    long (*create)(void **, uint32_t, const char **) =
        GENUINE(nvJitLinkCreate, void **, uint32_t, const char **);
    long (*add)(void *, int, const void *, size_t, const char *) =
        GENUINE(nvJitLinkAddData, void *, int, const void *, size_t, const char *);

    if (linker->genuine)
        return 0;
    if (!create || !add)
        return INTERNAL;
    long result = create(&linker->genuine, linker->count, (const char **)linker->options);
    for (struct input *input = linker->inputs; input && !result; input = input->next)
        result = add(linker->genuine, PTX, input->text, input->size, input->name);
    return result;
}

static bool is_ptx(int type, const char *data, size_t size)
{
    while (type == ANY && size && strchr(" \t\r\n", *data)) {
        data++;
        size--;
    }
    return type == PTX || (type == ANY && size && (*data == '.' || *data == '/'));
}

ANSWER(nvJitLinkAddData, struct linker *linker, int type, const char *data, size_t size,
       const char *name)
{
    if (!linker || !data || !size)
        return INVALID_INPUT;
    if (linker->genuine || !is_ptx(type, data, size)) {
        long turned = turn_to_genuine(linker);
        return turned ? turned
                      : GENUINE(nvJitLinkAddData, void *, int, const void *, size_t,
                                const char *)(linker->genuine, type, data, size, name);
    }
    struct input *input = calloc(1, sizeof(*input) + size + 1);
    if (!input)
        return INTERNAL;
    input->name = name ? strdup(name) : NULL;
    input->size = size;
    memcpy(input->text, data, size);
    *linker->end = input;
    linker->end = &input->next;
    return 0;
}

/* Files are libraries, objects or what was linked before. */
ANSWER(nvJitLinkAddFile, struct linker *linker, int type, const char *path)
{
    if (!linker || !path)
        return INVALID_INPUT;
    long turned = turn_to_genuine(linker);
    return turned
               ? turned
               : GENUINE(nvJitLinkAddFile, void *, int, const char *)(linker->genuine, type, path);
}

ANSWER(nvJitLinkComplete, struct linker *linker)
{
    if (!linker || (!linker->inputs && !linker->genuine))
        return INVALID_INPUT;
    return linker->genuine ? GENUINE(nvJitLinkComplete, void *)(linker->genuine) : 0;
}

/* The inputs, one after the other, with a NUL at the end, at `out` if that is not NULL; returns their bytes. */
static size_t image(const struct linker *linker, char *out)
{
    size_t bytes = 0;

    for (const struct input *input = linker ? linker->inputs : NULL; input; input = input->next) {
        size_t length = strlen(input->text);
        if (out) {
            memcpy(out + bytes, input->text, length);
            out[bytes + length] = input->next ? '\n' : 0;
        }
        bytes += length + 1;
    }
    return bytes;
}

typedef long genuine_size(void *, size_t *);
typedef long genuine_text(void *, char *);

/* The bytes of what a link yields: `own`, or what the genuine library says. */
static long tell_size(const struct linker *linker, size_t *size, size_t own, const char *genuine)
{
    if (!linker || !size)
        return INVALID_INPUT;
    if (linker->genuine)
        return ((genuine_size *)genuine_function(genuine))(linker->genuine, size);
    *size = own;
    return 0;
}

static long tell_image(const struct linker *linker, char *out, const char *genuine)
{
    if (!linker || !out)
        return INVALID_INPUT;
    if (linker->genuine)
        return ((genuine_text *)genuine_function(genuine))(linker->genuine, out);
    (void)image(linker, out);
    return 0;
}

static long tell_log(const struct linker *linker, char *out, const char *genuine)
{
    return linker && linker->genuine ? tell_image(linker, out, genuine) : 0;
}

ANSWER(nvJitLinkGetLinkedCubinSize, struct linker *linker, size_t *size)
{
    return tell_size(linker, size, image(linker, NULL), __func__);
}

ANSWER(nvJitLinkGetLinkedCubin, struct linker *linker, char *out)
{
    return tell_image(linker, out, __func__);
}

ANSWER(nvJitLinkGetLinkedPtxSize, struct linker *linker, size_t *size)
{
    return tell_size(linker, size, image(linker, NULL), __func__);
}

ANSWER(nvJitLinkGetLinkedPtx, struct linker *linker, char *out)
{
    return tell_image(linker, out, __func__);
}

ANSWER(nvJitLinkGetErrorLogSize, struct linker *linker, size_t *size)
{
    return tell_size(linker, size, 0, __func__);
}

ANSWER(nvJitLinkGetErrorLog, struct linker *linker, char *out)
{
    return tell_log(linker, out, __func__);
}

ANSWER(nvJitLinkGetInfoLogSize, struct linker *linker, size_t *size)
{
    return tell_size(linker, size, 0, __func__);
}

ANSWER(nvJitLinkGetInfoLog, struct linker *linker, char *out)
{
    return tell_log(linker, out, __func__);
}

ANSWER(nvJitLinkVersion, unsigned int *major, unsigned int *minor)
{
    long (*version)(unsigned int *, unsigned int *) =
        GENUINE(nvJitLinkVersion, unsigned int *, unsigned int *);
    return version ? version(major, minor) : INTERNAL;
}
