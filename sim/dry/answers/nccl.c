/*
 * NCCL: a communicator that knows its rank and size, and collectives in which every rank holds what
 * this one holds. So that control flow which reads their results goes its way, contributions of up
 * to 1 MiB are copied to where the result belongs; larger ones are left out, because nothing reads
 * them. No buffers are allocated: those of a real communicator are told as an assumption.
 */
#include "common.h"

#ifndef NCCL_VERSION_CODE
#define NCCL_VERSION_CODE 22000
#endif

enum { INVALID_ARGUMENT = 4, MOST_COPIED = 1 << 20, MOST_IN_GROUP = 1024 };

struct unique_id {
    char bytes[128];
};

struct communicator {
    int rank, size, device;
};

typedef int copy_function(uint64_t to, uint64_t from, size_t bytes, void *stream);
typedef int allocate_function(uint64_t *address, size_t bytes);
typedef int free_function(uint64_t address);

/* The driver is the simulated one: this library exists only beside it. */
static void *of_driver(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    return driver ? dlsym(driver, name) : NULL;
}

static void copy(void *to, const void *from, size_t bytes, void *stream)
{
    static copy_function *function;
    if (!function)
        function = (copy_function *)of_driver("cuMemcpyAsync");
    if (function && to && from && to != from && bytes && bytes <= MOST_COPIED)
        function((uintptr_t)to, (uintptr_t)from, bytes, stream);
}

static size_t bytes_of(size_t count, int data_type)
{
    static const unsigned char sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    size_t element = data_type >= 0 && (size_t)data_type < sizeof(sizes) ? sizes[data_type] : 1;
    return count > SIZE_MAX / 8 ? 0 : count * element;
}

/* ---- communicators ------------------------------------------------------------------------------ */

static long new_communicator(struct communicator **out, int size, int rank, int device)
{
    if (!out || size < 1 || rank < 0 || rank >= size)
        return INVALID_ARGUMENT;
    *out = calloc(1, sizeof(**out));
    if (!*out)
        return 2; /* ncclSystemError */
    **out = (struct communicator){rank, size, device};
    if (size > 1)
        gpumem_stub_tell("nccl");
    return 0;
}

static int current_device(void)
{
    int (*get)(int *) = (int (*)(int *))of_driver("cuCtxGetDevice");
    int device = 0;
    return get && get(&device) == 0 ? device : 0;
}

ANSWER(ncclGetVersion, int *version)
{
    if (version)
        *version = NCCL_VERSION_CODE;
    return 0;
}

ANSWER(ncclGetUniqueId, struct unique_id *id)
{
    if (!id)
        return INVALID_ARGUMENT;
    memset(id, 0, sizeof(*id));
    snprintf(id->bytes, sizeof(id->bytes), "gpumem dry run");
    return 0;
}

ANSWER(ncclCommInitRank, struct communicator **out, int size, struct unique_id id, int rank)
{
    (void)id;
    return new_communicator(out, size, rank, current_device());
}

ANSWER(ncclCommInitRankConfig, struct communicator **out, int size, struct unique_id id, int rank,
       void *config)
{
    (void)id, (void)config;
    return new_communicator(out, size, rank, current_device());
}

ANSWER(ncclCommInitRankScalable, struct communicator **out, int size, int rank, int ids,
       struct unique_id *id, void *config)
{
    (void)ids, (void)id, (void)config;
    return new_communicator(out, size, rank, current_device());
}

ANSWER(ncclCommInitAll, struct communicator **out, int size, const int *devices)
{
    for (int i = 0; i < size; i++)
        if (new_communicator(&out[i], size, i, devices ? devices[i] : i))
            return INVALID_ARGUMENT;
    return 0;
}

/* How many ranks have this color, the others alone know: assumed are all. */
ANSWER(ncclCommSplit, struct communicator *comm, int color, int key, struct communicator **out,
       void *config)
{
    (void)key, (void)config;
    if (!comm || !out)
        return INVALID_ARGUMENT;
    *out = NULL;
    return color < 0 ? 0 : new_communicator(out, comm->size, comm->rank, comm->device);
}

ANSWER(ncclCommCount, const struct communicator *comm, int *count)
{
    if (!comm || !count)
        return INVALID_ARGUMENT;
    *count = comm->size;
    return 0;
}

ANSWER(ncclCommUserRank, const struct communicator *comm, int *rank)
{
    if (!comm || !rank)
        return INVALID_ARGUMENT;
    *rank = comm->rank;
    return 0;
}

