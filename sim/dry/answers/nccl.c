/*
 * NCCL: communicators whose ranks are the processes of this dry run. What a rank sends, up to 1 MiB,
 * arrives at the others, and is known there if it was known here: shapes, sizes, pickled objects.
 * Larger contributions are left out, because nothing reads them. A rank that is alone (one process
 * that says it is rank 0 of 8) gets what it would if all others held what it holds. Of the buffers
 * only the size is known, by assumption: each communicator takes so much, by its ranks.
 *
 * A message is a file beside the status file, renamed when it is complete. A rank waits within the
 * call, not on the stream, so what GPUs could do in any order may be a circle here: then the message
 * is given up, and its content is unknown.
 */
#include "common.h"
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef NCCL_VERSION_CODE
#define NCCL_VERSION_CODE 22000
#endif

enum {
    UNHANDLED_CUDA_ERROR = 1,
    INVALID_ARGUMENT = 4,
    MOST_DEVICES = 64,
    MOST_COPIED = 1 << 20,
    NAME_SIZE = 128,
    NAP_US = 500,
    NAPS_OF_CIRCLE = 4000,   /* 2 s in which nothing moves */
    NAPS_OF_STRANGER = 60000 /* at least 30 s for a rank that is not there yet */
};

struct unique_id {
    char bytes[NAME_SIZE];
};

struct communicator {
    int rank, size, device;
    uint64_t buffers; /* bytes taken */
    bool alone;
    char name[NAME_SIZE]; /* empty: its ranks share this process, and nothing is exchanged */
    unsigned collectives, kept_from, splits;
    unsigned *sent, *received; /* messages to and from each rank */
};

typedef int copy_function(uint64_t to, uint64_t from, size_t bytes, void *stream);
typedef bool take_function(int device, uint64_t bytes);
typedef void give_function(int device, uint64_t bytes);
typedef int allocate_function(uint64_t *address, size_t bytes);
typedef int free_function(uint64_t address);
typedef int capture_function(void *stream, int *status);
typedef bool knows_function(uint64_t address, uint64_t bytes);
typedef void tell_function(uint64_t address, uint64_t bytes);

/* The driver is the simulated one: this library exists only beside it. */
static void *of_driver(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    return driver ? dlsym(driver, name) : NULL;
}

static void copy_async(void *to, const void *from, size_t bytes, void *stream)
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

/* ---- messages -------------------------------------------------------------------------------------- */

struct message {
    bool known;
    size_t bytes;
    unsigned char data[]; /* of the host */
};

/* A file beside the status file. False: there is no dry run around us. */
static bool path_of(char path[PATH_MAX], const char *name)
{
    const char *status = getenv("GPUMEM_DRY_STATUS");
    int length = status ? snprintf(path, PATH_MAX, "%s.%s", status, name) : -1;
    return length > 0 && length < PATH_MAX;
}

static bool write_message(const char *name, const void *data, size_t bytes)
{
    static unsigned count;
    char path[PATH_MAX], other[PATH_MAX + 64];
    if (!path_of(path, name))
        return false;
    snprintf(other, sizeof(other), "%s.%d.%u", path, (int)getpid(),
             __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED));
    FILE *file = fopen(other, "we");
    if (!file)
        return false;
    bool good = fwrite(data, 1, bytes, file) == bytes;
    good = fclose(file) == 0 && good;
    return good && rename(other, path) == 0;
}

static void *read_message(const char *name, size_t *bytes)
{
    char path[PATH_MAX];
    struct stat status;
    FILE *file = path_of(path, name) ? fopen(path, "re") : NULL;
    void *data = NULL;
    if (file && fstat(fileno(file), &status) == 0 && (data = malloc((size_t)status.st_size + 1))) {
        *bytes = fread(data, 1, (size_t)status.st_size, file);
        ((char *)data)[*bytes] = 0;
    }
    if (file)
        fclose(file);
    return data;
}

static void remove_file(const char *name)
{
    char path[PATH_MAX];
    if (path_of(path, name))
        unlink(path);
}

