/*
 * A driver written from the comments of cuda.h, and from nothing of this project: it does what these allow, where the
 * simulator once did something tamer. It counts nothing: stub.py knows what each program leaves behind.
 *
 *   STUB_REFUSE=NAME  the first call of that function returns CUDA_ERROR_OUT_OF_MEMORY
 *   STUB_ERROR=N      "Subsequent calls": what all return once a kernel named "illegal" was launched
 *   STUB_GREEN=1      a green context converts to a handle of its own, not to the primary context's
 *
 * Handles and addresses that were given back are used again at once, the latest first: a handle that another thread asks
 * for before the call that gave it back has returned.
 */
#include <cuda.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define ALIGN ((CUdeviceptr)2 << 20)
#define OBJECTS_MAX 65536
#define BLOCKS_MAX 65536
#define NODES_MAX 8

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool is_initialised;
static CUresult error; /* of the device, for good */

static void leave(const int *unused)
{
    (void)unused;
    pthread_mutex_unlock(&mutex);
}

#define LOCKED                                                                                     \
    __attribute__((cleanup(leave))) const int lock_ = pthread_mutex_lock(&mutex);                  \
    (void)lock_
/* Enters a function that `refuse` may name. */
#define ENTER                                                                                      \
    LOCKED;                                                                                        \
    CUresult refusal_ = refusal(__func__);                                                         \
    if (refusal_ != CUDA_SUCCESS)                                                                  \
    return refusal_

