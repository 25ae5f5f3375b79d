/*
 * Threads that call CUDA while another thread holds a lock of the loader and waits for them. Run by
 * run.py. Without a guest none of their calls asks the loader; with one none may either. The driver
 * is linked (LINKED) or opened by hand before.
 *
 *   loader constructor PLUGIN   the constructor of a plugin waits
 *   loader listing              a callback of dl_iterate_phdr waits
 *   loader set_ids              the same, and it sets users and groups
 */
#include "../programs/generated_code.h"
#include "set_ids.h"
#include <cuda.h>
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef CUresult get_function(const char *, void **, int, cuuint64_t,
                              CUdriverProcAddressQueryResult *);
typedef CUresult alloc_function(CUdeviceptr *, size_t);
typedef CUresult free_function(CUdeviceptr);

static CUresult (*get_device)(CUdevice *, int);
static CUresult (*set_context)(CUcontext);
static CUresult (*create_context)(CUcontext *, unsigned, CUdevice);
static CUcontext context;
static alloc_function *alloc;
static free_function *release;
static get_function *get;
static generated_code *call_from_code_without_tables;
static void *driver;

static void pair(void)
{
    CUdeviceptr address;
    if (alloc(&address, 512) == CUDA_SUCCESS)
        release(address);
}

static void deep(int levels)
{
    volatile char room[64];
    room[0] = (char)levels;
    if (levels > 0)
        deep(levels - 1);
    else
        call_from_code_without_tables(pair);
    room[1] = 0;
}

/* Every way to CUDA, from a stack that the rules understand and from one they do not. */
static void *call_cuda(void *first)
{
    CUdevice device;
    alloc_function *found = NULL;
    printf("device %d\n", (int)get_device(&device, 0));
    if (first)
        printf("created %d\n", (int)create_context(&context, 0, device));
    else
        printf("set %d\n", (int)set_context(context));
    for (int i = 0; i < 20000; i++) /* more than half a ring */
        pair();
    deep(40);
    printf("got %d\n", (int)get("cuMemAlloc", (void **)&found, 12000, 0, NULL));
    CUdeviceptr address = 0;
    printf("allocated %d\n", found ? (int)found(&address, 1024) : -1);
    printf("freed %d\n", (int)release(address));
    return NULL;
}

static void call_in_threads(void)
{
    for (intptr_t i = 0; i < 2; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, call_cuda, (void *)(1 - i));
        pthread_join(thread, NULL);
    }
}

/* A plugin's constructor comes here through this pointer. */
void (*waiting_constructor_calls)(void);

static int wait_in_callback(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)info;
    (void)size;
    (void)unused;
    call_in_threads();
    return 1;
}

/* A guest's thread that asks the loader waits until this has returned. */
static int set_ids_in_callback(struct dl_phdr_info *info, size_t size, void *unused)
{
    wait_in_callback(info, size, unused);
    set_ids_beside("gpumem-loader");
    return 1;
}

static void *look_up(const char *name)
{
    void *found = dlsym(driver, name);
    if (!found)
        printf("no %s\n", name);
    return found;
}

static void find_functions(void)
{
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    get_device = (CUresult(*)(CUdevice *, int))look_up("cuDeviceGet");
    set_context = (CUresult(*)(CUcontext))look_up("cuCtxSetCurrent");
    create_context = (CUresult(*)(CUcontext *, unsigned, CUdevice))look_up("cuCtxCreate_v2");
    alloc = (alloc_function *)look_up("cuMemAlloc_v2");
    release = (free_function *)look_up("cuMemFree_v2");
    get = (get_function *)look_up("cuGetProcAddress_v2");
    ((CUresult(*)(unsigned))look_up("cuInit"))(0);
}

#ifdef LINKED
CUresult cuCtxCreate_v2(CUcontext *, unsigned, CUdevice); /* of headers before 13 */

static void use_linked(void)
{
    get_device = cuDeviceGet;
    set_context = cuCtxSetCurrent;
    create_context = cuCtxCreate_v2;
    alloc = cuMemAlloc;
    release = cuMemFree;
    get = cuGetProcAddress;
}
#endif

int main(int count, char **arguments)
{
    setvbuf(stdout, NULL, _IONBF, 0);
    call_from_code_without_tables = generate_code();
#ifdef LINKED
    use_linked();
    cuInit(0);
#else
    find_functions();
#endif
    waiting_constructor_calls = call_in_threads;
    if (count > 1 && strcmp(arguments[1], "listing") == 0)
        dl_iterate_phdr(wait_in_callback, NULL);
    else if (count > 1 && strcmp(arguments[1], "set_ids") == 0)
        dl_iterate_phdr(set_ids_in_callback, NULL);
    else if (count > 2)
        printf("plugin %s\n", dlopen(arguments[2], RTLD_NOW) ? "loaded" : dlerror());
    return 0;
}