static bool is_capturing(void *stream)
{
    static capture_function *function;
    int status = 0;
    if (!function)
        function = (capture_function *)of_driver("cuStreamIsCapturing");
    return function && function(stream, &status) == 0 && status != 0;
}

/* The simulated device's memory is the host's. */
static void post_message(const char *name, const void *from, size_t bytes)
{
    static knows_function *knows;
    struct message *message = calloc(1, sizeof(*message) + bytes);
    if (!knows)
        knows = (knows_function *)of_driver("gpumem_sim_knows");
    if (!message)
        return;
    message->bytes = bytes;
    message->known = knows && knows((uintptr_t)from, bytes);
    memcpy(message->data, from, bytes);
    write_message(name, message, sizeof(*message) + bytes);
    free(message);
}

static void deliver(void *to, const void *data, size_t bytes, bool known)
{
    static tell_function *learn, *unlearn;
    if (!learn)
        learn = (tell_function *)of_driver("gpumem_sim_learn");
    if (!unlearn)
        unlearn = (tell_function *)of_driver("gpumem_sim_unlearn");
    if (data)
        memcpy(to, data, bytes);
    if (learn && unlearn)
        (known ? learn : unlearn)((uintptr_t)to, bytes);
}

/* ---- who is there ---------------------------------------------------------------------------------- */

static int parent_of(int process)
{
    char path[64], line[512];
    snprintf(path, sizeof(path), "/proc/%d/stat", process);
    FILE *file = fopen(path, "re");
    const char *rest = file && fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
    int parent = 0;
    char state = 'X';
    if (!rest || sscanf(rest + 1, " %c %d", &state, &parent) != 2 || state == 'Z' || state == 'X')
        parent = 0;
    if (file)
        fclose(file);
    return parent;
}

/* Ended processes are not alive, nor are those that nobody waited for. */
static bool is_alive(int process)
{
    return process > 0 && parent_of(process) > 0;
}

static bool is_below(int process, int other)
{
    for (int at = process, i = 0; at > 1 && i < 64; at = parent_of(at), i++)
        if (at == other)
            return true;
    return false;
}

/* Processes with this library, so that a rank can tell whether others may still come. */
__attribute__((constructor)) static void register_process(void)
{
    const char *status = getenv("GPUMEM_DRY_STATUS");
    char path[PATH_MAX];
    FILE *file = status && path_of(path, "processes") ? fopen(path, "ae") : NULL;
    if (!file)
        return;
    fprintf(file, "%d\n", (int)getpid());
    fclose(file);
}

/* Whether a process lives that could be another rank: not one that started us, nor that we started. */
static bool others_can_come(void)
{
    size_t bytes = 0;
    char *list = read_message("processes", &bytes), *rest = list;
    bool found = false;
    for (char *line; !found && rest && (line = strsep(&rest, "\n"));) {
        int process = atoi(line);
        found = is_alive(process) && !is_below(process, getpid()) && !is_below(getpid(), process);
    }
    free(list);
    return found;
}

static int process_of(const struct communicator *comm, int rank)
{
    char name[2 * NAME_SIZE];
    size_t bytes = 0;
    snprintf(name, sizeof(name), "%s.rank.%d", comm->name, rank);
    char *text = read_message(name, &bytes);
    int process = text ? atoi(text) : 0;
    free(text);
    return process;
}

/* What a process waits for: another process, and how often it waited. */
static int waits_for(int process, unsigned *round)
{
    char name[64];
    size_t bytes = 0;
    int other = 0;
    snprintf(name, sizeof(name), "waits.%d", process);
    char *text = read_message(name, &bytes);
    if (!text || sscanf(text, "%d %u", &other, round) != 2)
        other = 0;
    free(text);
    return other;
}

/* Whether the process that is waited for waits for us in the end. `state` tells one circle from the next. */
static bool is_circle(int process, uint64_t *state)
{
    *state = 0;
    for (int i = 0; process && i < 256; i++) {
        unsigned round = 0;
        if (process == getpid())
            return true;
        process = waits_for(process, &round);
        *state = *state * 31 + round;
    }
    return false;
}