static CUresult refusal(const char *function)
{
    static bool has_refused;
    const char *name = getenv("STUB_REFUSE");
    if (!is_initialised)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (error != CUDA_SUCCESS)
        return error;
    if (has_refused || !name || strcmp(name, function) != 0)
        return CUDA_SUCCESS;
    has_refused = true;
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* ---- objects ----------------------------------------------------------------------------------- */

enum type { NONE, CONTEXT, GREEN, POOL, STREAM, EVENT, GRAPH, EXECUTABLE, CODE, PHYSICAL, ARRAY };

struct object {
    enum type type;
    struct object *next;  /* of those given back */
    struct object *other; /* stream, event: the graph they capture; green: what it converts to */
    bool is_capturing;
    bool is_alias; /* of the primary context */
    unsigned references;
    unsigned node_count;
    CUdeviceptr nodes[NODES_MAX]; /* what a launch allocates */
};

static struct object objects[OBJECTS_MAX];
static struct object *given_back[ARRAY + 1];
static unsigned object_count;

static struct object *make(enum type type)
{
    struct object *object = given_back[type];
    if (object)
        given_back[type] = object->next;
    else if (object_count < OBJECTS_MAX)
        object = &objects[object_count++];
    else
        abort();
    *object = (struct object){.type = type, .references = 1};
    return object;
}

static void drop(struct object *object)
{
    enum type type = object->type;
    object->type = NONE;
    object->next = given_back[type];
    given_back[type] = object;
}

static struct object *find(const void *handle, enum type type)
{
    uintptr_t offset = (uintptr_t)handle - (uintptr_t)objects; /* large below the first */
    struct object *object = &objects[offset / sizeof(*objects) % OBJECTS_MAX];
    return handle == object && object->type == type ? object : NULL;
}

/* Returns when another thread has the handle, if one soon has. */
static void dawdle(const struct object *object)
{
    for (int i = 0; object && i < 50; i++) {
        pthread_mutex_lock(&mutex);
        bool is_others = object->type != NONE;
        pthread_mutex_unlock(&mutex);
        if (is_others)
            return;
        sched_yield();
    }
}

static CUresult destroy(const void *handle, enum type type, void (*end)(struct object *))
{
    struct object *object = NULL;
    {
        LOCKED;
        if (error == CUDA_SUCCESS || type == CONTEXT)
            object = find(handle, type);
        if (object)
            end(object);
    }
    dawdle(object);
    return object ? CUDA_SUCCESS : error ? error : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- addresses --------------------------------------------------------------------------------- */

static struct block {
    CUdeviceptr address;
    size_t size;
    const struct object *context; /* whose end it shares, NULL: nobody's */
    bool is_live;
} blocks[BLOCKS_MAX];
static unsigned block_count;

static CUdeviceptr take(size_t size, const struct object *context)
{
    static CUdeviceptr next = 0x700000000000;
    for (unsigned i = block_count; i-- > 0;)
        if (!blocks[i].is_live && blocks[i].size == size) {
            blocks[i].is_live = true;
            blocks[i].context = context;
            return blocks[i].address;
        }
    if (block_count == BLOCKS_MAX)
        abort();
    blocks[block_count++] = (struct block){next, size, context, true};
    next += (size + ALIGN - 1) / ALIGN * ALIGN;
    return blocks[block_count - 1].address;
}

static struct block *block_at(CUdeviceptr address)
{
    for (unsigned i = block_count; i-- > 0;)
        if (blocks[i].address == address)
            return &blocks[i];
    return NULL;
}

static CUresult give(CUdeviceptr address)
{
    struct block *block = block_at(address);
    if (!block || !block->is_live)
        return CUDA_ERROR_INVALID_VALUE;
    block->is_live = false;
    return CUDA_SUCCESS;
}

/* ---- contexts ---------------------------------------------------------------------------------- */

static struct object *primary;
static unsigned primary_references;
static __thread struct object *stack[16];
static __thread unsigned depth;

/* What is current here, the primary context for what is an alias of it. */
static const struct object *current(void)
{
    const struct object *top = depth ? stack[depth - 1] : NULL;
    if (!top || top->type != CONTEXT)
        return NULL;
    return top->is_alias ? primary : top;
}

static void end_context(struct object *context)
{
    depth -= depth && stack[depth - 1] == context;
    for (unsigned i = 0; i < block_count; i++)
        if (blocks[i].context == context)
            blocks[i].is_live = false;
    drop(context);
}

static struct object *retain_primary(void)
{
    if (primary_references++ == 0)
        primary = make(CONTEXT);
    return primary;
}

static CUresult release_primary(void)
{
    if (primary_references == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (--primary_references == 0)
        end_context(primary);
    return CUDA_SUCCESS;
}

CUresult cuInit(unsigned flags)
{
    (void)flags;
    LOCKED;
    is_initialised = true;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = 13000;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = ordinal;
    return ordinal == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    LOCKED;
    *device = 0;
    return current() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuCtxCreate(CUcontext *context, CUctxCreateParams *parameters, unsigned flags,
                     CUdevice device)
{
    (void)parameters, (void)flags, (void)device;
    ENTER;
    stack[depth++] = make(CONTEXT);
    *context = (CUcontext)stack[depth - 1];
    return CUDA_SUCCESS;
}

CUresult cuCtxDestroy(CUcontext context)
{
    return destroy(context, CONTEXT, end_context);
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    ENTER;
    stack[depth++] = find(context, CONTEXT);
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext *context)
{
    ENTER;
    *context = (CUcontext)stack[--depth];
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    ENTER;
    depth -= depth > 0;
    if (context)
        stack[depth++] = find(context, CONTEXT);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    LOCKED;
    *context = depth ? (CUcontext)stack[depth - 1] : NULL;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize(void)
{
    ENTER;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    (void)limit, (void)value;
    ENTER;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    (void)device;
    ENTER;
    *context = (CUcontext)retain_primary();
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    (void)device;
    LOCKED;
    return release_primary();
}

CUresult cuDeviceGetDevResource(CUdevice device, CUdevResource *resource, CUdevResourceType type)
{
    (void)device;
    *resource = (CUdevResource){.type = type};
    return CUDA_SUCCESS;
}

CUresult cuDevResourceGenerateDesc(CUdevResourceDesc *description, CUdevResource *resources,
                                   unsigned count)
{
    (void)resources, (void)count;
    *description = NULL;
    return CUDA_SUCCESS;
}

/* "This will retain the primary context on device dev, which ... is released when the green context is destroyed" */
CUresult cuGreenCtxCreate(CUgreenCtx *green, CUdevResourceDesc resources, CUdevice device,
                          unsigned flags)
{
    (void)resources, (void)device, (void)flags;
    ENTER;
    retain_primary();
    *green = (CUgreenCtx)make(GREEN);
    return CUDA_SUCCESS;
}

static void end_green(struct object *object)
{
    if (object->other)
        drop(object->other);
    drop(object);
    release_primary();
}

CUresult cuGreenCtxDestroy(CUgreenCtx green)
{
    return destroy(green, GREEN, end_green);
}

/* "The API converts a green context into the primary context" */
CUresult cuCtxFromGreenCtx(CUcontext *context, CUgreenCtx green)
{
    ENTER;
    struct object *object = find(green, GREEN);
    if (!object)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!object->other && getenv("STUB_GREEN")) {
        object->other = make(CONTEXT);
        object->other->is_alias = true;
    }
    *context = (CUcontext)(object->other ? object->other : primary);
    return CUDA_SUCCESS;
}

/* ---- linear memory ----------------------------------------------------------------------------- */

static CUresult take_in_context(void *address, size_t size)
{
    const struct object *context = current();
    if (!context)
        return CUDA_ERROR_INVALID_CONTEXT;
    *(CUdeviceptr *)address = take(size, context);
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t size)
{
    ENTER;
    return take_in_context(address, size);
}

CUresult cuMemHostAlloc(void **address, size_t size, unsigned flags)
{
    (void)flags;
    ENTER;
    return take_in_context(address, size);
}

CUresult cuMemFree(CUdeviceptr address)
{
    ENTER;
    return current() ? give(address) : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult cuMemFreeHost(void *address)
{
    ENTER;
    return give((CUdeviceptr)address);
}

/* ---- code -------------------------------------------------------------------------------------- */

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    (void)image;
    ENTER;
    *module = (CUmodule)make(CODE);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    (void)module;
    ENTER;
    struct object *kernel = make(CODE);
    kernel->references = strcmp(name, "illegal") == 0 ? 0 : 1;
    *function = (CUfunction)kernel;
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit, void **values,
                           unsigned count, CUlibraryOption *options, void **option_values,
                           unsigned option_count)
{
    (void)code, (void)jit, (void)values, (void)count;
    (void)options, (void)option_values, (void)option_count;
    ENTER;
    *library = (CUlibrary)make(CODE);
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void **parameters, void **extra)
{
    (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
    (void)shared, (void)stream, (void)parameters, (void)extra;
    ENTER;
    if (((const struct object *)function)->references == 0)
        error = (CUresult)atoi(getenv("STUB_ERROR"));
    return CUDA_SUCCESS;
}

/* ---- streams, events, captures ----------------------------------------------------------------- */

CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    (void)flags;
    ENTER;
    *stream = (CUstream)make(STREAM);
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy(CUstream stream)
{
    return destroy(stream, STREAM, drop);
}

CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    ENTER;
    *event = (CUevent)make(EVENT);
    return CUDA_SUCCESS;
}

/* CU_EVENT_RECORD_EXTERNAL: "is captured in the graph as an external event node": it carries no capture. */
CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags)
{
    ENTER;
    struct object *graph = ((struct object *)stream)->other;
    if (flags && !graph) /* "This flag is invalid outside of stream capture" */
        return CUDA_ERROR_INVALID_VALUE;
    if (!flags)
        ((struct object *)event)->other = graph;
    return CUDA_SUCCESS;
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    ENTER;
    struct object *graph = ((struct object *)event)->other;
    if (flags && !((struct object *)stream)->other)
        return CUDA_ERROR_INVALID_VALUE;
    if (!flags && graph && graph->is_capturing)
        ((struct object *)stream)->other = graph;
    return CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode)
{
    (void)mode;
    ENTER;
    struct object *graph = make(GRAPH);
    graph->is_capturing = true;
    ((struct object *)stream)->other = graph;
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    ENTER;
    struct object *captured = ((struct object *)stream)->other;
    captured->is_capturing = false;
    for (unsigned i = 0; i < object_count; i++)
        if (objects[i].other == captured)
            objects[i].other = NULL;
    *graph = (CUgraph)captured;
    return CUDA_SUCCESS;
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *status)
{
    LOCKED;
    const struct object *object = find(stream, STREAM);
    *status =
        object && object->other ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
}

/* ---- pools ------------------------------------------------------------------------------------- */

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *properties)
{
    (void)properties;
    ENTER;
    *pool = (CUmemoryPool)make(POOL);
    return CUDA_SUCCESS;
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    return destroy(pool, POOL, drop);
}

/* One for each kind of place: a place's default pool is always the same. */
CUresult cuMemGetDefaultMemPool(CUmemoryPool *pool, CUmemLocation *location,
                                CUmemAllocationType type)
{
    static struct object *pools[8][2];
    ENTER;
    struct object **found = &pools[location->type & 7][type == CU_MEM_ALLOCATION_TYPE_MANAGED];
    if (!*found)
        *found = make(POOL);
    *pool = (CUmemoryPool)*found;
    return CUDA_SUCCESS;
}

CUresult cuMemSetMemPool(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    (void)location, (void)type, (void)pool;
    ENTER;
    return CUDA_SUCCESS;
}

static CUresult take_from_pool(CUdeviceptr *address, size_t size, const struct object *stream)
{
    struct object *graph = stream ? stream->other : NULL;
    *address = take(size, NULL);
    if (graph) {
        graph->nodes[graph->node_count++] = *address;
        block_at(*address)->is_live = false; /* until a launch */
        block_at(*address)->size = 0;        /* the graph's own for good */
    }
    return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t size, CUstream stream)
{
    ENTER;
    return take_from_pool(address, size, find(stream, STREAM));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *address, size_t size, CUmemoryPool pool,
                                 CUstream stream)
{
    ENTER;
    return find(pool, POOL) ? take_from_pool(address, size, find(stream, STREAM))
                            : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    (void)stream;
    ENTER;
    return give(address);
}

/* ---- graphs ------------------------------------------------------------------------------------ */

CUresult cuGraphCreate(CUgraph *graph, unsigned flags)
{
    (void)flags;
    ENTER;
    *graph = (CUgraph)make(GRAPH);
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    return destroy(graph, GRAPH, drop);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *before,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *parameters)
{
    (void)before, (void)count;
    ENTER;
    struct object in_graph = {.other = find(graph, GRAPH)};
    *node = (CUgraphNode)&in_graph.other->nodes[in_graph.other->node_count];
    return take_from_pool(&parameters->dptr, parameters->bytesize, &in_graph);
}

CUresult cuGraphInstantiate(CUgraphExec *executable, CUgraph graph, unsigned long long flags)
{
    (void)flags;
    ENTER;
    struct object *object = make(EXECUTABLE);
    const struct object *from = find(graph, GRAPH);
    object->node_count = from->node_count;
    memcpy(object->nodes, from->nodes, sizeof(object->nodes));
    *executable = (CUgraphExec)object;
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec executable)
{
    return destroy(executable, EXECUTABLE, drop);
}

CUresult cuGraphLaunch(CUgraphExec executable, CUstream stream)
{
    (void)stream;
    ENTER;
    const struct object *object = find(executable, EXECUTABLE);
    if (!object)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < object->node_count; i++)
        block_at(object->nodes[i])->is_live = true;
    return CUDA_SUCCESS;
}

/* ---- physical memory --------------------------------------------------------------------------- */

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                     const CUmemAllocationProp *properties, unsigned long long flags)
{
    (void)size, (void)properties, (void)flags;
    ENTER;
    *handle = (CUmemGenericAllocationHandle)make(PHYSICAL);
    return CUDA_SUCCESS;
}