ANSWER(ncclCommCuDevice, const struct communicator *comm, int *device)
{
    if (!comm || !device)
        return INVALID_ARGUMENT;
    *device = comm->device;
    return 0;
}

ANSWER(ncclCommGetAsyncError, struct communicator *comm, int *error)
{
    (void)comm;
    if (error)
        *error = 0;
    return 0;
}

ANSWER(ncclCommDestroy, struct communicator *comm)
{
    free(comm);
    return 0;
}

ANSWER(ncclCommAbort, struct communicator *comm)
{
    free(comm);
    return 0;
}

ANSWER(ncclMemAlloc, void **address, size_t bytes)
{
    allocate_function *function = (allocate_function *)of_driver("cuMemAlloc_v2");
    uint64_t found = 0;
    if (!address || !function || function(&found, bytes))
        return 1; /* ncclUnhandledCudaError */
    *address = (void *)(uintptr_t)found;
    return 0;
}

ANSWER(ncclMemFree, void *address)
{
    free_function *function = (free_function *)of_driver("cuMemFree_v2");
    return function && function((uintptr_t)address) == 0 ? 0 : 1;
}

ANSWER(ncclCommRegister, struct communicator *comm, void *buffer, size_t bytes, void **handle)
{
    (void)comm, (void)buffer, (void)bytes;
    if (handle)
        *handle = comm;
    return 0;
}

/* ---- groups --------------------------------------------------------------------------------------- */

/* PyTorch gathers tensors of unequal sizes as a group of broadcasts, one from each rank: then what
 * this rank sends goes into all outputs of that size. */
struct broadcast {
    const void *from;
    void *to;
    size_t bytes;
    int root, rank;
    void *stream;
};

static _Thread_local int depth;
static _Thread_local struct broadcast *waiting;
static _Thread_local int waiting_count;

ANSWER(ncclGroupStart, void)
{
    depth++;
    return 0;
}

ANSWER(ncclGroupEnd, void)
{
    if (depth < 1)
        return 5; /* ncclInvalidUsage */
    if (--depth)
        return 0;
    for (int own = 0; own < waiting_count; own++) {
        if (waiting[own].root != waiting[own].rank)
            continue;
        for (int i = 0; i < waiting_count; i++)
            if (waiting[i].bytes == waiting[own].bytes)
                copy(waiting[i].to, waiting[own].from, waiting[own].bytes, waiting[own].stream);
    }
    free(waiting);
    waiting = NULL;
    waiting_count = 0;
    return 0;
}

ANSWER(ncclBroadcast, const void *from, void *to, size_t count, int data_type, int root,
       struct communicator *comm, void *stream)
{
    if (!comm)
        return INVALID_ARGUMENT;
    struct broadcast one = {from, to, bytes_of(count, data_type), root, comm->rank, stream};
    if (depth && waiting_count < MOST_IN_GROUP) {
        if (!waiting)
            waiting = calloc(MOST_IN_GROUP, sizeof(*waiting));
        if (waiting)
            waiting[waiting_count++] = one;
        return 0;
    }
    if (root == comm->rank)
        copy(to, from, one.bytes, stream);
    return 0;
}

/* ---- collectives ------------------------------------------------------------------------------------ */

ANSWER(ncclAllReduce, const void *from, void *to, size_t count, int data_type, int operation,
       struct communicator *comm, void *stream)
{
    (void)operation, (void)comm;
    copy(to, from, bytes_of(count, data_type), stream);
    return 0;
}

ANSWER(ncclReduce, const void *from, void *to, size_t count, int data_type, int operation, int root,
       struct communicator *comm, void *stream)
{
    (void)operation;
    if (comm && comm->rank == root)
        copy(to, from, bytes_of(count, data_type), stream);
    return 0;
}

ANSWER(ncclAllGather, const void *from, void *to, size_t count, int data_type,
       struct communicator *comm, void *stream)
{
    size_t bytes = bytes_of(count, data_type);
    if (!comm)
        return INVALID_ARGUMENT;
    for (int i = 0; bytes <= MOST_COPIED && i < comm->size; i++)
        copy((char *)to + (size_t)i * bytes, from, bytes, stream);
    return 0;
}

ANSWER(ncclReduceScatter, const void *from, void *to, size_t count, int data_type, int operation,
       struct communicator *comm, void *stream)
{
    size_t bytes = bytes_of(count, data_type);
    (void)operation;
    if (!comm)
        return INVALID_ARGUMENT;
    copy(to, (const char *)from + (size_t)comm->rank * bytes, bytes, stream);
    return 0;
}