/* What a rank posted under a name, for the caller to free; NULL: it never comes. */
static struct message *await(struct communicator *comm, int rank, const char *name)
{
    static unsigned rounds;
    char own[64], text[64];
    struct message *message = NULL;
    size_t bytes = 0;
    unsigned naps = 0, naps_of_circle = 0;
    uint64_t circle = 0, state = 0;
    snprintf(own, sizeof(own), "waits.%d", (int)getpid());
    for (;; naps++) {
        message = read_message(name, &bytes);
        if (message)
            break;
        int process = process_of(comm, rank);
        if (naps % 20 == 1) {
            if (process ? !is_alive(process) : naps > NAPS_OF_STRANGER || !others_can_come()) {
                message = read_message(name, &bytes); /* it may have posted as its last act */
                break;
            }
            if (naps == 1) {
                int length = snprintf(text, sizeof(text), "%d %u", process,
                                      __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED));
                write_message(own, text, (size_t)length);
            }
            naps_of_circle =
                is_circle(process, &circle) && circle == state ? naps_of_circle + 20 : 0;
            state = circle;
            if (naps_of_circle >= NAPS_OF_CIRCLE)
                break;
        }
        usleep(NAP_US);
    }
    if (naps)
        remove_file(own);
    if (message && (bytes < sizeof(*message) || message->bytes != bytes - sizeof(*message))) {
        free(message);
        message = NULL;
    }
    return message;
}

/* ---- communicators ------------------------------------------------------------------------------ */

/* Bytes of the buffers of the communicators that a device has. */
static _Atomic uint64_t taken[MOST_DEVICES];

static uint64_t nccl_setting(const char *name)
{
    const char *bytes = getenv(name);
    return bytes ? strtoull(bytes, NULL, 10) : 0;
}

/* Whether the device has room for them. One rank alone has none. */
static bool take_buffers(struct communicator *comm)
{
    char text[64];
    if (comm->size == 1 || comm->device < 0 || comm->device >= MOST_DEVICES)
        return true;
    uint64_t bytes = nccl_setting("GPUMEM_DRY_NCCL") +
                     (uint64_t)comm->size * nccl_setting("GPUMEM_DRY_NCCL_RANK");
    take_function *take = (take_function *)of_driver("gpumem_sim_take");
    if (!take)
        return true;
    uint64_t all = atomic_fetch_add(&taken[comm->device], bytes) + bytes;
    snprintf(text, sizeof(text), "nccl\t%llu", (unsigned long long)all);
    gpumem_stub_write(text);
    if (take(comm->device, bytes))
        comm->buffers = bytes;
    else
        atomic_fetch_sub(&taken[comm->device], bytes);
    return comm->buffers == bytes;
}

static void give_back_buffers(const struct communicator *comm)
{
    give_function *give = (give_function *)of_driver("gpumem_sim_give_back");
    if (!give || !comm->buffers)
        return;
    give(comm->device, comm->buffers);
    atomic_fetch_sub(&taken[comm->device], comm->buffers);
}

static void end_communicator(struct communicator *comm)
{
    if (comm) {
        give_back_buffers(comm);
        free(comm->sent);
    }
    free(comm);
}

/* `name`: the same for all ranks; NULL: they share this process. */
static long new_communicator(struct communicator **out, int size, int rank, int device,
                             const char *name)
{
    if (!out || size < 1 || rank < 0 || rank >= size)
        return INVALID_ARGUMENT;
    struct communicator *comm = calloc(1, sizeof(*comm));
    unsigned *counts = calloc(2 * (size_t)size, sizeof(*counts));
    if (!comm || !counts) {
        free(comm);
        free(counts);
        return 2; /* ncclSystemError */
    }
    *comm = (struct communicator){
        rank, size, device, .alone = !name || size == 1, .sent = counts, .received = counts + size};
    if (!take_buffers(comm)) {
        end_communicator(comm);
        return UNHANDLED_CUDA_ERROR;
    }
    if (!comm->alone) {
        char file[2 * NAME_SIZE], text[32];
        snprintf(comm->name, sizeof(comm->name), "%.*s", NAME_SIZE - 1, name);
        snprintf(file, sizeof(file), "%s.rank.%d", comm->name, rank);
        comm->alone =
            strchr(comm->name, '/') ||
            !write_message(file, text, (size_t)snprintf(text, sizeof(text), "%d", (int)getpid()));
    }
    *out = comm;
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
    uint64_t number = 0;
    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
        return 2; /* ncclSystemError */
    snprintf(id->bytes, sizeof(id->bytes), "nccl-%016llx", (unsigned long long)number);
    return 0;
}