/* What is mapped keeps its memory, and with it the handle's number. */
static void unreference(struct object *memory)
{
    if (--memory->references == 0)
        drop(memory);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    ENTER;
    struct object *memory = find((const void *)handle, PHYSICAL);
    if (!memory)
        return CUDA_ERROR_INVALID_VALUE;
    unreference(memory);
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *address, size_t size, size_t alignment, CUdeviceptr hint,
                             unsigned long long flags)
{
    (void)alignment, (void)hint, (void)flags;
    ENTER;
    *address = take(size, NULL);
    return CUDA_SUCCESS;
}

static struct {
    CUdeviceptr address;
    struct object *memory;
} mappings[64];

CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset,
                  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
    (void)size, (void)offset, (void)flags;
    ENTER;
    unsigned at = 0;
    while (mappings[at].memory)
        at++;
    mappings[at].address = address;
    mappings[at].memory = find((const void *)handle, PHYSICAL);
    mappings[at].memory->references++;
    return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, size_t size)
{
    (void)size;
    ENTER;
    for (unsigned at = 0; at < sizeof(mappings) / sizeof(mappings[0]); at++)
        if (mappings[at].memory && mappings[at].address == address) {
            unreference(mappings[at].memory);
            mappings[at].memory = NULL;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

/* A descriptor is told by its file, so a duplicate of it is as good. */
static struct {
    ino_t file;
    struct object *memory;
} exported;

CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    (void)type, (void)flags;
    ENTER;
    int descriptor = memfd_create("exported", MFD_CLOEXEC);
    struct stat file;
    if (descriptor < 0 || fstat(descriptor, &file) != 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    exported.file = file.st_ino;
    exported.memory = find((const void *)handle, PHYSICAL);
    *(int *)shareable = descriptor;
    return CUDA_SUCCESS;
}

/* In the process that exported it: one more reference to the same memory, by the same number. */
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *shareable,
                                        CUmemAllocationHandleType type)
{
    (void)type;
    ENTER;
    struct stat file;
    if (fstat((int)(intptr_t)shareable, &file) != 0 || file.st_ino != exported.file)
        return CUDA_ERROR_INVALID_VALUE;
    exported.memory->references++;
    *handle = (CUmemGenericAllocationHandle)exported.memory;
    return CUDA_SUCCESS;
}

CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *descriptor)
{
    (void)descriptor;
    ENTER;
    *array = (CUarray)make(ARRAY);
    return CUDA_SUCCESS;
}

CUresult cuArrayDestroy(CUarray array)
{
    return destroy(array, ARRAY, drop);
}

CUresult cuMemMapArrayAsync(CUarrayMapInfo *list, unsigned count, CUstream stream)
{
    (void)stream;
    ENTER;
    for (unsigned i = 0; i < count; i++)
        if (list[i].memOperationType == CU_MEM_OPERATION_TYPE_MAP)
            find((const void *)list[i].memHandle.memHandle, PHYSICAL)->references++;
    return CUDA_SUCCESS;
}