ANSWER(ncclCommInitRank, struct communicator **out, int size, struct unique_id id, int rank)
{
    return new_communicator(out, size, rank, current_device(), id.bytes);
}

ANSWER(ncclCommInitRankConfig, struct communicator **out, int size, struct unique_id id, int rank,
       void *config)
{
    (void)config;
    return new_communicator(out, size, rank, current_device(), id.bytes);
}

ANSWER(ncclCommInitRankScalable, struct communicator **out, int size, int rank, int ids,
       struct unique_id *id, void *config)
{
    (void)config;
    return new_communicator(out, size, rank, current_device(), ids > 0 && id ? id[0].bytes : NULL);
}

ANSWER(ncclCommInitAll, struct communicator **out, int size, const int *devices)
{
    for (int i = 0; i < size; i++)
        if (new_communicator(&out[i], size, i, devices ? devices[i] : i, NULL))
            return INVALID_ARGUMENT;
    return 0;
}

/* The ranks tell each other their colors; of a rank that never does, ours is assumed. */
ANSWER(ncclCommSplit, struct communicator *comm, int color, int key, struct communicator **out,
       void *config)
{
    int own[2] = {color, key}, size = 0, rank = 0;
    char name[NAME_SIZE], file[2 * NAME_SIZE];
    (void)config;
    if (!comm || !out)
        return INVALID_ARGUMENT;
    *out = NULL;
    unsigned number = comm->splits++;
    if (comm->alone)
        return color < 0 ? 0 : new_communicator(out, comm->size, comm->rank, comm->device, NULL);
    for (int i = -1; i < comm->size; i++) {
        struct message *message = NULL;
        int colors[2] = {color, key};
        snprintf(file, sizeof(file), "%s.split.%u.%d", comm->name, number, i < 0 ? comm->rank : i);
        if (i < 0) {
            struct {
                struct message message;
                int color[2];
            } mine = {{true, sizeof(own)}, {color, key}};
            write_message(file, &mine, sizeof(mine.message) + sizeof(own));
            continue;
        }
        if (i != comm->rank && (message = await(comm, i, file)) && message->bytes == sizeof(own))
            memcpy(colors, message->data, sizeof(own));
        free(message);
        size += colors[0] == color;
        rank += colors[0] == color && (colors[1] < key || (colors[1] == key && i < comm->rank));
    }
    if (color < 0)
        return 0;
    int length = snprintf(name, sizeof(name), "%s-%u-%d", comm->name, number, color);
    if (length < 0 || (size_t)length >= sizeof(name))
        return 3; /* ncclInternalError */
    return new_communicator(out, size, rank, comm->device, name);
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
    end_communicator(comm);
    return 0;
}

ANSWER(ncclCommAbort, struct communicator *comm)
{
    end_communicator(comm);
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

/* ---- operations ------------------------------------------------------------------------------------- */

enum kind { BROADCAST, ALL_REDUCE, REDUCE, ALL_GATHER, REDUCE_SCATTER, SEND, RECEIVE };

struct operation {
    enum kind kind;
    struct communicator *comm;
    const void *from;
    void *to;
    size_t count,
        bytes; /* of what one rank contributes, or gets of a reduction that is scattered */
    int data_type, reduction, root;
    void *stream;
    unsigned number; /* among those of the communicator, or between two ranks */
};

static _Thread_local int depth;
static _Thread_local struct operation *waiting;
static _Thread_local size_t waiting_count, waiting_room;

static void name_of_message(char name[2 * NAME_SIZE], const struct operation *operation,
                            unsigned number, int from, int to)
{
    if (to >= 0)
        snprintf(name, 2 * (size_t)NAME_SIZE, "%s.%d-%d.%u", operation->comm->name, from, to,
                 number);
    else
        snprintf(name, 2 * (size_t)NAME_SIZE, "%s.%u.%d", operation->comm->name, number, from);
}

static bool is_exchanged(const struct operation *operation)
{
    return !operation->comm->alone && operation->bytes && operation->bytes <= MOST_COPIED &&
           !is_capturing(operation->stream);
}

/* What this rank contributes is there before it waits for anybody. */
static void begin_operation(struct operation *operation)
{
    struct communicator *comm = operation->comm;
    char name[2 * NAME_SIZE];
    int to = -1;
    size_t bytes = operation->bytes;
    if (operation->kind == SEND)
        operation->number = comm->sent[to = operation->root]++;
    else if (operation->kind == RECEIVE)
        operation->number = comm->received[operation->root]++;
    else
        operation->number = comm->collectives++;
    if (!is_exchanged(operation) || operation->kind == RECEIVE ||
        (operation->kind == BROADCAST && operation->root != comm->rank))
        return;
    if (operation->kind == REDUCE_SCATTER)
        bytes *= (size_t)comm->size;
    name_of_message(name, operation, operation->number, comm->rank, to);
    post_message(name, operation->from, bytes);
}

#define REDUCE_AS(type)                                                                            \
    for (size_t i = 0; i < count; i++) {                                                           \
        type *a = (type *)sum + i, b = ((const type *)other)[i];                                   \
        *a = reduction == 1   ? (type)(*a * b)                                                     \
             : reduction == 2 ? (*a > b ? *a : b)                                                  \
             : reduction == 3 ? (*a < b ? *a : b)                                                  \
                              : (type)(*a + b);                                                    \
    }

/* `reduction`: of ncclRedOp_t sum, product, largest, smallest. False: not one that is computed here. */
static bool reduce(void *sum, const void *other, size_t count, int data_type, int reduction)
{
    if (reduction < 0 || reduction > 3)
        return false;
    switch (data_type) {
    case 0:
        REDUCE_AS(int8_t) return true;
    case 1:
        REDUCE_AS(uint8_t) return true;
    case 2:
        REDUCE_AS(int32_t) return true;
    case 3:
        REDUCE_AS(uint32_t) return true;
    case 4:
        REDUCE_AS(int64_t) return true;
    case 5:
        REDUCE_AS(uint64_t) return true;
    case 7:
        REDUCE_AS(float) return true;
    case 8:
        REDUCE_AS(double) return true;
    default:
        return false; /* of half precision: gradients, which nothing reads */
    }
}

/* One message goes to one place. */
static void take_message(struct operation *operation, void *to, int from, int for_rank)
{
    char name[2 * NAME_SIZE];
    name_of_message(name, operation, operation->number, from, for_rank);
    struct message *message = await(operation->comm, from, name);
    bool fits = message && message->bytes == operation->bytes;
    deliver(to, fits ? message->data : NULL, operation->bytes, fits && message->known);
    free(message);
    if (for_rank >= 0)
        remove_file(name);
}

static void take_reduced(struct operation *operation)
{
    struct communicator *comm = operation->comm;
    bool scatters = operation->kind == REDUCE_SCATTER, known = true;
    size_t bytes = operation->bytes * (size_t)(scatters ? comm->size : 1);
    size_t offset = scatters ? operation->bytes * (size_t)comm->rank : 0;
    unsigned char *sum = malloc(bytes);
    char name[2 * NAME_SIZE];
    for (int i = 0; sum && i < comm->size; i++) {
        name_of_message(name, operation, operation->number, i, -1);
        struct message *message = await(comm, i, name);
        bool fits = message && message->bytes == bytes;
        known = known && fits && message->known;
        if (fits && i == 0)
            memcpy(sum, message->data, bytes);
        else if (fits)
            known = reduce(sum + offset, message->data + offset, operation->count,
                           operation->data_type, operation->reduction) &&
                    known;
        else if (i == 0)
            memset(sum, 0, bytes);
        free(message);
    }
    if (sum && (operation->kind != REDUCE || operation->root == comm->rank))
        deliver(operation->to, sum + offset, operation->bytes, known);
    free(sum);
}

/* All have begun this one, so all have ended those before it. */
static void remove_older(struct operation *operation)
{
    struct communicator *comm = operation->comm;
    char name[2 * NAME_SIZE];
    for (; comm->kept_from < operation->number; comm->kept_from++) {
        name_of_message(name, operation, comm->kept_from, comm->rank, -1);
        remove_file(name);
    }
}

static void end_exchanged(struct operation *operation)
{
    struct communicator *comm = operation->comm;
    switch (operation->kind) {
    case SEND:
        break;
    case RECEIVE:
        take_message(operation, operation->to, operation->root, comm->rank);
        break;
    case BROADCAST:
        take_message(operation, operation->to, operation->root, -1);
        break;
    case ALL_GATHER:
        for (int i = 0; i < comm->size; i++)
            take_message(operation, (char *)operation->to + (size_t)i * operation->bytes, i, -1);
        remove_older(operation);
        break;
    case ALL_REDUCE:
    case REDUCE:
    case REDUCE_SCATTER:
        take_reduced(operation);
        remove_older(operation);
        break;
    }
}

/* As if all ranks held what this one holds. */
static void end_alone(struct operation *operation)
{
    const struct communicator *comm = operation->comm;
    const char *from = operation->from;
    switch (operation->kind) {
    case SEND:
    case RECEIVE:
        break;
    case BROADCAST:
    case REDUCE:
        if (operation->root == comm->rank)
            copy_async(operation->to, from, operation->bytes, operation->stream);
        break;
    case ALL_REDUCE:
        copy_async(operation->to, from, operation->bytes, operation->stream);
        break;
    case ALL_GATHER:
        for (int i = 0; operation->bytes <= MOST_COPIED && i < comm->size; i++)
            copy_async((char *)operation->to + (size_t)i * operation->bytes, from, operation->bytes,
                       operation->stream);
        break;
    case REDUCE_SCATTER:
        copy_async(operation->to, from + (size_t)comm->rank * operation->bytes, operation->bytes,
                   operation->stream);
        break;
    }
}

/* A rank is alone if nobody else has come, and nobody can. */
static void look_for_others(struct communicator *comm)
{
    if (comm->alone || comm->kept_from || others_can_come())
        return;
    comm->alone = true;
    for (int i = 0; comm->alone && i < comm->size; i++)
        comm->alone = i == comm->rank || !process_of(comm, i);
}

static void end_operation(struct operation *operation)
{
    if (is_exchanged(operation))
        end_exchanged(operation);
    else
        end_alone(operation);
}

/* PyTorch gathers tensors of unequal sizes as a group of broadcasts, one from each rank: of a rank
 * that is alone what it sends goes into all outputs of that size. */
static void fill_alone(void)
{
    for (size_t own = 0; own < waiting_count; own++) {
        const struct operation *mine = &waiting[own];
        if (mine->kind != BROADCAST || mine->root != mine->comm->rank)
            continue;
        for (size_t i = 0; i < waiting_count; i++)
            if (waiting[i].kind == BROADCAST && waiting[i].comm->alone &&
                waiting[i].bytes == mine->bytes)
                copy_async(waiting[i].to, mine->from, mine->bytes, mine->stream);
    }
}

static long add_operation(struct operation operation)
{
    if (!operation.comm || operation.root < 0 || operation.root >= operation.comm->size)
        return INVALID_ARGUMENT;
    look_for_others(operation.comm);
    begin_operation(&operation);
    if (!depth) {
        end_operation(&operation);
        return 0;
    }
    if (waiting_count == waiting_room) {
        size_t room = waiting_room ? 2 * waiting_room : 64;
        struct operation *more = realloc(waiting, room * sizeof(*more));
        if (!more)
            return 2; /* ncclSystemError */
        waiting = more;
        waiting_room = room;
    }
    waiting[waiting_count++] = operation;
    return 0;
}

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
    for (size_t i = 0; i < waiting_count; i++)
        end_operation(&waiting[i]);
    fill_alone();
    free(waiting);
    waiting = NULL;
    waiting_count = waiting_room = 0;
    return 0;
}

ANSWER(ncclBroadcast, const void *from, void *to, size_t count, int data_type, int root,
       struct communicator *comm, void *stream)
{
    return add_operation((struct operation){BROADCAST, comm, from, to, count,
                                            bytes_of(count, data_type), data_type, 0, root, stream,
                                            0});
}

ANSWER(ncclBcast, void *buffer, size_t count, int data_type, int root, struct communicator *comm,
       void *stream)
{
    return ncclBroadcast(buffer, buffer, count, data_type, root, comm, stream);
}

ANSWER(ncclAllReduce, const void *from, void *to, size_t count, int data_type, int reduction,
       struct communicator *comm, void *stream)
{
    return add_operation((struct operation){ALL_REDUCE, comm, from, to, count,
                                            bytes_of(count, data_type), data_type, reduction, 0,
                                            stream, 0});
}

ANSWER(ncclReduce, const void *from, void *to, size_t count, int data_type, int reduction, int root,
       struct communicator *comm, void *stream)
{
    return add_operation((struct operation){REDUCE, comm, from, to, count,
                                            bytes_of(count, data_type), data_type, reduction, root,
                                            stream, 0});
}

ANSWER(ncclAllGather, const void *from, void *to, size_t count, int data_type,
       struct communicator *comm, void *stream)
{
    return add_operation((struct operation){
        ALL_GATHER, comm, from, to, count, bytes_of(count, data_type), data_type, 0, 0, stream, 0});
}

ANSWER(ncclReduceScatter, const void *from, void *to, size_t count, int data_type, int reduction,
       struct communicator *comm, void *stream)
{
    return add_operation((struct operation){REDUCE_SCATTER, comm, from, to, count,
                                            bytes_of(count, data_type), data_type, reduction, 0,
                                            stream, 0});
}

ANSWER(ncclSend, const void *from, size_t count, int data_type, int peer, struct communicator *comm,
       void *stream)
{
    return add_operation((struct operation){
        SEND, comm, from, NULL, count, bytes_of(count, data_type), data_type, 0, peer, stream, 0});
}

ANSWER(ncclRecv, void *to, size_t count, int data_type, int peer, struct communicator *comm,
       void *stream)
{
    return add_operation((struct operation){
        RECEIVE, comm, NULL, to, count, bytes_of(count, data_type), data_type, 0, peer, stream, 0});
}

/* Of versions that have them: sends and receives. */
ANSWER(ncclAlltoAll, const void *from, void *to, size_t count, int data_type,
       struct communicator *comm, void *stream)
{
    size_t bytes = bytes_of(count, data_type);
    if (!comm)
        return INVALID_ARGUMENT;
    ncclGroupStart();
    for (int i = 0; i < comm->size; i++) {
        ncclSend((const char *)from + (size_t)i * bytes, count, data_type, i, comm, stream);
        ncclRecv((char *)to + (size_t)i * bytes, count, data_type, i, comm, stream);
    }
    return ncclGroupEnd();
}

ANSWER(ncclGather, const void *from, void *to, size_t count, int data_type, int root,
       struct communicator *comm, void *stream)
{
    size_t bytes = bytes_of(count, data_type);
    if (!comm)
        return INVALID_ARGUMENT;
    ncclGroupStart();
    ncclSend(from, count, data_type, root, comm, stream);
    for (int i = 0; comm->rank == root && i < comm->size; i++)
        ncclRecv((char *)to + (size_t)i * bytes, count, data_type, i, comm, stream);
    return ncclGroupEnd();
}

ANSWER(ncclScatter, const void *from, void *to, size_t count, int data_type, int root,
       struct communicator *comm, void *stream)
{
    size_t bytes = bytes_of(count, data_type);
    if (!comm)
        return INVALID_ARGUMENT;
    ncclGroupStart();
    for (int i = 0; comm->rank == root && i < comm->size; i++)
        ncclSend((const char *)from + (size_t)i * bytes, count, data_type, i, comm, stream);
    ncclRecv(to, count, data_type, root, comm, stream);
    return ncclGroupEnd();
}
